//! PicOS: `set` commands, which `delete` takes back.

use super::commands;
use super::facts::{Cap, Facts, Field, Seen, Share};
use super::text::{File, Place, lines};
use crate::intent::Intent;
use std::collections::{BTreeMap, BTreeSet};

/// A scheduler, as far as it is configured.
#[derive(Default)]
struct Scheduler {
    share: Option<Seen<Share>>,
    mode: Option<Seen<bool>>,
    cells: Option<Seen<u64>>,
    shared: Option<Seen<String>>,
}

#[derive(Default)]
struct Found<'a> {
    /// The queue of each forwarding class.
    classes: BTreeMap<&'a str, u8>,
    /// Classifier, class, DSCP.
    points: Vec<Seen<(&'a str, &'a str, u8)>>,
    schedulers: BTreeMap<&'a str, Scheduler>,
    /// Profile, class, scheduler.
    profiles: Vec<Seen<(&'a str, &'a str, &'a str)>>,
    untrusting: Vec<Seen<&'a str>>,
    trusting: BTreeSet<&'a str>,
}

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let mut found = Found::default();
    let mut fields = Vec::new();
    let commands = lines(files, &['#']).map(|(at, line)| (at, line.replace('"', "")));
    let told = commands::read(intent, commands, ("set", "delete"), facts);
    for (at, line) in &told {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["set", "class-of-service", rest @ ..] => of_service(&mut found, facts, rest, at),
            ["set", "interface", "ecmp", "hash-mapping", "field", field, "disable", "false"] => {
                fields.extend(of_hash(field));
                facts.hash = Seen::some(fields.clone(), at);
            }
            ["set", "interface", "ecmp", "hash-mapping", "field", field, "disable", "true"] => {
                fields.retain(|known| Some(*known) != of_hash(field));
                facts.hash = Seen::some(fields.clone(), at);
            }
            ["set", "protocols", "static", "route", to, "next-hop", via] => {
                facts.routes.push(Seen::new(((*to).into(), (*via).into()), at));
            }
            _ => {}
        }
    }
    resolve(intent, found, facts);
}

fn of_hash(field: &str) -> Option<Field> {
    Some(match field {
        "ip-source" => Field::SourceAddress,
        "ip-destination" => Field::DestinationAddress,
        "ip-protocol" => Field::Protocol,
        "port-source" => Field::SourcePort,
        "port-destination" => Field::DestinationPort,
        _ => return None,
    })
}

fn of_service<'a>(found: &mut Found<'a>, facts: &mut Facts, words: &[&'a str], at: &Place) {
    match *words {
        ["forwarding-class", class, "local-priority", queue] => {
            found.classes.extend(queue.parse::<u8>().map(|queue| (class, queue)));
        }
        ["classifier", name, "forwarding-class", class, "code-point", dscp] => {
            let point = dscp.parse().map(|dscp| Seen::new((name, class, dscp), at));
            found.points.extend(point);
        }
        ["classifier", name, "trust-mode", mode] => {
            if mode == "dscp" {
                found.trusting.insert(name);
            } else {
                found.untrusting.push(Seen::new(name, at));
            }
        }
        ["scheduler", name, ref told @ ..] => {
            scheduler(found.schedulers.entry(name).or_default(), told, at);
        }
        ["scheduler-profile", profile, "forwarding-class", class, "scheduler", scheduler] => {
            found.profiles.push(Seen::new((profile, class, scheduler), at));
        }
        ["interface", port, "classifier", name] => facts.classifiers.bind(port, name, at),
        ["interface", port, "scheduler-profile", name] => {
            facts.queues.bind(port, name, at);
            facts.schedules.bind(port, name, at);
        }
        ["pfc-profile", _, "code-point", point, ..] => {
            facts.pfc.extend(point.parse().map(|point| Seen::new(point, at)));
        }
        _ => {}
    }
}

fn scheduler(scheduler: &mut Scheduler, words: &[&str], at: &Place) {
    let value = |text: &str| text.parse::<u64>().ok().map(|value| Seen::new(value, at));
    match *words {
        ["mode", mode] => scheduler.mode = Seen::some(mode == "SP", at),
        ["weight", weight] => {
            scheduler.share =
                value(weight).map(|weight| Seen::new(Share::Weighted(weight.value), at));
        }
        ["buffer", "queue-limit", cells] => scheduler.cells = value(cells),
        ["buffer", "shared", on] if !matches!(on, "false" | "disable") => {
            scheduler.shared = Seen::some(format!("buffer shared {on}"), at);
        }
        _ => {}
    }
}

fn resolve(intent: &Intent, mut found: Found<'_>, facts: &mut Facts) {
    for Seen { value: (name, class, dscp), at } in &found.points {
        // A class without a local priority has no queue of its own.
        let queue = found.classes.get(class).copied().unwrap_or(0);
        facts.classifiers.entry(name).maps.push(Seen::new((*dscp, queue), at));
    }
    let mut silent = BTreeMap::new();
    for Seen { value: (name, ..), at } in &found.points {
        if !found.trusting.contains(name) && found.untrusting.iter().all(|seen| seen.value != *name)
        {
            silent.entry(*name).or_insert(at);
        }
    }
    found.untrusting.extend(silent.into_iter().map(|(name, at)| Seen::new(name, at)));
    for Seen { value: name, at } in &found.untrusting {
        facts.find(
            at,
            format!("classifier {name} does not trust DSCPs"),
            "trust-mode \"dscp\"",
            "packets would all be in one queue: set it",
        );
    }
    for Seen { value: (profile, class, name), at } in &found.profiles {
        let Some(queue) = found.classes.get(class).copied() else { continue };
        let Some(scheduler) = found.schedulers.get_mut(name) else {
            let missing = format!("{profile} refers to scheduler {name}, which is not there");
            facts.find(at, missing, "a scheduler with that name", "define it, or correct the name");
            continue;
        };
        if scheduler.mode.is_none() && (queue == intent.queue || queue == 0) {
            let found = format!("scheduler {name} has no mode");
            facts.find(at, found, "mode \"WRR\"", "without one it may be strict: set it");
        }
        let share = match &scheduler.mode {
            Some(Seen { value: true, at }) => Seen::some(Share::Strict, at),
            _ => scheduler.share.clone(),
        };
        let (queues, schedules) = (facts.queues.entry(profile), facts.schedules.entry(profile));
        if queue == intent.queue {
            schedules.tiny = share;
            let cells = scheduler.cells.take();
            queues.cap = cells.map(|cells| {
                Seen::new(Cap::Bytes(cells.value.saturating_mul(intent.buffer.cell)), &cells.at)
            });
            queues.borrows.extend(scheduler.shared.take());
        } else if queue == 0 {
            schedules.default = share;
        }
    }
}
