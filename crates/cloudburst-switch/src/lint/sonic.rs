//! SONiC: tables of CONFIG_DB, or patches of them.

use super::facts::{Aeolus, Cap, EVERY_PORT, Facts, Field, Located, Queue, Share};
use super::json::{self, Locations, entries, items};
use super::text::{File, Location, numbers};
use crate::intent::Intent;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let all = json::read(files, facts);
    let tables = Tables { intent, locations: Locations::new(files), all: &all };
    tables.ports(facts);
    tables.buffers(facts);
    tables.schedulers(facts);
    tables.trimming(facts);
    tables.hash(facts);
    tables.routes(facts);
}

/// Splits the files into sets to be judged separately. A patch repeats the tables of its name, and one would hide the
/// mistakes of the other: `qos.patch.json` is judged instead of `qos.json`.
pub(super) fn separate(files: &[File]) -> Vec<Vec<File>> {
    let tables_of =
        |file: &File| file.name.strip_suffix(".patch.json").map(|of| format!("{of}.json"));
    let is_there = |name: &str| files.iter().any(|file| file.name == name);
    let is_patched =
        |file: &File| files.iter().any(|patch| tables_of(patch).as_ref() == Some(&file.name));
    let is_twice = |file: &File| tables_of(file).is_some_and(|tables| is_there(&tables));
    let without = |left_out: &dyn Fn(&File) -> bool| -> Vec<File> {
        files.iter().filter(|file| !left_out(file)).cloned().collect()
    };
    if files.iter().any(is_twice) {
        vec![without(&is_twice), without(&is_patched)]
    } else {
        vec![files.to_vec()]
    }
}

struct Tables<'a> {
    intent: &'a Intent,
    locations: Locations<'a>,
    all: &'a Value,
}

impl Tables<'_> {
    fn at(&self, keys: &[&str]) -> Location {
        self.locations.of(keys)
    }

    fn ports(&self, facts: &mut Facts) {
        for (port, entry) in entries(&self.all["PORT_QOS_MAP"]) {
            let at = self.at(&["PORT_QOS_MAP", port]);
            let of = if port == "global" { EVERY_PORT } else { port };
            let enabled = entry["pfc_enable"].as_str().unwrap_or("");
            facts.pfc.extend(numbers(enabled).into_iter().map(|tc| Located::new(tc, &at)));
            let (Some(dscps), Some(queues)) =
                (entry["dscp_to_tc_map"].as_str(), entry["tc_to_queue_map"].as_str())
            else {
                continue;
            };
            let name = format!("{dscps}, {queues}");
            facts.classifiers.bind(of, &name, &at);
            if !facts.classifiers.named.contains_key(&name) {
                self.classifier(&name, dscps, queues, facts);
            }
        }
    }

    fn classifier(&self, name: &str, dscps: &str, queues: &str, facts: &mut Facts) {
        let classes = &self.all["DSCP_TO_TC_MAP"][dscps];
        let to_queues = &self.all["TC_TO_QUEUE_MAP"][queues];
        if !(classes.is_object() && to_queues.is_object()) {
            return;
        }
        let queue_of = |dscp: u8| {
            let class = classes[dscp.to_string().as_str()].as_str()?;
            let queue = json::number(&to_queues[class]).and_then(|queue| u8::try_from(queue).ok());
            let at = self.at(&["DSCP_TO_TC_MAP", dscps, &dscp.to_string()]);
            // By default, a class has the queue with its number.
            Some(Located { value: (dscp, queue.or(class.parse().ok())?), at })
        };
        let missing: Vec<_> = (0..64).filter(|&dscp| queue_of(dscp).is_none()).collect();
        if let (Some(first), at) = (missing.first(), self.at(&["DSCP_TO_TC_MAP", dscps])) {
            let found = format!("{} DSCPs have no class in {dscps}, {first} first", missing.len());
            facts.report(
                &at,
                found,
                "all 64",
                "add them: without a class, the queue is not defined",
            );
        }
        facts.classifiers.entry(name).maps.extend((0..64).filter_map(queue_of));
    }

    /// Returns the ports of a key such as `Ethernet0,Ethernet4|3-5`, if its queues include `queue`.
    fn each_port<'k>(&self, key: &'k str, queue: u8) -> Vec<&'k str> {
        let Some((ports, queues)) = key.split_once('|') else { return Vec::new() };
        let is_of = numbers(queues).contains(&queue);
        if is_of { ports.split(',').collect() } else { Vec::new() }
    }

    fn buffers(&self, facts: &mut Facts) {
        for (key, entry) in entries(&self.all["BUFFER_QUEUE"]) {
            let at = self.at(&["BUFFER_QUEUE", key]);
            let name = entry["profile"].as_str().unwrap_or("");
            for port in self.each_port(key, self.intent.queue) {
                facts.queues.bind(port, name, &at);
            }
        }
        for (name, entry) in entries(&self.all["BUFFER_PROFILE"]) {
            let at = |key| self.at(&["BUFFER_PROFILE", name, key]);
            let number_of = |key: &str| json::number(&entry[key]);
            let dynamic = match &entry["dynamic_th"] {
                Value::Null => None,
                Value::String(share) => Some(share.clone()),
                share => Some(share.to_string()),
            };
            let cap = match (number_of("static_th"), dynamic) {
                (_, Some(share)) => {
                    let share = format!("a share of the free buffer, dynamic_th {share}");
                    Located::some(Cap::Other(share), &at("dynamic_th"))
                }
                (Some(0), None) => {
                    let none = "static_th 0, which SONiC takes as no limit";
                    Located::some(Cap::Other(none.into()), &at("static_th"))
                }
                (Some(bytes), None) => {
                    let size = number_of("size").unwrap_or(0);
                    Located::some(Cap::Bytes(bytes.saturating_add(size)), &at("static_th"))
                }
                (None, None) => None,
            };
            facts
                .queues
                .named
                .insert(name.clone(), Queue { cap, borrows: self.pool(entry, &at("pool")) });
        }
    }

    /// Checks the profile's pool, which is present only in a whole configuration.
    fn pool(&self, profile: &Value, at: &Location) -> Vec<Located<String>> {
        let name = profile["pool"].as_str().unwrap_or("");
        let pool = &self.all["BUFFER_POOL"][name];
        let mode = pool["mode"].as_str().filter(|mode| *mode != "static");
        let is_ingress = name.starts_with("ingress") || pool["type"] == "ingress";
        let wrong = mode.or(is_ingress.then_some("for ingress"));
        wrong.map(|how| Located::new(format!("its pool {name} is {how}"), at)).into_iter().collect()
    }

    fn schedulers(&self, facts: &mut Facts) {
        let queues = &self.all["QUEUE"];
        let named = |queue: u8| {
            let mut all = BTreeMap::new();
            for (key, entry) in entries(queues) {
                let Some(name) = entry["scheduler"].as_str() else { continue };
                all.extend(self.each_port(key, queue).into_iter().map(|port| (port, (key, name))));
            }
            all
        };
        let of_tiny = named(self.intent.queue);
        let of_default = named(0);
        for port in &self.intent.ports {
            let tiny = of_tiny.get(port.as_str()).copied();
            let default = of_default.get(port.as_str()).copied();
            let Some((key, first)) = tiny else { continue };
            let name = format!("{first}, {}", default.map_or("none", |(_, name)| name));
            facts.schedules.bind(port, &name, &self.at(&["QUEUE", key]));
            let schedule = facts.schedules.entry(&name);
            schedule.tiny = self.share(first);
            schedule.default = default.and_then(|(_, name)| self.share(name));
        }
        for (key, entry) in entries(queues) {
            let Some(name) = entry["wred_profile"].as_str() else { continue };
            let ports = self.each_port(key, self.intent.queue);
            let profile = &self.all["WRED_PROFILE"][name];
            if ports.is_empty() || !profile.is_object() {
                continue;
            }
            ports.iter().for_each(|port| facts.aeolus.bind(port, name, &self.at(&["QUEUE", key])));
            let number_of = |key: &str| json::number(&profile[key]);
            let both = number_of("green_min_threshold").zip(number_of("green_max_threshold"));
            let at = self.at(&["WRED_PROFILE", name]);
            *facts.aeolus.entry(name) = Aeolus {
                bounds: both.map(|both| Located::new(both, &at)),
                spares_ecn: matches!(profile["ecn"].as_str(), Some(ecn) if ecn != "ecn_none"),
                drops_all: profile["wred_green_enable"] == "true"
                    && number_of("green_drop_probability") == Some(100),
            };
        }
    }

    fn trimming(&self, facts: &mut Facts) {
        let entry = &self.all["SWITCH_TRIMMING"]["GLOBAL"];
        let number_of = |key| {
            let at = self.at(&["SWITCH_TRIMMING", "GLOBAL", key]);
            json::number(&entry[key]).map(|value| Located::new(value, &at))
        };
        let trimming = &mut facts.trimming;
        trimming.size = number_of("size");
        trimming.dscp = number_of("dscp_value");
        trimming.queue = number_of("queue_index");
        for (key, queue) in entries(&self.all["BUFFER_QUEUE"]) {
            let name = queue["profile"].as_str().unwrap_or("");
            if self.all["BUFFER_PROFILE"][name]["packet_discard_action"] != "trim" {
                continue;
            }
            let at = self.at(&["BUFFER_PROFILE", name, "packet_discard_action"]);
            for port in self.each_port(key, self.intent.queue) {
                trimming.eligible.bind(port, name, &at);
                trimming.eligible.entry(name);
            }
        }
    }

    fn share(&self, name: &str) -> Option<Located<Share>> {
        let scheduler = self.all["SCHEDULER"].get(name)?;
        let at = |key| self.at(&["SCHEDULER", name, key]);
        if scheduler["type"] == "STRICT" {
            return Located::some(Share::Strict, &at("type"));
        }
        let weight = json::number(&scheduler["weight"]).unwrap_or(1);
        Located::some(Share::Weighted(weight), &at("weight"))
    }

    fn hash(&self, facts: &mut Facts) {
        let entry = &self.all["SWITCH_HASH"]["GLOBAL"]["ecmp_hash"];
        if !entry.is_array() {
            return;
        }
        let field = |name: &Value| match name.as_str()? {
            "SRC_IP" => Some(Field::SourceAddress),
            "DST_IP" => Some(Field::DestinationAddress),
            "IP_PROTOCOL" => Some(Field::Protocol),
            "L4_SRC_PORT" => Some(Field::SourcePort),
            "L4_DST_PORT" => Some(Field::DestinationPort),
            _ => None,
        };
        let at = self.at(&["SWITCH_HASH", "GLOBAL", "ecmp_hash"]);
        facts.hash = Located::some(items(entry).filter_map(field).collect(), &at);
    }

    fn routes(&self, facts: &mut Facts) {
        for (key, entry) in entries(&self.all["STATIC_ROUTE"]) {
            let to = key.rsplit_once('|').map_or(key.as_str(), |(_, to)| to);
            let at = self.at(&["STATIC_ROUTE", key]);
            for hop in entry["nexthop"].as_str().unwrap_or("").split(',') {
                facts.routes.push(Located::new((to.into(), hop.into()), &at));
            }
        }
        for (key, _) in entries(&self.all["LOOPBACK_INTERFACE"]) {
            let address =
                key.strip_prefix("Loopback0|").and_then(|prefix| prefix.split('/').next());
            let at = self.at(&["LOOPBACK_INTERFACE", key]);
            facts.decapsulates.extend(address.map(|address| Located::new(address.to_owned(), &at)));
        }
    }
}
