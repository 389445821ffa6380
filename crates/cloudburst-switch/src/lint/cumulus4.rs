//! Cumulus Linux 4: `key = value` lines of traffic.conf and datapath.conf.

use super::facts::{Cap, EVERY_PORT, Facts, Field, Located, Share};
use super::negations::{self, VERBS, are_related};
use super::text::{File, Location, lines, numbers};
use crate::intent::Intent;
use std::collections::BTreeMap;

const NAME: &str = "traffic.conf";

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let whole_file = Location { file: files[0].name.clone(), line: 0 };
    let mut settings: BTreeMap<&str, Located<&str>> = BTreeMap::new();
    for (at, line) in lines(files, &['#', '!']) {
        if let Some((key, value)) = line.split_once('=') {
            // A comment may follow the value.
            let value = value.split('#').next().unwrap_or("").trim();
            settings.insert(key.trim(), Located::new(value, &at));
            continue;
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["ip", "route", to, via, ..] => {
                facts.routes.push(Located::new((to.into(), via.into()), &at));
            }
            ["no", "ip", "route", to, ref hop @ ..] => {
                facts.routes.retain(|Located { value, .. }| {
                    value.0 != to || hop.first().is_some_and(|hop| *hop != value.1)
                })
            }
            [verb, ref what @ ..] if VERBS.contains(&verb) && are_related(intent, what, what) => {
                negations::not_understood(facts, &at, line.trim());
            }
            _ => {}
        }
    }
    classifier(&settings, &whole_file, facts);
    let group = groups(intent, &settings, facts);
    queue(intent, group, &settings, facts);
    hash(&settings, &whole_file, facts);
    for (key, seen) in &settings {
        if key.starts_with("pfc.") && key.ends_with(".cos_list") {
            facts.pfc.extend(list(seen.value).into_iter().map(|cos| Located::new(cos, &seen.at)));
        }
    }
}

fn list(value: &str) -> Vec<u8> {
    numbers(value.trim_matches(['[', ']']))
}

fn classifier(settings: &BTreeMap<&str, Located<&str>>, whole_file: &Location, facts: &mut Facts) {
    facts.classifiers.bind(EVERY_PORT, NAME, whole_file);
    facts.classifiers.entry(NAME);
    if let Some(Located { value, at }) = settings.get("traffic.packet_priority_source_set")
        && value.trim_matches(['[', ']']).trim() != "dscp"
    {
        let remedy = "a packet's DSCP would be ignored: use dscp alone";
        facts.report(at, format!("the priority comes from {value}"), "[dscp]", remedy);
    }
    for cos in 0..8 {
        let key = format!("traffic.cos_{cos}.priority_source.dscp");
        let Some(Located { value, at }) = settings.get(key.as_str()) else { continue };
        let maps = list(value).into_iter().map(|dscp| Located::new((dscp, cos), at));
        facts.classifiers.entry(NAME).maps.extend(maps);
    }
}

/// Finds the priority group of the tiny queue.
fn groups<'a>(
    intent: &Intent,
    settings: &BTreeMap<&'a str, Located<&'a str>>,
    facts: &mut Facts,
) -> Option<&'a str> {
    let mut own = None;
    let mut default = None;
    for (key, Located { value, at }) in settings {
        let group =
            key.strip_prefix("priority_group.").and_then(|key| key.strip_suffix(".cos_list"));
        let Some(group) = group else { continue };
        let queues = list(value);
        if queues.contains(&intent.queue) {
            own = Some(group);
            if queues.len() > 1 {
                let found = format!("group {group} has queues {value}");
                let remedy = "others would share the tiny queue's buffer and weight: move them";
                facts.report(at, found, format!("[{}]", intent.queue), remedy);
            }
        }
        if queues.contains(&0) {
            default = Some(group);
        }
    }
    let share = |group: Option<&str>| {
        let key = format!("priority_group.{}.weight", group?);
        let Located { value, at } = settings.get(key.as_str())?;
        let weight: u64 = value.parse().ok()?;
        Located::some(if weight == 0 { Share::Strict } else { Share::Weighted(weight) }, at)
    };
    let tiny = share(own);
    let default = share(default);
    let at = tiny.as_ref().map(|seen| seen.at.clone()).unwrap_or_default();
    facts.schedules.bind(EVERY_PORT, NAME, &at);
    let schedule = facts.schedules.entry(NAME);
    schedule.tiny = tiny;
    schedule.default = default;
    own
}

fn queue(
    intent: &Intent,
    group: Option<&str>,
    settings: &BTreeMap<&str, Located<&str>>,
    facts: &mut Facts,
) {
    let key = |key: &str| format!("priority_group.{}.{key}", group.unwrap_or("service"));
    let value_of = |name: &str| settings.get(key(name).as_str());
    let tenths = |seen: &Located<&str>| {
        let percent = seen.value.parse::<f64>().ok()?;
        Some(Located::new((percent * 10.0).round() as u64, &seen.at))
    };
    let unlimited = value_of("unlimited_egress_buffer").filter(|seen| seen.value != "false");
    let least = value_of("egress_buffer.uc.min_percent").and_then(tenths);
    let thousandth = intent.buffer.memory().map_or(0, |total| (total / 1000).max(1));
    let cap = match (value_of("unlimited_egress_buffer"), unlimited) {
        (_, Some(Located { value, at })) => {
            Located::some(Cap::Other(format!("unlimited_egress_buffer = {value}")), at)
        }
        // The default is unlimited.
        (None, _) => None,
        _ => least
            .map(|seen| Located::new(Cap::Bytes(seen.value.saturating_mul(thousandth)), &seen.at)),
    };
    let at = cap.as_ref().map(|seen| seen.at.clone()).unwrap_or_default();
    facts.queues.bind(EVERY_PORT, "datapath.conf", &at);
    let borrows = match value_of("egress_buffer.uc.sp_percent").and_then(tenths) {
        Some(Located { value: 0, .. }) => None,
        Some(Located { value, at }) => {
            Located::some(format!("{} % of the pool", value as f64 / 10.0), &at)
        }
        None => cap.as_ref().map(|cap| Located::new("sp_percent is not set".to_owned(), &cap.at)),
    };
    let queue = facts.queues.entry("datapath.conf");
    queue.cap = cap;
    queue.borrows.extend(borrows);
}

/// Reads the hash fields. By default, all are used.
fn hash(settings: &BTreeMap<&str, Located<&str>>, whole_file: &Location, facts: &mut Facts) {
    let mut fields = Field::ALL.to_vec();
    let mut at = whole_file.clone();
    let keys = [
        ("sip", Field::SourceAddress),
        ("dip", Field::DestinationAddress),
        ("ip_prot", Field::Protocol),
        ("sport", Field::SourcePort),
        ("dport", Field::DestinationPort),
    ];
    for (key, field) in keys {
        let Some(seen) = settings.get(format!("hash_config.{key}").as_str()) else { continue };
        if matches!(seen.value, "0" | "false") {
            fields.retain(|known| *known != field);
            at = seen.at.clone();
        }
    }
    facts.hash = Located::some(fields, &at);
    let seed = settings.get("ecmp_hash_seed");
    facts.seed = seed.and_then(|seen| Some(Located::new(seen.value.parse().ok()?, &seen.at)));
}
