//! PicOS: `set` commands, which `delete` removes.

use super::commands;
use super::facts::{Cap, Facts, Field, Located, Share};
use super::text::{File, Location, lines};
use crate::intent::Intent;
use std::collections::{BTreeMap, BTreeSet};

/// A scheduler, as far as it is configured.
#[derive(Default)]
struct Scheduler {
    share: Option<Located<Share>>,
    mode: Option<Located<bool>>,
    cells: Option<Located<u64>>,
    shared: Option<Located<String>>,
}

#[derive(Default)]
struct Found<'a> {
    /// The queue of each forwarding class.
    classes: BTreeMap<&'a str, u8>,
    /// Classifier, class, DSCP.
    points: Vec<Located<(&'a str, &'a str, u8)>>,
    schedulers: BTreeMap<&'a str, Scheduler>,
    /// Profile, class, scheduler.
    profiles: Vec<Located<(&'a str, &'a str, &'a str)>>,
    untrusting: Vec<Located<&'a str>>,
    trusting: BTreeSet<&'a str>,
}

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let mut found = Found::default();
    let mut fields = Vec::new();
    let commands = lines(files, &['#']).map(|(at, line)| (at, line.replace('"', "")));
    let in_effect = commands::read(intent, commands, "set", "delete", facts);
    for (at, line) in &in_effect {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["set", "class-of-service", rest @ ..] => of_service(&mut found, facts, rest, at),
            ["set", "interface", "ecmp", "hash-mapping", "field", field, "disable", "false"] => {
                fields.extend(of_hash(field));
                facts.hash = Located::some(fields.clone(), at);
            }
            ["set", "interface", "ecmp", "hash-mapping", "field", field, "disable", "true"] => {
                fields.retain(|known| Some(*known) != of_hash(field));
                facts.hash = Located::some(fields.clone(), at);
            }
            ["set", "protocols", "static", "route", to, "next-hop", via] => {
                facts.routes.push(Located::new(((*to).into(), (*via).into()), at));
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

fn of_service<'a>(found: &mut Found<'a>, facts: &mut Facts, words: &[&'a str], at: &Location) {
    match *words {
        ["forwarding-class", class, "local-priority", queue] => {
            found.classes.extend(queue.parse::<u8>().map(|queue| (class, queue)));
        }
        ["classifier", name, "forwarding-class", class, "code-point", dscp] => {
            let point = dscp.parse().map(|dscp| Located::new((name, class, dscp), at));
            found.points.extend(point);
        }
        ["classifier", name, "trust-mode", mode] => {
            if mode == "dscp" {
                found.trusting.insert(name);
            } else {
                found.untrusting.push(Located::new(name, at));
            }
        }
        ["scheduler", name, ref setting @ ..] => {
            scheduler(found.schedulers.entry(name).or_default(), setting, at);
        }
        ["scheduler-profile", profile, "forwarding-class", class, "scheduler", scheduler] => {
            found.profiles.push(Located::new((profile, class, scheduler), at));
        }
        ["interface", port, "classifier", name] => facts.classifiers.bind(port, name, at),
        ["interface", port, "scheduler-profile", name] => {
            facts.queues.bind(port, name, at);
            facts.schedules.bind(port, name, at);
        }
        ["pfc-profile", _, "code-point", point, ..] => {
            facts.pfc.extend(point.parse().map(|point| Located::new(point, at)));
        }
        _ => {}
    }
}

fn scheduler(scheduler: &mut Scheduler, words: &[&str], at: &Location) {
    let value = |text: &str| text.parse::<u64>().ok().map(|value| Located::new(value, at));
    match *words {
        ["mode", mode] => scheduler.mode = Located::some(mode == "SP", at),
        ["weight", weight] => {
            scheduler.share =
                value(weight).map(|weight| Located::new(Share::Weighted(weight.value), at));
        }
        ["buffer", "queue-limit", cells] => scheduler.cells = value(cells),
        ["buffer", "shared", on] if !matches!(on, "false" | "disable") => {
            scheduler.shared = Located::some(format!("buffer shared {on}"), at);
        }
        _ => {}
    }
}

fn resolve(intent: &Intent, mut found: Found<'_>, facts: &mut Facts) {
    for Located { value: (name, class, dscp), at } in &found.points {
        // A class without a local priority has no queue of its own.
        let queue = found.classes.get(class).copied().unwrap_or(0);
        facts.classifiers.entry(name).maps.push(Located::new((*dscp, queue), at));
    }
    let mut silent = BTreeMap::new();
    for Located { value: (name, ..), at } in &found.points {
        if !found.trusting.contains(name) && found.untrusting.iter().all(|seen| seen.value != *name)
        {
            silent.entry(*name).or_insert(at);
        }
    }
    found.untrusting.extend(silent.into_iter().map(|(name, at)| Located::new(name, at)));
    for Located { value: name, at } in &found.untrusting {
        facts.report(
            at,
            format!("classifier {name} does not trust DSCPs"),
            "trust-mode \"dscp\"",
            "packets would all be in one queue: set it",
        );
    }
    for Located { value: (profile, class, name), at } in &found.profiles {
        let Some(queue) = found.classes.get(class).copied() else { continue };
        let Some(scheduler) = found.schedulers.get_mut(name) else {
            let missing = format!("{profile} refers to scheduler {name}, which is not there");
            facts.report(
                at,
                missing,
                "a scheduler with that name",
                "define it, or correct the name",
            );
            continue;
        };
        if scheduler.mode.is_none() && (queue == intent.queue || queue == 0) {
            let found = format!("scheduler {name} has no mode");
            facts.report(at, found, "mode \"WRR\"", "without one it may be strict: set it");
        }
        let share = match &scheduler.mode {
            Some(Located { value: true, at }) => Located::some(Share::Strict, at),
            _ => scheduler.share.clone(),
        };
        let queues = facts.queues.entry(profile);
        let schedules = facts.schedules.entry(profile);
        if queue == intent.queue {
            schedules.tiny = share;
            let cells = scheduler.cells.take();
            queues.cap = cells.map(|cells| {
                Located::new(Cap::Bytes(cells.value.saturating_mul(intent.buffer.cell)), &cells.at)
            });
            queues.borrows.extend(scheduler.shared.take());
        } else if queue == 0 {
            schedules.default = share;
        }
    }
}
