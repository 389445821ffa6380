//! Dell OS10: blocks.

use super::blocks::{self, Block};
use super::facts::{Cap, EVERY_PORT, Facts, Field, Located, Share};
use super::text::{File, numbers};
use crate::intent::Intent;
use std::collections::BTreeMap;

/// Bytes in a KB of OS10.
const KILOBYTE: u64 = 1024;

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let blocks = blocks::read(intent, files, facts);
    // Groups whose queue has another number.
    let mut queues: BTreeMap<u8, u8> = BTreeMap::new();
    // The queue of each class map.
    let mut classes: BTreeMap<&str, u8> = BTreeMap::new();
    for block in &blocks {
        if block.after("qos-map traffic-class").is_some() {
            for inner in &block.inner {
                let Some(queue) = inner.after("queue").and_then(|_| inner.number("queue")) else {
                    continue;
                };
                let Ok(queue) = u8::try_from(queue) else { continue };
                let groups = inner.words().get(3).copied().unwrap_or("");
                queues.extend(numbers(groups).into_iter().map(|group| (group, queue)));
            }
        }
        if let Some(name) = block.after("class-map type queuing") {
            let queue = block.last(|inner| inner.after("match queue")?.parse().ok());
            classes.extend(queue.map(|queue: u8| (name, queue)));
        }
    }
    let queue_of =
        |class: &Block| class.after("class").and_then(|class| classes.get(class)).copied();
    let mut dropping: BTreeMap<&str, &str> = BTreeMap::new();
    for block in &blocks {
        let Some(name) = block.after("policy-map type queuing") else { continue };
        for class in &block.inner {
            let profile = class.last(|inner| inner.after("random-detect"));
            let profile = profile.filter(|_| queue_of(class) == Some(intent.queue));
            dropping.extend(profile.map(|profile| (name, profile)));
        }
    }
    for block in &blocks {
        if let Some(name) = block.after("trust dscp-map") {
            for inner in &block.inner {
                let words = inner.words();
                let ["qos-group", group, "dscp", dscps] = words[..] else { continue };
                let Ok(group) = group.parse::<u8>() else { continue };
                let queue = queues.get(&group).copied().unwrap_or(group);
                let maps =
                    numbers(dscps).into_iter().map(|dscp| Located::new((dscp, queue), &inner.at));
                facts.classifiers.entry(name).maps.extend(maps);
            }
        } else if let Some(name) = block.after("policy-map type queuing") {
            facts.queues.entry(name);
            facts.schedules.entry(name);
            for class in &block.inner {
                policy(intent, facts, name, queue_of(class), class);
            }
        } else if let Some(port) = block.after("interface") {
            bind(facts, port, block, &dropping);
        } else if block.line == "system qos" {
            bind(facts, EVERY_PORT, block, &dropping);
        } else {
            other(facts, block);
        }
        pfc(facts, block);
    }
}

fn bind(facts: &mut Facts, port: &str, block: &Block, dropping: &BTreeMap<&str, &str>) {
    for inner in &block.inner {
        if let Some(name) = inner.after("trust-map dscp") {
            facts.classifiers.bind(port, name, &inner.at);
        } else if let Some(name) = inner.after("service-policy output type queuing") {
            facts.queues.bind(port, name, &inner.at);
            facts.schedules.bind(port, name, &inner.at);
            if let Some(profile) = dropping.get(name) {
                facts.aeolus.bind(port, profile, &inner.at);
            }
        }
    }
}

fn policy(intent: &Intent, facts: &mut Facts, name: &str, queue: Option<u8>, class: &Block) {
    let mut share = None;
    for inner in &class.inner {
        if let Some(percent) = inner.after("bandwidth").and_then(|_| inner.number("percent")) {
            share = Located::some(Share::Weighted(percent), &inner.at);
        } else if inner.line.starts_with("priority") {
            share = Located::some(Share::Strict, &inner.at);
        } else if inner.line.starts_with("queue-limit") && queue == Some(intent.queue) {
            let len = inner.number("queue-len");
            let fixed = inner.number("static");
            let cap = match (len, fixed) {
                (Some(len), Some(fixed)) => {
                    Cap::Bytes(len.saturating_add(fixed).saturating_mul(KILOBYTE))
                }
                _ => Cap::Other(format!("a share of the free buffer, {}", inner.line)),
            };
            facts.queues.entry(name).cap = Located::some(cap, &inner.at);
        }
    }
    let schedule = facts.schedules.entry(name);
    match queue {
        Some(0) => schedule.default = share,
        Some(queue) if queue == intent.queue && share.is_some() => schedule.tiny = share,
        _ => {}
    }
}

fn other(facts: &mut Facts, block: &Block) {
    let words = block.words();
    match words[..] {
        ["load-balancing", "ip-selection", ref fields @ ..] => {
            let field = |word: &&str| match *word {
                "source-ip" => Some(Field::SourceAddress),
                "destination-ip" => Some(Field::DestinationAddress),
                "protocol" => Some(Field::Protocol),
                "l4-source-port" => Some(Field::SourcePort),
                "l4-destination-port" => Some(Field::DestinationPort),
                _ => None,
            };
            facts.hash = Located::some(fields.iter().filter_map(field).collect(), &block.at);
        }
        ["hash-algorithm", "seed", seed] => {
            facts.seed = seed.parse().ok().map(|seed| Located::new(seed, &block.at));
        }
        ["ip", "route", to, ref rest @ ..] => {
            let via = blocks::next_hop(rest);
            facts.routes.extend(via.map(|via| Located::new((to.into(), via.into()), &block.at)));
        }
        ["wred", name] => {
            facts.aeolus.entry(name).spares_ecn =
                block.inner.iter().any(|inner| inner.line == "random-detect ecn");
            for inner in block.inner.iter().filter(|inner| inner.after("random-detect").is_some()) {
                let both = inner.number("minimum-threshold").zip(inner.number("maximum-threshold"));
                if let Some((low, high)) = both {
                    let bytes = (low.saturating_mul(KILOBYTE), high.saturating_mul(KILOBYTE));
                    let aeolus = facts.aeolus.entry(name);
                    aeolus.bounds = Located::some(bytes, &inner.at);
                    aeolus.drops_all = inner.number("drop-probability") == Some(100);
                }
            }
        }
        _ => {}
    }
}

fn pfc(facts: &mut Facts, block: &Block) {
    if let Some(queues) = block.after("pfc-cos") {
        facts.pfc.extend(numbers(queues).into_iter().map(|queue| Located::new(queue, &block.at)));
    }
    block.inner.iter().for_each(|inner| pfc(facts, inner));
}
