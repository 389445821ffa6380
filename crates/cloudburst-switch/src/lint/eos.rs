//! Arista EOS: blocks.

use super::blocks::{self, Block};
use super::facts::{Aeolus, Cap, Facts, Field, Located, Share};
use super::text::{File, Location, numbers};
use crate::intent::Intent;
use std::collections::BTreeMap;

const MAP: &str = "qos map dscp";
/// The least share of the free buffer that EOS takes.
const MIN_THRESHOLD: &str = "1/64";

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let whole_file = Location { file: files[0].name.clone(), line: 0 };
    // EOS has a class for each DSCP by default, so that all 64 have one before the first line.
    let mut maps: Vec<_> =
        (0..64).map(|dscp| Located::new((dscp, intent.default_class(dscp)), &whole_file)).collect();
    // Classes whose queue has another number.
    let mut queues: BTreeMap<u8, u8> = BTreeMap::new();
    // The threshold of the tiny queue in each profile, and the profile that is applied.
    let mut thresholds: BTreeMap<&str, Option<Located<&str>>> = BTreeMap::new();
    let mut reserved: BTreeMap<&str, Option<Located<u64>>> = BTreeMap::new();
    let mut applied = None;
    let blocks = blocks::read(intent, files, facts);
    for block in &blocks {
        let words = block.words();
        if let Some(rest) = block.after(MAP)
            && let Some((dscps, class)) = rest.split_once(" to traffic-class ")
        {
            let Ok(class) = class.parse() else { continue };
            let all = numbers(dscps).into_iter().map(|dscp| Located::new((dscp, class), &block.at));
            maps.extend(all);
            continue;
        }
        match words[..] {
            ["qos", "map", "traffic-class", class, "to", "tx-queue", queue] => {
                let queue = queue.parse().ok();
                queues.extend(numbers(class).into_iter().zip(queue));
            }
            ["platform", "trident", "mmu", "queue", "profile", name, "apply"] => {
                applied = Some(name)
            }
            ["platform", "trident", "mmu", "queue", "profile", name] => {
                let queue = intent.queue.to_string();
                let threshold = block.last(|inner| match inner.words()[..] {
                    ["egress", "unicast", "queue", of, "threshold", share] if of == queue => {
                        Located::some(share, &inner.at)
                    }
                    _ => None,
                });
                thresholds.insert(name, threshold);
                let of_tiny = block.last(|inner| match inner.words()[..] {
                    ["egress", "unicast", "queue", of, "reserved", "bytes", number]
                        if of == queue =>
                    {
                        Located::some(number.parse().ok()?, &inner.at)
                    }
                    _ => None,
                });
                reserved.insert(name, of_tiny);
            }
            ["interface", port] => interface(intent, facts, port, block),
            ["ip", "decap-group", _] => decapsulation(facts, block),
            ["ip", "route", to, ref rest @ ..] => {
                let via = blocks::next_hop(rest);
                let route = via.map(|via| Located::new((to.into(), via.into()), &block.at));
                facts.routes.extend(route);
            }
            ["ip", "load-sharing", "trident", "fields", "ip", ref fields @ ..] => {
                facts.hash = Located::some(hash(fields), &block.at);
            }
            ["ip", "load-sharing", "trident", seed] => {
                facts.seed = seed.parse().ok().map(|seed| Located::new(seed, &block.at));
            }
            _ => {}
        }
    }
    let classifier = facts.classifiers.entry(MAP);
    classifier.maps.extend(maps.into_iter().map(|map| {
        let (dscp, class) = map.value;
        Located::new((dscp, queues.get(&class).copied().unwrap_or(class)), &map.at)
    }));
    let reserved = applied.and_then(|name| reserved.remove(name)).flatten();
    if let Some(Located { value, at }) = reserved.filter(|seen| seen.value > intent.limit.bytes) {
        let found = format!("{value} bytes are reserved for the tiny queue");
        let expected = format!("no more than its limit, {} bytes", intent.limit.bytes);
        facts.report(&at, found, expected, "all other queues would lack them: reserve one packet");
    }
    let threshold = applied.and_then(|name| thresholds.remove(name)).flatten();
    match threshold {
        Some(Located { value: MIN_THRESHOLD, .. }) => {}
        Some(Located { value, at }) => shared(facts, &at, &format!("a threshold of {value}")),
        None => shared(facts, &whole_file, "no MMU profile applied that has a threshold for it"),
    }
}

fn shared(facts: &mut Facts, at: &Location, found: &str) {
    let remedy = "it would borrow from the shared buffer: set the least threshold, and apply";
    facts.report(
        at,
        format!("the tiny queue has {found}"),
        format!("a threshold of {MIN_THRESHOLD}"),
        remedy,
    );
}

fn hash(fields: &[&str]) -> Vec<Field> {
    let field = |word: &&str| match *word {
        "source-ip" => Some(Field::SourceAddress),
        "destination-ip" => Some(Field::DestinationAddress),
        "source-port" => Some(Field::SourcePort),
        "destination-port" => Some(Field::DestinationPort),
        _ => None,
    };
    // The protocol is always included, and has no keyword.
    fields.iter().filter_map(field).chain([Field::Protocol]).collect()
}

fn interface(intent: &Intent, facts: &mut Facts, port: &str, block: &Block) {
    let default = intent.platform.default_queue();
    let trust =
        |inner| Some((Block::after(inner, "qos trust").or(inner.after("no qos trust"))?, inner));
    if let Some((what, inner)) = block.last(trust) {
        facts.classifiers.bind(port, MAP, &inner.at);
        let is_intended = intent.ports.iter().any(|own| own == port);
        if is_intended && inner.line != "qos trust dscp" {
            let what = if inner.line.starts_with("no ") { "no marks" } else { what };
            let remedy = "DSCPs would be ignored: remove the line";
            facts.report(&inner.at, format!("{port} trusts {what}"), "qos trust dscp", remedy);
        }
    }
    for inner in &block.inner {
        if let Some(priority) = inner.after("priority-flow-control priority") {
            let is_on = priority.ends_with(" no-drop");
            let queues = numbers(priority.trim_end_matches(" no-drop"));
            let all = queues.into_iter().filter(|_| is_on);
            facts.pfc.extend(all.map(|queue| Located::new(queue, &inner.at)));
        } else if let Some(number) = inner.after("uc-tx-queue") {
            let Ok(number) = number.parse::<u8>() else { continue };
            if number == intent.queue {
                tiny(facts, port, inner);
            } else if number == default {
                facts.schedules.entry(port).default = share(inner);
            }
        }
    }
}

fn tiny(facts: &mut Facts, port: &str, block: &Block) {
    facts.queues.bind(port, port, &block.at);
    facts.schedules.bind(port, port, &block.at);
    facts.queues.entry(port);
    facts.schedules.entry(port).tiny = share(block);
    for inner in &block.inner {
        let drop = inner.after("random-detect drop");
        let ecn = inner.after("random-detect ecn");
        match (drop, ecn, blocks::bounds(inner)) {
            (Some(_), _, Some((low, high))) => {
                let likely = inner.number("drop-probability");
                let weight = inner.number("weight");
                let is_sharp = low == high && likely == Some(100) && weight == Some(0);
                let cap = if is_sharp {
                    Cap::Bytes(low)
                } else {
                    Cap::Other(format!("WRED from {low} to {high} bytes, by chance or by average"))
                };
                facts.queues.entry(port).cap = Located::some(cap, &inner.at);
            }
            (_, Some(_), Some(bounds)) => {
                facts.aeolus.bind(port, port, &inner.at);
                *facts.aeolus.entry(port) = Aeolus {
                    bounds: Located::some(bounds, &inner.at),
                    spares_ecn: true,
                    drops_all: inner.number("max-mark-probability") == Some(100)
                        && inner.number("weight") == Some(0),
                };
            }
            _ => {}
        }
    }
}

/// Returns the share of a queue. By default a queue is strict.
fn share(block: &Block) -> Option<Located<Share>> {
    let is_priority = |inner: &&Block| {
        ["priority", "no priority", "default priority"]
            .iter()
            .any(|line| inner.after(line).is_some())
    };
    match block.inner.iter().rev().find(is_priority) {
        Some(inner) if inner.line.starts_with("no ") => block.last(|inner| {
            inner.after("bandwidth")?;
            Located::some(Share::Weighted(inner.number("percent")?), &inner.at)
        }),
        Some(inner) => Located::some(Share::Strict, &inner.at),
        None => Located::some(Share::Strict, &block.at),
    }
}

fn decapsulation(facts: &mut Facts, block: &Block) {
    if !block.inner.iter().any(|inner| inner.line == "tunnel type ipip") {
        return;
    }
    let addresses = block.inner.iter().filter_map(|inner| {
        inner.after("tunnel decap-ip").map(|address| Located::new(address.to_owned(), &inner.at))
    });
    facts.decapsulates.extend(addresses);
}
