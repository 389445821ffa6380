//! Cisco NX-OS: blocks.

use super::blocks::{self, Block, alone};
use super::facts::{Aeolus, Cap, EVERY_PORT, Facts, Field, Located, Share};
use super::text::{File, numbers};
use crate::intent::Intent;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of each class that match anything besides DSCPs.
type Matches<'a> = BTreeMap<&'a str, Vec<Located<&'a str>>>;

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let blocks = blocks::read(intent, files, facts);
    let mut dscps: BTreeMap<&str, Vec<Located<u8>>> = BTreeMap::new();
    let mut others: Matches<'_> = Matches::new();
    let mut loopbacks: BTreeMap<String, &str> = BTreeMap::new();
    for block in &blocks {
        if let Some(rest) = block.after("class-map type qos") {
            let name = rest.rsplit(' ').next().unwrap_or(rest);
            dscps.entry(name).or_default();
            for inner in &block.inner {
                if inner.line.starts_with("match ") && inner.after("match dscp").is_none() {
                    others
                        .entry(name)
                        .or_default()
                        .push(Located::new(inner.line.as_str(), &inner.at));
                }
                let all = numbers(inner.after("match dscp").unwrap_or(""));
                let all = all.into_iter().map(|dscp| Located::new(dscp, &inner.at));
                dscps.entry(name).or_default().extend(all);
            }
        }
        if let Some(name) = block.after("interface")
            && let Some(address) = block.last(|inner| inner.after("ip address"))
        {
            loopbacks.insert(name.to_lowercase(), address.split('/').next().unwrap_or(address));
        }
    }
    let mut queuing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for block in &blocks {
        if let Some(name) = block.after("policy-map type qos") {
            marking(facts, name, block, &dscps);
            for class in &block.inner {
                let group = class.last(|inner| inner.after("set qos-group"));
                let Some(of) = class.class() else { continue };
                let is_tiny = group.and_then(|group| group.parse().ok()) == Some(intent.queue);
                for Located { value: line, at } in
                    others.get(of).into_iter().flatten().filter(|_| is_tiny)
                {
                    alone(facts, line, at);
                }
            }
        } else if let Some(name) = block.after("policy-map type queuing") {
            let classes = queuing.entry(name).or_default();
            for class in &block.inner {
                let Some(of) = class.class() else { continue };
                classes.insert(of);
                queue(intent, facts, name, of, class);
            }
        } else if block.line == "system qos" {
            bind(facts, EVERY_PORT, block);
        } else if let Some(port) = block.after("interface") {
            bind(facts, port, block);
            decapsulation(facts, block, &loopbacks);
        } else {
            other(facts, block);
        }
        pfc(facts, block);
    }
    if !blocks.iter().any(|block| block.line == "feature tunnel") {
        facts.decapsulates.clear();
    }
    for (name, classes) in queuing {
        let all = (1..8).map(|n| format!("c-out-8q-q{n}")).chain(["c-out-8q-q-default".into()]);
        let missing: Vec<String> = all.filter(|class| !classes.contains(class.as_str())).collect();
        let bound = facts.queues.bound.iter().find(|bound| bound.value.1 == name);
        if let (false, Some(at)) = (missing.is_empty(), bound.map(|bound| bound.at.clone())) {
            let found = format!("{name} lacks {}", missing.join(", "));
            let remedy =
                "NX-OS refuses a policy that does not name them all: add them, at 0 percent";
            facts.report(&at, found, "all eight queues", remedy);
        }
    }
}

/// Reads the group of each class's packets, which is their queue.
fn marking(facts: &mut Facts, name: &str, block: &Block, dscps: &BTreeMap<&str, Vec<Located<u8>>>) {
    let classifier = facts.classifiers.entry(name);
    // The first matching class counts, but the judge takes the last.
    for class in block.inner.iter().rev() {
        let group = class.last(|inner| inner.after("set qos-group")?.parse().ok());
        let Some(of) = class.class() else { continue };
        let all = dscps.get(of).into_iter().flatten();
        let maps = all.map(|dscp| Located::new((dscp.value, group.unwrap_or(0)), &dscp.at));
        classifier.maps.extend(maps);
    }
}

fn queue(intent: &Intent, facts: &mut Facts, name: &str, of: &str, class: &Block) {
    let own = format!("c-out-8q-q{}", intent.queue);
    facts.queues.entry(name);
    facts.schedules.entry(name);
    facts.aeolus.entry(name);
    for inner in &class.inner {
        let share = match inner.number("percent") {
            _ if inner.line.starts_with("priority") => Some(Share::Strict),
            Some(percent) if inner.line.starts_with("bandwidth") => Some(Share::Weighted(percent)),
            _ => None,
        };
        let share = share.map(|share| Located::new(share, &inner.at));
        if of == own {
            let schedule = facts.schedules.entry(name);
            schedule.tiny = share.or(schedule.tiny.take());
            if let Some(limit) = inner.after("queue-limit") {
                facts.queues.entry(name).cap = Located::some(cap(limit), &inner.at);
            }
            if let Some(bounds) = blocks::bounds(inner) {
                *facts.aeolus.entry(name) = Aeolus {
                    bounds: Located::some(bounds, &inner.at),
                    spares_ecn: inner.words().contains(&"ecn"),
                    drops_all: inner.number("drop-probability") == Some(100)
                        && inner.number("weight") == Some(0),
                };
            }
        } else if of == "c-out-8q-q-default" {
            let schedule = facts.schedules.entry(name);
            schedule.default = share.or(schedule.default.take());
        } else if let (Some(Located { value: Share::Weighted(percent), .. }), false) =
            (share, (intent.tiny.iter()).any(|tiny| of == format!("c-out-8q-q{}", tiny.queue)))
        {
            let schedule = facts.schedules.entry(name);
            schedule.others = schedule.others.saturating_add(percent);
        }
    }
}

fn cap(limit: &str) -> Cap {
    let words: Vec<&str> = limit.split_whitespace().collect();
    match words[..] {
        [number] | [number, "packets"] if number.parse::<u64>().is_ok() => {
            Cap::Packets(number.parse().unwrap_or(0))
        }
        [number, unit] => {
            blocks::bytes(number, unit).map_or_else(|| Cap::Other(limit.into()), Cap::Bytes)
        }
        _ => Cap::Other(limit.into()),
    }
}

fn bind(facts: &mut Facts, port: &str, block: &Block) {
    for inner in &block.inner {
        if let Some(name) = inner.after("service-policy type qos input") {
            facts.classifiers.bind(port, name, &inner.at);
        } else if let Some(name) = inner.after("service-policy type queuing output") {
            facts.queues.bind(port, name, &inner.at);
            facts.aeolus.bind(port, name, &inner.at);
            facts.schedules.bind(port, name, &inner.at);
        }
    }
}

fn decapsulation(facts: &mut Facts, block: &Block, loopbacks: &BTreeMap<String, &str>) {
    let is_ipip = block.inner.iter().any(|inner| inner.line.starts_with("tunnel mode ipip"));
    let source = block.last(|inner| inner.after("tunnel source"));
    if let (true, Some(source)) = (is_ipip, source) {
        let address = loopbacks.get(&source.to_lowercase()).copied().unwrap_or(source);
        facts.decapsulates.push(Located::new(address.to_owned(), &block.at));
    }
}

fn other(facts: &mut Facts, block: &Block) {
    if let Some(rest) = block.after("ip load-sharing address") {
        let mut fields = vec![Field::Protocol];
        let (addresses, ports) = rest.split_once("port").unwrap_or((rest, ""));
        if addresses.contains("source") {
            fields.push(Field::SourceAddress);
        }
        if addresses.contains("destination") {
            fields.push(Field::DestinationAddress);
        }
        if ports.contains("source") {
            fields.push(Field::SourcePort);
        }
        if ports.contains("destination") {
            fields.push(Field::DestinationPort);
        }
        facts.hash = Located::some(fields, &block.at);
        facts.seed = block.number("universal-id").map(|seed| Located::new(seed, &block.at));
    } else if let ["ip", "route", to, ref rest @ ..] = block.words()[..]
        && let Some(via) = blocks::next_hop(rest)
    {
        facts.routes.push(Located::new((to.into(), via.into()), &block.at));
    }
}

fn pfc(facts: &mut Facts, block: &Block) {
    if let Some(queues) = block.after("pause pfc-cos") {
        facts.pfc.extend(numbers(queues).into_iter().map(|queue| Located::new(queue, &block.at)));
    }
    block.inner.iter().for_each(|inner| pfc(facts, inner));
}
