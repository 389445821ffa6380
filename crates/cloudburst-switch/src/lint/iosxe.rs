//! Cisco IOS-XE: blocks, and the same as JSON of the native model.

use super::blocks::{self, Block};
use super::facts::{Cap, Facts, Field, Located, Share};
use super::json::{self, Locations, entries, items};
use super::text::{File, Location, numbers};
use crate::intent::Intent;
use serde_json::Value;
use std::collections::BTreeMap;

/// The DSCPs of each class map.
type Classes = BTreeMap<String, Vec<Located<u8>>>;

pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) {
    let (models, texts): (Vec<File>, Vec<File>) = files.iter().cloned().partition(is_model);
    let models: Vec<[File; 1]> = models.into_iter().map(|model| [model]).collect();
    let models: Vec<_> =
        models.iter().map(|model| (&model[..], json::read(model, facts))).collect();
    let mut classes = Classes::new();
    models.iter().for_each(|(files, all)| native_classes(files, all, &mut classes));
    for (files, all) in &models {
        native(intent, files, all, &classes, facts);
    }
    commands(intent, &texts, classes, facts);
}

/// Whether a file is a model: by its name, or by its contents where the name does not say.
fn is_model(file: &File) -> bool {
    match file.name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => true,
        Some("cfg") => false,
        _ => file.text.trim_start().starts_with('{'),
    }
}

/// The rendered commands that exist in no other form.
const ONLY_COMMANDS: [&str; 3] = ["aeolus.cfg", "ecmp.cfg", "paths.cfg"];

/// Splits the files into sets to be judged separately: the queues as commands, and the queues as a model. One would
/// hide what the other lacks. Settings that exist only as commands, such as the hash, belong to both.
pub(super) fn separate(files: &[File]) -> Vec<Vec<File>> {
    let is_queue = |file: &File| {
        let name = file.name.rsplit('/').next().unwrap_or("");
        let words = ["class-map", "service-policy"];
        !is_model(file)
            && (!ONLY_COMMANDS.contains(&name) || words.iter().any(|word| file.text.contains(word)))
    };
    if !(files.iter().any(is_model) && files.iter().any(is_queue)) {
        return vec![files.to_vec()];
    }
    let texts = files.iter().filter(|file| !is_model(file)).cloned().collect();
    vec![texts, files.iter().map(unbound).collect()]
}

/// Returns the file without the commands that attach a policy to a port. Lines keep their numbers.
fn unbound(file: &File) -> File {
    let is_bond = |line: &str| {
        !is_model(file) && line.trim_start().to_lowercase().starts_with("service-policy")
    };
    let lines = file.text.lines().map(|line| if is_bond(line) { "" } else { line });
    File { name: file.name.clone(), text: lines.collect::<Vec<_>>().join("\n") }
}

fn commands(intent: &Intent, files: &[File], mut classes: Classes, facts: &mut Facts) {
    let blocks = blocks::read(intent, files, facts);
    for block in &blocks {
        if let Some(rest) = block.after("class-map")
            && !rest.starts_with("type ")
        {
            let name = rest.rsplit(' ').next().unwrap_or(rest).to_owned();
            let is_tiny = |inner: &Block| {
                let list = dscps_of(inner).map(numbers);
                list.is_some_and(|list| list.contains(&intent.dscp))
            };
            if block.inner.iter().any(is_tiny) {
                let others = block.inner.iter();
                let others = others
                    .filter(|inner| inner.line.starts_with("match ") && dscps_of(inner).is_none());
                others.for_each(|inner| blocks::alone(facts, &inner.line, &inner.at));
            }
            for inner in &block.inner {
                let list = dscps_of(inner);
                let all = numbers(list.unwrap_or("")).into_iter();
                let all = all.map(|dscp| Located::new(dscp, &inner.at));
                classes.entry(name.clone()).or_default().extend(all);
            }
        }
    }
    for block in &blocks {
        if let Some(name) = block.after("policy-map") {
            let mut policy = Policy::new(intent, facts, name, &classes);
            for class in &block.inner {
                let Some(of) = class.after("class") else { continue };
                let of = policy.class(of);
                let is_by_dscp =
                    class.inner.iter().any(|inner| inner.line == "random-detect dscp-based");
                let mut can_have_limit = false;
                for inner in &class.inner {
                    let words = inner.words();
                    can_have_limit |= matches!(words[0], "bandwidth" | "shape" | "priority");
                    if words[0] == "random-detect" && !is_by_dscp {
                        continue;
                    }
                    policy.action(of, &words, &inner.at, can_have_limit);
                }
            }
        } else if let Some(port) = block.after("interface") {
            for inner in &block.inner {
                if let Some(name) = inner.after("service-policy output") {
                    facts.aeolus.bind(port, name, &inner.at);
                    bind(facts, port, name, &inner.at);
                }
            }
        } else {
            other(facts, block);
        }
    }
}

fn dscps_of(line: &Block) -> Option<&str> {
    line.after("match dscp")
}

fn bind(facts: &mut Facts, port: &str, name: &str, at: &Location) {
    facts.classifiers.bind(port, name, at);
    facts.queues.bind(port, name, at);
    facts.schedules.bind(port, name, at);
}

/// The kind of a class in a policy.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Tiny,
    Default,
    Other,
}

struct Policy<'a> {
    facts: &'a mut Facts,
    name: &'a str,
    intent: &'a Intent,
    classes: &'a Classes,
}

impl<'a> Policy<'a> {
    fn new(intent: &'a Intent, facts: &'a mut Facts, name: &'a str, classes: &'a Classes) -> Self {
        facts.classifiers.entry(name);
        facts.queues.entry(name);
        facts.schedules.entry(name);
        facts.aeolus.entry(name);
        Self { facts, name, intent, classes }
    }

    /// Returns the kind of a class. Each class is a queue; the one with Cloudburst's DSCP is the tiny one.
    fn class(&mut self, of: &str) -> Class {
        if of == "class-default" {
            return Class::Default;
        }
        let Some(dscps) = self.classes.get(of) else { return Class::Other };
        let is_tiny = dscps.iter().any(|seen| seen.value == self.intent.dscp);
        let queue = if is_tiny { self.intent.queue } else { 0 };
        let maps = dscps.iter().map(|seen| Located::new((seen.value, queue), &seen.at));
        self.facts.classifiers.entry(self.name).maps.extend(maps);
        if is_tiny { Class::Tiny } else { Class::Other }
    }

    fn action(&mut self, of: Class, words: &[&str], at: &Location, can_have_limit: bool) {
        let share = match *words {
            ["priority", ..] => Some(Share::Strict),
            ["bandwidth", .., percent] => percent.parse().ok().map(Share::Weighted),
            _ => None,
        };
        let share = share.map(|share| Located::new(share, at));
        let schedule = self.facts.schedules.entry(self.name);
        match of {
            Class::Tiny => schedule.tiny = share.or(schedule.tiny.take()),
            Class::Default => schedule.default = share.or(schedule.default.take()),
            Class::Other => {}
        }
        if of != Class::Tiny {
            return;
        }
        match *words {
            ["queue-limit", ref limit @ ..] => {
                self.facts.queues.entry(self.name).cap = Located::some(cap(limit), at);
                if !can_have_limit {
                    let found = "queue-limit without bandwidth, shape or priority before it";
                    let remedy = "IOS-XE refuses it: add bandwidth percent";
                    self.facts.report(at, found, "one of them in the same class", remedy);
                }
            }
            ["random-detect", "dscp", dscp, low, "bytes", high, "bytes", ref rest @ ..]
                if numbers(dscp).contains(&self.intent.dscp) =>
            {
                let both = low.parse().ok().zip(high.parse().ok());
                let aeolus = self.facts.aeolus.entry(self.name);
                aeolus.bounds = both.map(|both| Located::new(both, at));
                aeolus.drops_all = *rest == ["1"];
            }
            ["random-detect", "ecn"] => {
                self.facts.aeolus.entry(self.name).spares_ecn = true;
            }
            ["queue-buffers", "ratio", ratio] => {
                let cap = Cap::Other(format!("{ratio} percent of the port's buffers"));
                self.facts.queues.entry(self.name).cap = Located::some(cap, at);
            }
            _ => {}
        }
    }
}

fn cap(limit: &[&str]) -> Cap {
    let found = || Cap::Other(limit.join(" "));
    let number = limit.first().and_then(|number| number.parse().ok());
    match (number, limit.get(1).copied()) {
        (Some(number), None | Some("packets")) => Cap::Packets(number),
        (Some(number), Some("bytes")) => Cap::Bytes(number),
        _ => found(),
    }
}

fn other(facts: &mut Facts, block: &Block) {
    if let Some(rest) = block.after("ip cef load-sharing algorithm") {
        // All algorithms hash protocol and addresses; only this one hashes ports.
        let mut fields = vec![Field::SourceAddress, Field::DestinationAddress, Field::Protocol];
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.first() == Some(&"include-ports") {
            fields.extend(words.contains(&"source").then_some(Field::SourcePort));
            fields.extend(words.contains(&"destination").then_some(Field::DestinationPort));
        }
        facts.hash = Located::some(fields, &block.at);
        let seed = words.last().and_then(|seed| u64::from_str_radix(seed, 16).ok());
        facts.seed = seed.map(|seed| Located::new(seed, &block.at));
    } else if let ["ip", "route", to, "255.255.255.255", ref rest @ ..] = block.words()[..]
        && let Some(via) = blocks::next_hop(rest)
    {
        facts.routes.push(Located::new((format!("{to}/32"), via.into()), &block.at));
    }
}

/// Reads the class maps of `Cisco-IOS-XE-native`, the model of NETCONF and RESTCONF.
fn native_classes(files: &[File], all: &Value, classes: &mut Classes) {
    let at = Locations::new(files).of(&["Cisco-IOS-XE-policy:class-map", "dscp"]);
    let all = &all["Cisco-IOS-XE-native:native"]["policy"];
    for class in items(&all["Cisco-IOS-XE-policy:class-map"]) {
        let name = class["name"].as_str().unwrap_or("");
        let dscps = items(&class["match"]["dscp"]).filter_map(|dscp| match dscp.as_str() {
            Some(text) => crate::dscp::parse(text),
            None => dscp.as_u64().and_then(|dscp| u8::try_from(dscp).ok()),
        });
        classes.insert(name.into(), dscps.map(|dscp| Located::new(dscp, &at)).collect());
    }
}

/// Reads the policies and ports of the same model.
fn native(intent: &Intent, files: &[File], all: &Value, classes: &Classes, facts: &mut Facts) {
    let locations = Locations::new(files);
    let all = &all["Cisco-IOS-XE-native:native"];
    for entry in items(&all["policy"]["Cisco-IOS-XE-policy:policy-map"]) {
        let name = model(entry["name"].as_str().unwrap_or(""), files);
        let mut policy = Policy::new(intent, facts, &name, classes);
        for class in items(&entry["class"]) {
            let of = policy.class(class["name"].as_str().unwrap_or(""));
            for action in items(&class["action-list"]) {
                let kind = action["action-type"].as_str().unwrap_or("");
                let at = locations.of(&["Cisco-IOS-XE-policy:policy-map", kind]);
                let words = words(kind, action);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                policy.action(of, &words, &at, true);
            }
        }
    }
    for (kind, ports) in entries(&all["interface"]) {
        for port in items(ports) {
            let number = port["name"].as_str().unwrap_or("");
            let Some(name) = port["Cisco-IOS-XE-policy:service-policy"]["output"].as_str() else {
                continue;
            };
            let at = locations.of(&[kind, number]);
            // Selective dropping exists only as commands, under the same name.
            facts.aeolus.entry(name);
            facts.aeolus.bind(&format!("{kind}{number}"), name, &at);
            bind(facts, &format!("{kind}{number}"), &model(name, files), &at);
        }
    }
}

/// Returns a name for a policy in a model, to distinguish it from the policy of the same name in commands.
fn model(name: &str, files: &[File]) -> String {
    format!("{name} of {}", files[0].name)
}

/// Returns an action as the words of a command.
fn words(kind: &str, action: &Value) -> Vec<String> {
    let number = |value: &Value| json::number(value).map_or(String::new(), |n| n.to_string());
    match kind {
        "bandwidth" => {
            let bandwidth = &action["bandwidth"];
            let percent = [&bandwidth["percent"], &bandwidth["remaining"]["percent"]];
            let percent = percent.into_iter().find(|value| !value.is_null());
            vec![kind.into(), "percent".into(), percent.map_or(String::new(), number)]
        }
        "queue-limit" => {
            let limit = &action["queue-limit"];
            let unit = limit["queue-limit-type"].as_str().unwrap_or("packets");
            vec![kind.into(), number(&limit["queue-limit-value"]), unit.into()]
        }
        _ => vec![kind.into()],
    }
}
