//! Cumulus Linux 5: `nv set` commands, which `nv unset` removes.

use super::facts::{Cap, EVERY_PORT, Facts, Field, Located, Share};
use super::interfaces::named;
use super::negations::are_related;
use super::text::{File, Location, numbers};
use super::{commands, shell};
use crate::intent::Intent;
use std::collections::BTreeMap;

const NAME: &str = "default-global";
/// The most percent of the memory for the tiny queues' pool: they need far less, and other traffic cannot use a static
/// pool.
const MAX_POOL_PERCENT: u64 = 10;

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
    dscps: Vec<Located<(u8, u8)>>,
    strict: BTreeMap<u8, Located<bool>>,
    percents: BTreeMap<u8, Located<u64>>,
    /// Whether pools are static.
    pools: BTreeMap<String, bool>,
    pool: Option<Located<String>>,
    /// Percent of the memory that each pool has.
    sizes: BTreeMap<String, Located<u64>>,
    reserved: u64,
    bytes: Option<Located<u64>>,
    alpha: Option<Located<String>>,
    low: u64,
}

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let whole_file = Location { file: files[0].name.clone(), line: 0 };
    let start = (0..64).map(|dscp| Located::new((dscp, intent.default_class(dscp)), &whole_file));
    let mut found = Found { dscps: start.collect(), ..Found::default() };
    let is_intended = |ports: &str| named(intent, ports).is_none_or(|ports| !ports.is_empty());
    facts.trimming.is_off = true;
    let written = commands(intent, files, facts).into_iter();
    for (at, line) in commands::read(intent, written, "nv set", "nv unset", facts) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["nv", "set", "interface", ports, "qos", kind, "profile", name]
                if name != NAME && REPLACED.contains(&kind) && is_intended(ports) =>
            {
                let found = format!("{ports} has {kind} {name}");
                let remedy = "it takes the place of the settings for all ports: remove the line";
                facts.report(&at, found, NAME, remedy);
            }
            ["nv", "set", "qos", ref rest @ ..] => of_qos(intent, &mut found, facts, rest, &at),
            ["nv", "set", "system", "forwarding", "ecmp-hash", field, on] => {
                let field = of_hash(field);
                found.fields.retain(|known| Some(*known) != field);
                found.fields.extend(field.filter(|_| matches!(on, "on" | "enabled")));
                facts.hash = Located::some(found.fields.clone(), &at);
            }
            ["nv", "set", "system", "forwarding", "hash-seed", seed] => {
                facts.seed = seed.parse().ok().map(|seed| Located::new(seed, &at));
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
                let number = |text: &str| text.parse().ok().map(|value| Located::new(value, &at));
                match *rest {
                    ["state", state] => trimming.is_off = state != "enabled",
                    ["size", size] => trimming.size = number(size),
                    ["remark", "dscp", dscp] => trimming.dscp = number(dscp),
                    ["switch-priority", priority] => trimming.queue = number(priority),
                    _ => {}
                }
            }
            ["nv", "set", "vrf", _, "router", "static", to, "via", via, ..] => {
                facts.routes.push(Located::new((to.into(), via.into()), &at));
            }
            _ => {}
        }
    }
    resolve(intent, found, facts, &whole_file);
}

/// Returns the commands of scripts and of `nv config show -o commands`.
fn commands(intent: &Intent, files: &[File], facts: &mut Facts) -> Vec<(Location, String)> {
    let mut all = Vec::new();
    for command in shell::read(files, &["nv"], facts) {
        let line = command.words.join(" ");
        match command.words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["nv", "config", "apply" | "diff" | "history" | "save" | "show", ..]
            | ["nv", "show", ..] => {}
            ["nv", "config", ..] => shell::not_followed(facts, &command),
            ["nv", _, ref path @ ..] if !command.is_certain => {
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

fn of_qos(intent: &Intent, found: &mut Found, facts: &mut Facts, words: &[&str], at: &Location) {
    let of_tiny = |classes: &str| numbers(classes).contains(&intent.queue);
    match *words {
        ["mapping", name, "trust", what] if name != NAME && what != "l3" => {
            let found = format!("mapping {name} trusts {what}");
            facts.report(at, found, "trust l3", "the DSCPs of its ports would be ignored: set it");
        }
        ["mapping", NAME, "trust", what] => found.trusts = what == "l3",
        ["mapping", NAME, "dscp", dscps, "switch-priority", priority] => {
            let Ok(priority) = priority.parse() else { return };
            let maps = numbers(dscps).into_iter().map(|dscp| Located::new((dscp, priority), at));
            found.dscps.extend(maps);
        }
        ["egress-queue-mapping", NAME, "switch-priority", priorities, "traffic-class", class] => {
            let Ok(class) = class.parse() else { return };
            found.classes.extend(numbers(priorities).into_iter().map(|each| (each, class)));
        }
        ["egress-scheduler", NAME, "traffic-class", classes, "mode", mode] => {
            let strict = |class| (class, Located::new(mode == "strict", at));
            found.strict.extend(numbers(classes).into_iter().map(strict));
        }
        ["egress-scheduler", NAME, "traffic-class", classes, "bw-percent", percent] => {
            let Ok(percent) = percent.parse::<u64>() else { return };
            let percent = |class| (class, Located::new(percent, at));
            found.percents.extend(numbers(classes).into_iter().map(percent));
        }
        ["pfc", _, "switch-priority", priorities] => {
            facts.pfc.extend(numbers(priorities).into_iter().map(|each| Located::new(each, at)));
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
            let percent = percent.parse().map(|percent| (pool.into(), Located::new(percent, at)));
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
                "service-pool" => found.pool = Located::some(value.into(), at),
                "reserved" => found.reserved = number.unwrap_or(0),
                "shared-bytes" => found.bytes = number.map(|bytes| Located::new(bytes, at)),
                "shared-alpha" => found.alpha = Located::some(value.into(), at),
                _ => {}
            }
        }
        ["congestion-control", NAME, "traffic-class", classes, what, value] if of_tiny(classes) => {
            match (what, value.parse::<u64>()) {
                ("min-threshold", Ok(value)) => found.low = value,
                ("max-threshold", Ok(value)) => {
                    facts.aeolus.bind(EVERY_PORT, NAME, at);
                    facts.aeolus.entry(NAME).bounds = Located::some((found.low, value), at);
                }
                ("probability", Ok(percent)) => facts.aeolus.entry(NAME).drops_all = percent == 100,
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

fn resolve(intent: &Intent, found: Found, facts: &mut Facts, whole_file: &Location) {
    if !found.trusts {
        let remedy = "DSCPs would be ignored: nv set qos mapping default-global trust l3";
        facts.report(whole_file, "DSCPs are not trusted", "trust l3", remedy);
    }
    facts.classifiers.bind(EVERY_PORT, NAME, whole_file);
    let class = |priority: u8| found.classes.get(&priority).copied().unwrap_or(priority);
    let maps = found.dscps.iter().map(|seen| {
        let (dscp, priority) = seen.value;
        Located::new((dscp, class(priority)), &seen.at)
    });
    facts.classifiers.entry(NAME).maps = maps.collect();
    let share = |class: u8| match found.strict.get(&class) {
        Some(Located { value: true, at }) => Located::some(Share::Strict, at),
        _ => found
            .percents
            .get(&class)
            .map(|seen| Located::new(Share::Weighted(seen.value), &seen.at)),
    };
    facts.schedules.bind(EVERY_PORT, NAME, whole_file);
    let schedule = facts.schedules.entry(NAME);
    schedule.tiny = share(intent.queue);
    schedule.default = share(0);
    facts.queues.bind(EVERY_PORT, NAME, whole_file);
    // Without its own pool, the queue is in pool 0, which is dynamic.
    let is_static =
        found.pool.as_ref().is_some_and(|pool| found.pools.get(&pool.value).copied() == Some(true));
    let size = found.pool.as_ref().and_then(|pool| found.sizes.get(&pool.value));
    if let Some(Located { value, at }) = size.filter(|seen| seen.value > MAX_POOL_PERCENT) {
        let found = format!("the tiny queue's pool has {value} percent of the memory");
        let expected = format!("no more than {MAX_POOL_PERCENT}");
        facts.report(
            at,
            found,
            expected,
            "all other traffic would lack it: set 1, if it is enough",
        );
    }
    let queue = facts.queues.entry(NAME);
    queue.cap = match (&found.alpha, &found.bytes) {
        (Some(Located { value, at }), _) => {
            Located::some(Cap::Other(format!("a share of the free buffer, {value}")), at)
        }
        (None, Some(Located { at, .. })) if !is_static => {
            Located::some(Cap::Other("bytes in a pool whose mode is not static".into()), at)
        }
        (None, Some(Located { value, at })) => {
            Located::some(Cap::Bytes(value.saturating_add(found.reserved)), at)
        }
        (None, None) => None,
    };
}
