//! OpenConfig: JSON of openconfig-qos and openconfig-network-instance (RFC 7951).

use super::facts::{Aeolus, Cap, Facts, Located, Share};
use super::json::{self, Locations, items};
use super::text::{File, Location};
use crate::intent::Intent;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let all = json::read(files, facts);
    let model = Model::new(intent, files, &all);
    model.classifiers(facts);
    model.buffers(facts);
    model.schedulers(facts);
    model.interfaces(facts);
    model.routes(&all, facts);
}

struct Model<'a> {
    intent: &'a Intent,
    locations: Locations<'a>,
    qos: &'a Value,
    /// The number of each queue.
    queues: BTreeMap<&'a str, u8>,
}

/// Returns the name of an entry.
fn name(entry: &Value) -> &str {
    entry["config"]["name"].as_str().or_else(|| entry["name"].as_str()).unwrap_or("")
}

impl<'a> Model<'a> {
    fn new(intent: &'a Intent, files: &'a [File], all: &'a Value) -> Self {
        let qos = &all["openconfig-qos:qos"];
        let number = |queue: &'a Value| {
            let id = json::number(&queue["config"]["queue-id"]);
            id.and_then(|id| u8::try_from(id).ok()).map(|id| (name(queue), id))
        };
        let queues = items(&qos["queues"]["queue"]).filter_map(number).collect();
        Self { intent, locations: Locations::new(files), qos, queues }
    }

    fn at(&self, keys: &[&str]) -> Location {
        self.locations.of(keys)
    }

    /// Returns the queue of a forwarding group.
    fn queue_of(&self, group: &str) -> Option<u8> {
        let mut groups = items(&self.qos["forwarding-groups"]["forwarding-group"]);
        let config = &groups.find(|each| name(each) == group)?["config"];
        let queue = ["output-queue", "unicast-output-queue"];
        let queue = queue.into_iter().find_map(|key| config[key].as_str())?;
        self.queues.get(queue).copied()
    }

    fn classifiers(&self, facts: &mut Facts) {
        for classifier in items(&self.qos["classifiers"]["classifier"]) {
            let of = name(classifier);
            let maps = &mut facts.classifiers.entry(of).maps;
            // The first matching term counts, but the judge takes the last.
            let terms: Vec<&Value> = items(&classifier["terms"]["term"]).collect();
            for term in terms.into_iter().rev() {
                let group = term["actions"]["config"]["target-group"].as_str().unwrap_or("");
                let queue = self.queue_of(group).unwrap_or(0);
                for family in ["ipv4", "ipv6"] {
                    let config = &term["conditions"][family]["config"];
                    let one = json::number(&config["dscp"]);
                    let dscps = items(&config["dscp-set"]).filter_map(json::number).chain(one);
                    let id = term["id"].as_str().unwrap_or("");
                    let at = self.at(&["classifiers", of, id, "conditions"]);
                    let dscps = dscps.filter_map(|dscp| u8::try_from(dscp).ok());
                    maps.extend(dscps.map(|dscp| Located::new((dscp, queue), &at)));
                }
            }
        }
    }

    fn buffers(&self, facts: &mut Facts) {
        let profiles = &self.qos["buffer-allocation-profiles"]["buffer-allocation-profile"];
        for profile in items(profiles) {
            let of = name(profile);
            let queue = facts.queues.entry(of);
            let is_tiny = |queue: &&Value| self.queues.get(name(queue)) == Some(&self.intent.queue);
            let Some(tiny) = items(&profile["queues"]["queue"]).find(is_tiny) else { continue };
            let config = &tiny["config"];
            let at = |key| self.at(&["buffer-allocation-profiles", of, key]);
            let bytes = json::number(&config["dedicated-buffer"]);
            queue.cap = bytes.map(|bytes| Located::new(Cap::Bytes(bytes), &at("dedicated-buffer")));
            if config["use-shared-buffer"] != Value::Bool(false) {
                let cause = match &config["use-shared-buffer"] {
                    Value::Null => "use-shared-buffer is not set".into(),
                    value => format!("use-shared-buffer is {value}"),
                };
                queue.borrows.push(Located::new(cause, &at("use-shared-buffer")));
            }
        }
    }

    fn schedulers(&self, facts: &mut Facts) {
        for policy in items(&self.qos["scheduler-policies"]["scheduler-policy"]) {
            let of = name(policy);
            let at = self.at(&["scheduler-policies", of]);
            facts.schedules.entry(of);
            for scheduler in items(&policy["schedulers"]["scheduler"]) {
                let is_strict = scheduler["config"]["priority"] == "STRICT";
                for input in items(&scheduler["inputs"]["input"]) {
                    let config = &input["config"];
                    let weight = json::number(&config["weight"]);
                    let share =
                        if is_strict { Some(Share::Strict) } else { weight.map(Share::Weighted) };
                    let id = input["id"].as_str().unwrap_or("");
                    let location = self.at(&["scheduler-policies", of, "inputs", id]);
                    let share = share.map(|share| {
                        Located::new(share, if location.line > 0 { &location } else { &at })
                    });
                    let schedule = facts.schedules.entry(of);
                    match self.queues.get(config["queue"].as_str().unwrap_or("")) {
                        Some(0) => schedule.default = share,
                        Some(queue) if *queue == self.intent.queue => schedule.tiny = share,
                        _ => {}
                    }
                }
            }
        }
    }

    fn interfaces(&self, facts: &mut Facts) {
        for interface in items(&self.qos["interfaces"]["interface"]) {
            let port = interface["interface-id"].as_str().unwrap_or("");
            let at = self.at(&["interfaces", port]);
            let classifiers: Vec<&Value> =
                items(&interface["input"]["classifiers"]["classifier"]).collect();
            for classifier in &classifiers {
                facts.classifiers.bind(port, name(classifier), &at);
            }
            for family in ["IPV4", "IPV6"] {
                let has_family = classifiers.iter().any(|each| each["type"] == family);
                if !has_family && !classifiers.is_empty() {
                    let remedy = "packets of that family would be in the default queue: add one";
                    let found = format!("{port} has no classifier for {family}");
                    facts.report(&at, found, "one for each family", remedy);
                }
            }
            for each in &classifiers {
                let mut all = items(&self.qos["classifiers"]["classifier"]);
                let classifier = all.find(|known| name(known) == name(each));
                let of = classifier.and_then(|classifier| classifier["config"]["type"].as_str());
                let meant = each["type"].as_str().unwrap_or("");
                if let Some(of) = of.filter(|of| *of != meant) {
                    let found =
                        format!("{port} has, for {meant}, a classifier for {of}, {}", name(each));
                    let remedy = "packets of that family would be in the default queue: correct it";
                    facts.report(&at, found, format!("one for {meant}"), remedy);
                }
            }
            let output = &interface["output"];
            if let Some(profile) = output["config"]["buffer-allocation-profile"].as_str() {
                facts.queues.bind(port, profile, &at);
            }
            if let Some(policy) = output["scheduler-policy"]["config"]["name"].as_str() {
                facts.schedules.bind(port, policy, &at);
            }
            for queue in items(&output["queues"]["queue"]) {
                let profile = queue["config"]["queue-management-profile"].as_str();
                if let Some(profile) =
                    profile.filter(|_| self.queues.get(name(queue)) == Some(&self.intent.queue))
                {
                    facts.aeolus.bind(port, profile, &at);
                    if let Some(dropping) = self.dropping(profile) {
                        *facts.aeolus.entry(profile) = dropping;
                    }
                }
            }
        }
    }

    fn dropping(&self, profile: &str) -> Option<Aeolus> {
        let profiles = &self.qos["queue-management-profiles"]["queue-management-profile"];
        let profile_entry = items(profiles).find(|each| name(each) == profile)?;
        let config = &profile_entry["wred"]["uniform"]["config"];
        let number_of = |key: &str| json::number(&config[key]);
        let both = number_of("min-threshold").zip(number_of("max-threshold"))?;
        let at = self.at(&["queue-management-profiles", profile, "min-threshold"]);
        Some(Aeolus {
            bounds: Located::some(both, &at),
            spares_ecn: config["enable-ecn"] == true,
            drops_all: config["drop"] == true
                && number_of("max-drop-probability-percent") == Some(100),
        })
    }

    fn routes(&self, all: &Value, facts: &mut Facts) {
        let instances = &all["openconfig-network-instance:network-instances"]["network-instance"];
        let protocols = items(instances).flat_map(|each| items(&each["protocols"]["protocol"]));
        for route in protocols.flat_map(|each| items(&each["static-routes"]["static"])) {
            let to = route["prefix"].as_str().unwrap_or("");
            let at = self.at(&["static-routes", to]);
            for hop in items(&route["next-hops"]["next-hop"]) {
                let via = hop["config"]["next-hop"].as_str().unwrap_or("");
                facts.routes.push(Located::new((to.into(), via.into()), &at));
            }
        }
    }
}
