//! Linux: the commands of `tc`, `ethtool`, `sysctl`, `ip`, `nft` and `dcb` in scripts.

use super::facts::{Aeolus, Cap, Facts, Field, Located, Share};
use super::iproute::{self, Meaning};
use super::text::{File, Location, after};
use super::{negations, shell};
use crate::intent::Intent;
use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a port.
#[derive(Default)]
struct Port<'a> {
    at: Location,
    /// The class of packets that no filter matches, such as `1:20`.
    default: Option<String>,
    classes: BTreeMap<&'a str, Class<'a>>,
    /// The limit of each class's queue.
    caps: BTreeMap<&'a str, Located<Cap>>,
    /// The settings of RED, which replaces a class's queue. Both must be right: its file need not be applied.
    red: BTreeMap<&'a str, (Located<Cap>, Aeolus)>,
    filters: Vec<Located<Filter<'a>>>,
    /// The classes of filters that match something besides the DSCP.
    others: Vec<Located<&'a str>>,
    /// The root qdisc, if it is not HTB.
    root: Option<Located<&'a str>>,
    /// Offloads that are off.
    off: BTreeSet<&'a str>,
}

/// Offloads with any of which a device may hold up to 64 KB in one packet.
const OFFLOADS: [&str; 3] = ["tso", "gso", "gro"];

#[derive(Clone, Default)]
struct Class<'a> {
    at: Location,
    parent: &'a str,
    rate: u64,
    ceil: Option<u64>,
    quantum: u64,
    priority: u64,
}

struct Filter<'a> {
    words: Vec<&'a str>,
    is_ipv6: bool,
    value: u8,
    mask: u8,
    class: &'a str,
}

/// A next hop of a route.
struct Route<'a> {
    to: &'a str,
    hop: &'a str,
    /// `None` if there are several.
    dev: Option<&'a str>,
    proto: &'a str,
    at: Location,
}

impl Route<'_> {
    /// Whether it is one of those that a command removes: it has all the values that the command gives.
    fn is_meant(&self, words: &[&str], hops: &[&str]) -> bool {
        let has = |key: &str, own: Option<&str>| {
            after(words, key).zip(own).is_none_or(|(given, own)| given == own)
        };
        has("to", Some(self.to))
            && has("dev", self.dev)
            && has("proto", Some(self.proto))
            && (hops.is_empty() || hops.contains(&self.hop))
    }
}

/// A rule that drops IP-in-IP packets: where it is, the address of the tunnel, and the prefixes that it spares.
type Guard<'a> = (Vec<&'a str>, Located<(String, BTreeSet<String>)>);

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let commands = shell::read(files, &iproute::WATCHED, facts);
    let mut known = Vec::new();
    for command in commands {
        match iproute::read(intent, &command) {
            Meaning::Nothing => {}
            Meaning::Known(words) if command.is_certain => known.push((command, words)),
            _ => shell::not_followed(facts, &command),
        }
    }
    let mut host = Host::default();
    for (command, words) in &known {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if !host.run(intent, facts, &words, &command.at) {
            negations::not_understood(facts, &command.at, &command.words.join(" "));
        }
    }
    host.conclude(intent, facts);
}

/// The configuration of a Linux host after the commands so far.
#[derive(Default)]
struct Host<'a> {
    ports: BTreeMap<&'a str, Port<'a>>,
    hash_of_ipv6: Option<Located<&'a str>>,
    routes: Vec<Route<'a>>,
    tunnels: BTreeMap<&'a str, Located<String>>,
    down: BTreeSet<&'a str>,
    guards: Vec<Guard<'a>>,
    /// The ports and priorities that have priority flow control.
    pauses: BTreeMap<(&'a str, u8), Location>,
}

impl<'a> Host<'a> {
    /// Applies a command. Returns `false` if it removes something in a way that is not understood.
    fn run(
        &mut self,
        intent: &Intent,
        facts: &mut Facts,
        words: &[&'a str],
        at: &Location,
    ) -> bool {
        match *words {
            ["tc", kind, ..] => return self.tc(intent, kind, words, at),
            ["ethtool", "-K", name, ref args @ ..] => self.ethtool(name, args, at),
            ["sysctl", ref args @ ..] => self.sysctl(facts, args, at),
            ["ip", "route", verb, ref args @ ..] => return self.ip_route(verb, words, args, at),
            ["ip", "link", "add", name, ..] => {
                let local = after(words, "local");
                self.tunnels.extend(local.map(|local| (name, Located::new(local.to_owned(), at))));
                self.down.remove(name);
            }
            ["ip", "link", "delete", name] => {
                self.tunnels.remove(name);
                self.ports.remove(name);
            }
            ["ip", "link", "down", name] => drop(self.down.insert(name)),
            ["ip", "link", "up", name] => drop(self.down.remove(name)),
            ["nft", "add", "rule", ref args @ ..] => self.nft_rule(words, args, at),
            ["nft", _, "ruleset" | "table" | "chain" | "rule", ref args @ ..] => {
                self.guards.retain(|(of_guard, _)| !of_guard.starts_with(&chain_of(args)));
            }
            ["dcb", "pfc", verb, ref args @ ..] => self.dcb_pfc(verb, words, args, at),
            _ => {}
        }
        true
    }

    fn port(&mut self, name: &'a str, at: &Location) -> &mut Port<'a> {
        self.ports.entry(name).or_insert_with(|| Port { at: at.clone(), ..Port::default() })
    }

    fn tc(&mut self, intent: &Intent, kind: &str, words: &[&'a str], at: &Location) -> bool {
        let Some(name) = after(words, "dev") else { return true };
        let port = self.port(name, at);
        let is_configured = !(port.classes.is_empty() && port.caps.is_empty());
        let has_effect = match kind {
            "qdisc" => qdisc(intent, port, words, at),
            "class" => class(port, words, at),
            _ => filter(port, words, at),
        };
        has_effect || !is_configured
    }

    fn ethtool(&mut self, name: &'a str, args: &[&'a str], at: &Location) {
        let port = self.port(name, at);
        for pair in args.chunks(2) {
            if let [name, "off"] = *pair {
                port.off.insert(name);
            } else {
                port.off.remove(pair[0]);
            }
        }
    }

    fn sysctl(&mut self, facts: &mut Facts, args: &[&'a str], at: &Location) {
        for set in args {
            if let Some(policy) = set.strip_prefix("net.ipv6.fib_multipath_hash_policy=") {
                self.hash_of_ipv6 = Located::some(policy, at);
            }
            sysctl(facts, set, at);
        }
    }

    fn ip_route(&mut self, verb: &str, words: &[&'a str], args: &[&'a str], at: &Location) -> bool {
        let hops: Vec<&str> = (args.iter().zip(args.iter().skip(1)))
            .filter_map(|(key, hop)| (*key == "via").then_some(*hop))
            .collect();
        let to = after(words, "to").unwrap_or("");
        let count = self.routes.len();
        match verb {
            "delete" | "flush" => {
                self.routes.retain(|route| !route.is_meant(words, &hops));
                let has_removed = self.routes.len() < count;
                return verb == "flush"
                    || has_removed
                    || self.routes.iter().all(|route| route.to != to);
            }
            "replace" | "change" => self.routes.retain(|route| route.to != to),
            _ => {}
        }
        let dev = after(words, "dev");
        let proto = after(words, "proto").unwrap_or("boot");
        let route = |hop| Route { to, hop, dev, proto, at: at.clone() };
        self.routes.extend(hops.into_iter().map(route));
        true
    }

    fn nft_rule(&mut self, words: &[&'a str], args: &[&'a str], at: &Location) {
        let line = words.join(" ");
        let from = line.split_once("saddr != {").and_then(|(_, from)| from.split_once('}'));
        let from = from.map(|(from, _)| from.split(',').map(|each| each.trim().to_owned()));
        let guard = after(words, "daddr").zip(from);
        let guard = guard.map(|(to, from)| Located::new((to.to_owned(), from.collect()), at));
        self.guards.extend(guard.map(|guard| (chain_of(args), guard)));
    }

    fn dcb_pfc(&mut self, verb: &str, words: &[&'a str], args: &[&'a str], at: &Location) {
        let Some(name) = after(words, "dev") else { return };
        if verb == "replace" {
            self.pauses.retain(|(of, _), _| *of != name);
        }
        for (priorities, state) in args.iter().filter_map(|word| word.split_once(':')) {
            let one = priorities.parse::<u8>().ok();
            for priority in one.map_or(0..8, |one| one..one.saturating_add(1)) {
                if state == "off" {
                    self.pauses.remove(&(name, priority));
                } else {
                    self.pauses.insert((name, priority), at.clone());
                }
            }
        }
    }

    /// Adds to `facts` what is configured in the end.
    fn conclude(self, intent: &Intent, facts: &mut Facts) {
        let Self { ports, hash_of_ipv6, routes, mut tunnels, down, guards, pauses } = self;
        let pauses = pauses.into_iter();
        facts.pfc.extend(pauses.map(|((_, priority), at)| Located { value: priority, at }));
        tunnels.retain(|name, _| !down.contains(name));
        facts.decapsulates.extend(tunnels.into_values());
        facts.decapsulates_from.extend(guards.into_iter().map(|(_, guard)| guard));
        let routes = routes.into_iter();
        let routes = routes
            .map(|route| Located { value: (route.to.into(), route.hop.into()), at: route.at });
        facts.routes.extend(routes);
        if hash_of_ipv6.as_ref().is_none_or(|policy| policy.value != "1") {
            let at = hash_of_ipv6.as_ref().map(|policy| &policy.at);
            let at = at.or(facts.hash.as_ref().map(|hash| &hash.at));
            if let Some(at) = at.cloned() {
                let policy = hash_of_ipv6.map_or("0", |policy| policy.value);
                let found = format!("the ECMP hash of IPv6 has policy {policy}");
                facts.report(&at, found, "1", "Cloudburst's paths differ by ports: set it");
            }
        }
        for (name, port) in ports {
            resolve(intent, facts, name, &port);
        }
    }
}

/// Returns the family, the table and the chain that a command of `nft` names, as far as it does.
fn chain_of<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let (family, names) = match args {
        [] => return Vec::new(),
        [family @ ("ip" | "ip6" | "inet" | "arp" | "bridge" | "netdev"), names @ ..] => {
            (*family, names)
        }
        names => ("ip", names),
    };
    let names = names.iter().copied().take(2);
    let chain: Vec<&str> = [family].into_iter().chain(names).collect();
    // A number may be that of any.
    if chain.contains(&"handle") { Vec::new() } else { chain }
}

/// Whether a command of `tc` removes instead of setting.
fn removes(words: &[&str]) -> bool {
    words.get(2) == Some(&"delete")
}

/// Reads a command for qdiscs. Returns whether it has an effect, like those below.
fn qdisc<'a>(intent: &Intent, port: &mut Port<'a>, words: &[&'a str], at: &Location) -> bool {
    let after = |word: &str| after(words, word);
    if words.contains(&"root") {
        let is_gone = removes(words);
        let is_htb = words.contains(&"htb");
        if is_gone || !is_htb {
            // Everything below it is removed, too.
            let at = port.at.clone();
            let off = core::mem::take(&mut port.off);
            *port = Port { at, off, ..Port::default() };
        }
        port.root = (!is_gone && !is_htb).then(|| Located::new(kind(words), at));
        if is_gone {
            return true;
        }
    }
    if words.contains(&"htb") {
        port.default = after("default").map(|default| format!("1:{default}"));
        return true;
    }
    let Some(parent) = after("parent") else { return !removes(words) };
    if removes(words) {
        let cap = port.caps.remove(parent);
        let red = port.red.remove(parent);
        return cap.is_some() || red.is_some();
    }
    let limit = after("limit").and_then(|limit| limit.parse::<u64>().ok());
    let number = |word| after(word).and_then(|value| value.parse::<u64>().ok());
    let cap = match limit {
        Some(limit) if words.contains(&"pfifo") => Cap::Packets(limit),
        Some(limit) if words.contains(&"bfifo") => Cap::Bytes(limit),
        Some(limit) if words.contains(&"red") => {
            let both = number("min").zip(number("max"));
            let aeolus = Aeolus {
                bounds: both.map(|both| Located::new(both, at)),
                spares_ecn: words.contains(&"ecn"),
                drops_all: after("probability").is_some_and(|p| p.parse() == Ok(1.0)),
            };
            // RED counts bytes, even where the queue that it replaces counts packets.
            let is_same = limit == intent.limit.bytes && intent.limit.in_packets;
            let cap = if is_same { Cap::Packets(intent.limit.packets) } else { Cap::Bytes(limit) };
            port.red.insert(parent, (Located::new(cap, at), aeolus));
            return true;
        }
        _ => Cap::Other(words.last().copied().unwrap_or("").into()),
    };
    port.caps.insert(parent, Located::new(cap, at));
    port.red.remove(parent);
    true
}

/// Returns the kind of a qdisc: the first word that does not give its place.
fn kind<'a>(words: &[&'a str]) -> &'a str {
    let mut words = words.iter().skip(3);
    while let Some(word) = words.next() {
        match *word {
            "dev" | "handle" | "parent" => drop(words.next()),
            "root" => {}
            kind => return kind,
        }
    }
    "nothing"
}

fn class<'a>(port: &mut Port<'a>, words: &[&'a str], at: &Location) -> bool {
    let after = |word: &str| after(words, word);
    let Some(id) = after("classid") else { return false };
    if removes(words) {
        return port.classes.remove(id).is_some();
    }
    let number = |word: &str| after(word).and_then(|number| number.parse().ok()).unwrap_or(0);
    let class = Class {
        at: at.clone(),
        parent: after("parent").unwrap_or(""),
        rate: after("rate").map_or(0, bits),
        ceil: after("ceil").map(bits),
        quantum: number("quantum"),
        priority: number("prio"),
    };
    port.classes.insert(id, class);
    true
}

/// Parses a rate as `tc` does.
fn bits(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "bit" | "" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => 0,
    };
    number.parse::<u64>().unwrap_or(0).saturating_mul(scale)
}

fn filter<'a>(port: &mut Port<'a>, words: &[&'a str], at: &Location) -> bool {
    if removes(words) {
        let count = port.filters.len();
        port.filters.retain(|filter| !is_meant(&filter.value.words, words));
        return port.filters.len() < count;
    }
    let byte = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let start = words.iter().position(|word| matches!(*word, "dsfield" | "tos" | "priority"));
    let flow = words.iter().position(|word| matches!(*word, "flowid" | "classid"));
    let Some(flow) = flow else { return false };
    let matches = words.iter().filter(|word| **word == "match").count();
    let (Some(start), true) = (start, words.contains(&"u32") && matches == 1) else {
        port.others.extend(words.get(flow + 1).map(|class| Located::new(*class, at)));
        return true;
    };
    let word_at = |at: usize| words.get(at).copied();
    let value_and_mask = word_at(start + 1).and_then(byte).zip(word_at(start + 2).and_then(byte));
    if let (Some((value, mask)), Some(class)) = (value_and_mask, word_at(flow + 1)) {
        let is_ipv6 = words.contains(&"ipv6");
        let words = words.to_vec();
        port.filters.push(Located::new(Filter { words, is_ipv6, value, mask, class }, at));
    }
    true
}

/// The words before a filter's priority.
const PRIORITY: [&str; 3] = ["prio", "pref", "preference"];

/// Whether a filter is one of those that a command names: it has all the values that the command gives.
fn is_meant(filter: &[&str], words: &[&str]) -> bool {
    let value_of = |words, keys: &[&str]| -> Option<String> {
        keys.iter().find_map(|key| after(words, key)).map(Into::into)
    };
    [&["parent"][..], &PRIORITY, &["protocol", "proto"]]
        .into_iter()
        .all(|keys| value_of(words, keys).is_none_or(|value| value_of(filter, keys) == Some(value)))
}

fn sysctl(facts: &mut Facts, set: &str, at: &Location) {
    match set.split_once('=') {
        Some(("net.ipv4.fib_multipath_hash_policy", policy)) => {
            let mut fields = vec![Field::SourceAddress, Field::DestinationAddress];
            if policy == "1" {
                fields = Field::ALL.to_vec();
            }
            facts.hash = Located::some(fields, at);
        }
        Some(("net.ipv4.fib_multipath_hash_seed", seed)) => {
            facts.seed = seed.parse().ok().map(|seed| Located::new(seed, at));
        }
        _ => {}
    }
}

fn resolve(intent: &Intent, facts: &mut Facts, name: &str, port: &Port<'_>) {
    let default = port.default.clone().unwrap_or_else(|| "1:0".into());
    // The class that shares the link with the default class: a leaf, or the parent of a leaf for each DSCP.
    let below = |parent: &str| -> Vec<&str> {
        let ids =
            port.classes.iter().filter(|(id, class)| class.parent == parent && **id != default);
        ids.map(|(id, _)| *id).collect()
    };
    let of_both = port.classes.get(default.as_str()).map_or("1:1", |class| class.parent);
    let group = below(of_both).first().copied();
    let mut leaves = group.map_or_else(Vec::new, below);
    if leaves.is_empty() {
        leaves.extend(group);
    }
    leaves.sort_by_key(|id| port.classes[id].priority);
    if leaves.len() > 1 || intent.tiny.len() > 1 {
        order(intent, facts, port, &leaves);
    }
    let rank = intent.tiny.iter().position(|tiny| tiny.queue == intent.queue);
    let tiny = rank.and_then(|rank| leaves.get(rank)).copied();
    // The rank of a class by priority determines which of the intended queues it is.
    let queue_of = |class: &str| {
        let rank = leaves.iter().position(|leaf| *leaf == class);
        rank.and_then(|rank| intent.tiny.get(rank)).map_or(0, |tiny| tiny.queue)
    };
    // The first matching filter counts, but the judge takes the last.
    let priority = |filter: &&Located<Filter<'_>>| {
        let words = &filter.value.words;
        let priority = PRIORITY.iter().find_map(|key| after(words, key));
        priority.and_then(|priority| priority.parse::<u32>().ok()).unwrap_or(u32::MAX)
    };
    let mut by_priority: Vec<_> = port.filters.iter().rev().collect();
    by_priority.sort_by_key(|filter| Reverse(priority(filter)));
    for (is_ipv6, family) in [(false, "ip"), (true, "ipv6")] {
        let of_family = format!("{name}, {family},");
        facts.classifiers.bind(name, &of_family, &port.at);
        let classifier = facts.classifiers.entry(&of_family);
        for Located { value: filter, at } in &by_priority {
            let queue = queue_of(filter.class);
            let is_meant = |dscp: &u8| (dscp << 2) & filter.mask == filter.value & filter.mask;
            let dscps = (0..64).filter(is_meant).filter(|_| filter.is_ipv6 == is_ipv6);
            classifier.maps.extend(dscps.map(|dscp| Located::new((dscp, queue), at)));
        }
    }
    for filter in port.filters.iter().filter(|seen| seen.value.mask & 3 != 0) {
        let found = format!("a filter with mask {:#04x}", filter.value.mask);
        let remedy = "packets with ECN bits would be missed: leave the lower two bits out";
        facts.report(&filter.at, found, "mask 0xfc", remedy);
    }
    for Located { value: class, at } in port.others.iter().filter(|seen| Some(seen.value) == tiny) {
        let found = format!("a filter to {class} does not match the DSCP alone");
        let remedy = "other traffic would be dropped from a queue this small: take it out";
        facts.report(at, found, "the DSCP, and nothing else", remedy);
    }
    if let Some(Located { value: kind, at }) = &port.root {
        let found = format!("the root of {name} is {kind}");
        facts.report(at, found, "htb", "it has no tiny queue: take the line out");
    }
    let joins: Vec<&str> = OFFLOADS.into_iter().filter(|each| !port.off.contains(each)).collect();
    if !joins.is_empty() {
        let joins = joins.join(", ");
        let remedy =
            "a queue would hold packets of up to 64 KB: ethtool -K PORT tso off gso off gro off";
        let found = format!("{name} may join packets ({joins})");
        facts.report(&port.at, found, format!("{} off", OFFLOADS.join(", ")), remedy);
    }
    facts.queues.bind(name, name, &port.at);
    facts.queues.entry(name).cap = tiny.and_then(|tiny| port.caps.get(tiny).cloned());
    if let Some((red, aeolus)) = tiny.and_then(|tiny| port.red.get(tiny)) {
        facts.aeolus.bind(name, name, &red.at);
        *facts.aeolus.entry(name) = aeolus.clone();
        let with_red = format!("{name}, RED");
        facts.queues.bind(name, &with_red, &port.at);
        facts.queues.entry(&with_red).cap = Some(red.clone());
    }
    facts.schedules.bind(name, name, &port.at);
    let class_of = |id: Option<&str>| id.and_then(|id| port.classes.get(id)).cloned();
    let own = class_of(group);
    let others = class_of(Some(&default));
    let own = own.map(|class| Class {
        quantum: class_of(tiny).map_or(0, |leaf| leaf.quantum),
        priority: class_of(leaves.first().copied()).map_or(0, |leaf| leaf.priority),
        ..class
    });
    let expected =
        (intent.rates(), (u64::from(intent.weights.tiny), u64::from(intent.weights.default)));
    let ((rate_tiny, rate_default), (quanta_tiny, quanta_default)) = expected;
    let is_strict =
        own.as_ref().map(|class| class.priority) != others.as_ref().map(|class| class.priority);
    let mut share = |class: Option<Class>, rate: u64, frames: u64, weight: u64| {
        let Class { at, rate: found, ceil, quantum, .. } = class?;
        let expected_quantum = frames * intent.buffer.frame();
        // The ceil defaults to the rate: then an idle share could not be used by others.
        let ceil = ("ceil", ceil.unwrap_or(found), intent.rate);
        for (what, found, expected) in
            [("rate", found, rate), ("quantum", quantum, expected_quantum), ceil]
        {
            if found != expected {
                let remedy = "set it, or change the parameters if this was meant";
                facts.report(&at, format!("{what} {found}"), expected.to_string(), remedy);
            }
        }
        Located::some(if is_strict { Share::Strict } else { Share::Weighted(weight) }, &at)
    };
    let tiny = share(own, rate_tiny, quanta_tiny, intent.shares.0);
    let default = share(others, rate_default, quanta_default, intent.shares.1);
    let schedule = facts.schedules.entry(name);
    schedule.tiny = tiny;
    schedule.default = default;
}

/// Bits per second that a class has besides its parent's share: next to nothing, but `tc` cannot represent the time of
/// a frame at much less.
const MIN_RATE: u64 = 8_000;

/// Checks the leaves of several DSCPs: they have strict order, and send only from the share of their parent.
fn order(intent: &Intent, facts: &mut Facts, port: &Port<'_>, leaves: &[&str]) {
    let classes: Vec<&Class<'_>> = leaves.iter().map(|leaf| &port.classes[leaf]).collect();
    let expected = intent.tiny.len();
    if classes.len() != expected {
        let found = format!("{} classes in the share of the tiny queues", classes.len());
        let remedy = "each DSCP needs one: add or remove classes";
        facts.report(&port.at, found, expected.to_string(), remedy);
    }
    for pair in classes.windows(2).filter(|pair| pair[0].priority == pair[1].priority) {
        let found = format!("two tiny queues have prio {}", pair[1].priority);
        facts.report(
            &pair[1].at,
            found,
            "one after the other",
            "they would take turns: correct it",
        );
    }
    if expected == 1 {
        return;
    }
    for class in classes {
        let ceil = class.ceil.unwrap_or(class.rate);
        for (what, found, expected) in [("rate", class.rate, MIN_RATE), ("ceil", ceil, intent.rate)]
        {
            if found != expected {
                let remedy =
                    "tiny queues share their parent's rate, in order, up to the whole link: set it";
                facts.report(&class.at, format!("{what} {found}"), expected.to_string(), remedy);
            }
        }
    }
}
