//! Cumulus Linux 5: `nv set` commands, which `nv unset` takes back.

use super::facts::{Cap, EVERY_PORT, Facts, Field, Seen, Share};
use super::interfaces::named;
use super::negations::are_related;
use super::text::{File, Place, numbers};
use super::{commands, shell};
use crate::intent::Intent;
use std::collections::BTreeMap;

const NAME: &str = "default-global";
/// The most percent of the memory for the tiny queues' pool: they need far less, and other traffic cannot use a static
/// pool.
const LARGEST_POOL: u64 = 10;

/// Settings for all ports, which a port can replace by a profile of its own.
const REPLACED: [&str; 4] =
    ["congestion-control", "egress-queue-mapping", "egress-scheduler", "mapping"];

#[derive(Default)]
struct Found {
    fields: Vec<Field>,
    trusts: bool,
    /// Switch priorities whose traffic class has another number.
    classes: BTreeMap<u8, u8>,
    /// DSCPs and their switch priorities.
    dscps: Vec<Seen<(u8, u8)>>,
    strict: BTreeMap<u8, Seen<bool>>,
    percents: BTreeMap<u8, Seen<u64>>,
    /// Whether pools are static.
    pools: BTreeMap<String, bool>,
    pool: Option<Seen<String>>,
    /// Percent of the memory that each pool has.
    sizes: BTreeMap<String, Seen<u64>>,
    reserved: u64,
    bytes: Option<Seen<u64>>,
    alpha: Option<Seen<String>>,
    low: u64,
}

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let nowhere = Place { file: files[0].name.clone(), line: 0 };
    let start = (0..64).map(|dscp| Seen::new((dscp, intent.start_of(dscp)), &nowhere));
    let mut found = Found { dscps: start.collect(), ..Found::default() };
    let is_intended = |ports: &str| named(intent, ports).is_none_or(|ports| !ports.is_empty());
    facts.trimming.is_off = true;
    let told = commands(intent, files, facts).into_iter();
    for (at, line) in commands::read(intent, told, ("nv set", "nv unset"), facts) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["nv", "set", "interface", ports, "qos", kind, "profile", name]
                if name != NAME && REPLACED.contains(&kind) && is_intended(ports) =>
            {
                let found = format!("{ports} has {kind} {name}");
                let remedy = "it takes the place of the settings for all ports: remove the line";
                facts.find(&at, found, NAME, remedy);
            }
            ["nv", "set", "qos", ref rest @ ..] => of_qos(intent, &mut found, facts, rest, &at),
            ["nv", "set", "system", "forwarding", "ecmp-hash", field, on] => {
                let field = of_hash(field);
                found.fields.retain(|known| Some(*known) != field);
                found.fields.extend(field.filter(|_| matches!(on, "on" | "enabled")));
                facts.hash = Seen::some(found.fields.clone(), &at);
            }
            ["nv", "set", "system", "forwarding", "hash-seed", seed] => {
                facts.seed = seed.parse().ok().map(|seed| Seen::new(seed, &at));
            }
            [
                "nv",
                "set",
                "interface",
                ports,
                "packet-trim",
                "egress-eligibility",
                "traffic-class",
                classes,
            ] if numbers(classes).contains(&intent.queue) => {
                let eligible = &mut facts.trimming.eligible;
                let ports = named(intent, ports).unwrap_or_default();
                ports.into_iter().for_each(|port| eligible.bind(port, NAME, &at));
                eligible.entry(NAME);
            }
            ["nv", "set", "system", "forwarding", "packet-trim", ref rest @ ..] => {
                let trimming = &mut facts.trimming;
                let number = |text: &str| text.parse().ok().map(|value| Seen::new(value, &at));
                match *rest {
                    ["state", state] => trimming.is_off = state != "enabled",
                    ["size", size] => trimming.size = number(size),
                    ["remark", "dscp", dscp] => trimming.dscp = number(dscp),
                    ["switch-priority", priority] => trimming.queue = number(priority),
                    _ => {}
                }
            }
            ["nv", "set", "vrf", _, "router", "static", to, "via", via, ..] => {
                facts.routes.push(Seen::new((to.into(), via.into()), &at));
            }
            _ => {}
        }
    }
    resolve(intent, found, facts, &nowhere);
}

/// Returns the commands of scripts and of `nv config show -o commands`.
fn commands(intent: &Intent, files: &[File], facts: &mut Facts) -> Vec<(Place, String)> {
    let mut all = Vec::new();
    for command in shell::read(files, &["nv"], facts) {
        let line = command.words.join(" ");
        match command.words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["nv", "config", "apply" | "diff" | "history" | "save" | "show", ..]
            | ["nv", "show", ..] => {}
            ["nv", "config", ..] => shell::not_followed(facts, &command),
            ["nv", _, ref path @ ..] if !command.is_sure => {
                let may_be_any = path.is_empty() || path.iter().any(|word| word.starts_with('$'));
                if may_be_any || are_related(intent, path, path) {
                    shell::not_followed(facts, &command);
                }
            }
            ["nv", ..] => all.push((command.at, line)),
            _ => {}
        }
    }
    all
}

fn of_hash(field: &str) -> Option<Field> {
    Some(match field {
        "source-ip" => Field::SourceAddress,
        "destination-ip" => Field::DestinationAddress,
        "ip-protocol" => Field::Protocol,
        "source-port" => Field::SourcePort,
        "destination-port" => Field::DestinationPort,
        _ => return None,
    })
}

fn of_qos(intent: &Intent, found: &mut Found, facts: &mut Facts, words: &[&str], at: &Place) {
    let of_tiny = |classes: &str| numbers(classes).contains(&intent.queue);
    match *words {
        ["mapping", name, "trust", what] if name != NAME && what != "l3" => {
            let found = format!("mapping {name} trusts {what}");
            facts.find(at, found, "trust l3", "the DSCPs of its ports would be ignored: set it");
        }
        ["mapping", NAME, "trust", what] => found.trusts = what == "l3",
        ["mapping", NAME, "dscp", dscps, "switch-priority", priority] => {
            let Ok(priority) = priority.parse() else { return };
            let maps = numbers(dscps).into_iter().map(|dscp| Seen::new((dscp, priority), at));
            found.dscps.extend(maps);
        }
        ["egress-queue-mapping", NAME, "switch-priority", priorities, "traffic-class", class] => {
            let Ok(class) = class.parse() else { return };
            found.classes.extend(numbers(priorities).into_iter().map(|each| (each, class)));
        }
        ["egress-scheduler", NAME, "traffic-class", classes, "mode", mode] => {
            let strict = |class| (class, Seen::new(mode == "strict", at));
            found.strict.extend(numbers(classes).into_iter().map(strict));
        }
        ["egress-scheduler", NAME, "traffic-class", classes, "bw-percent", percent] => {
            let Ok(percent) = percent.parse::<u64>() else { return };
            let percent = |class| (class, Seen::new(percent, at));
            found.percents.extend(numbers(classes).into_iter().map(percent));
        }
        ["pfc", _, "switch-priority", priorities] => {
            facts.pfc.extend(numbers(priorities).into_iter().map(|each| Seen::new(each, at)));
        }
        [
            "advance-buffer-config",
            NAME,
            "egress-service-pool" | "egress-pool",
            pool,
            "mode",
            mode,
        ] => {
            found.pools.insert(pool.into(), mode == "static");
        }
        [
            "advance-buffer-config",
            NAME,
            "egress-service-pool" | "egress-pool",
            pool,
            "memory-percent",
            percent,
        ] => {
            let percent = percent.parse().map(|percent| (pool.into(), Seen::new(percent, at)));
            found.sizes.extend(percent);
        }
        [
            "advance-buffer-config",
            NAME,
            "egress-lossy-buffer",
            "traffic-class",
            classes,
            what,
            value,
        ] if of_tiny(classes) => {
            let number = value.parse::<u64>().ok();
            match what {
                "service-pool" => found.pool = Seen::some(value.into(), at),
                "reserved" => found.reserved = number.unwrap_or(0),
                "shared-bytes" => found.bytes = number.map(|bytes| Seen::new(bytes, at)),
                "shared-alpha" => found.alpha = Seen::some(value.into(), at),
                _ => {}
            }
        }
        ["congestion-control", NAME, "traffic-class", classes, what, value] if of_tiny(classes) => {
            match (what, value.parse::<u64>()) {
                ("min-threshold", Ok(value)) => found.low = value,
                ("max-threshold", Ok(value)) => {
                    facts.aeolus.bind(EVERY_PORT, NAME, at);
                    facts.aeolus.entry(NAME).bounds = Seen::some((found.low, value), at);
                }
                ("probability", Ok(percent)) => facts.aeolus.entry(NAME).is_sure = percent == 100,
                ("ecn", _) => {
                    facts.aeolus.entry(NAME).spares_ecn =
                        matches!(value, "enable" | "enabled" | "on");
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn resolve(intent: &Intent, found: Found, facts: &mut Facts, nowhere: &Place) {
    if !found.trusts {
        let remedy = "DSCPs would be ignored: nv set qos mapping default-global trust l3";
        facts.find(nowhere, "DSCPs are not trusted", "trust l3", remedy);
    }
    facts.classifiers.bind(EVERY_PORT, NAME, nowhere);
    let class = |priority: u8| found.classes.get(&priority).copied().unwrap_or(priority);
    let maps = found.dscps.iter().map(|seen| {
        let (dscp, priority) = seen.value;
        Seen::new((dscp, class(priority)), &seen.at)
    });
    facts.classifiers.entry(NAME).maps = maps.collect();
    let share = |class: u8| match found.strict.get(&class) {
        Some(Seen { value: true, at }) => Seen::some(Share::Strict, at),
        _ => {
            found.percents.get(&class).map(|seen| Seen::new(Share::Weighted(seen.value), &seen.at))
        }
    };
    facts.schedules.bind(EVERY_PORT, NAME, nowhere);
    let schedule = facts.schedules.entry(NAME);
    (schedule.tiny, schedule.default) = (share(intent.queue), share(0));
    facts.queues.bind(EVERY_PORT, NAME, nowhere);
    // Without its own pool, the queue is in pool 0, which is dynamic.
    let is_static =
        found.pool.as_ref().is_some_and(|pool| found.pools.get(&pool.value).copied() == Some(true));
    let size = found.pool.as_ref().and_then(|pool| found.sizes.get(&pool.value));
    if let Some(Seen { value, at }) = size.filter(|seen| seen.value > LARGEST_POOL) {
        let found = format!("the tiny queue's pool has {value} percent of the memory");
        let expected = format!("no more than {LARGEST_POOL}");
        facts.find(at, found, expected, "all other traffic would lack it: set 1, if it is enough");
    }
    let queue = facts.queues.entry(NAME);
    queue.cap = match (&found.alpha, &found.bytes) {
        (Some(Seen { value, at }), _) => {
            Seen::some(Cap::Not(format!("a share of the free buffer, {value}")), at)
        }
        (None, Some(Seen { at, .. })) if !is_static => {
            Seen::some(Cap::Not("bytes in a pool whose mode is not static".into()), at)
        }
        (None, Some(Seen { value, at })) => {
            Seen::some(Cap::Bytes(value.saturating_add(found.reserved)), at)
        }
        (None, None) => None,
    };
}
