//! Parses JSON, and finds the lines of its values.

use super::facts::Facts;
use super::text::{File, Location};
use json_patch::PatchOperation;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// The most parts of a path, far more than any configuration has. Each part can become a nested value.
const MAX_PARTS: usize = 16;

/// A table that every whole configuration of SONiC has.
const OF_WHOLE: &str = "DEVICE_METADATA";

/// Merges or applies all files, in turn, after the configuration that the switch has. Reports files that are not JSON,
/// and operations that fail.
pub(super) fn read(files: &[File], facts: &mut Facts) -> Value {
    let mut read = Vec::new();
    for file in files {
        match serde_json::from_str::<Value>(&file.text) {
            Ok(value) => read.push((file, value)),
            Err(error) => {
                let at = Location { file: file.name.clone(), line: error.line() };
                let found = format!("it cannot be read: {error}");
                facts.report(&at, found, "JSON", "correct it, or leave the file out");
            }
        }
    }
    read.sort_by_key(|(_, value)| value.get(OF_WHOLE).is_none());
    let mut all = Value::Object(Map::new());
    for (file, value) in read {
        match value {
            Value::Array(patch) => apply(&mut all, patch, file, facts),
            operation if operation["op"].is_string() => {
                let at = Location { file: file.name.clone(), line: 0 };
                let remedy = "the switch would not read it: put it into brackets";
                facts.report(&at, "one operation", "a list of operations", remedy);
            }
            value => merge(&mut all, value),
        }
    }
    all
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        // In lists of objects with a key, the same entry in two files is one entry.
        (Value::Array(into), Value::Array(from)) => {
            for value in from {
                match into.iter_mut().find(|known| is_same_entry(known, &value)) {
                    Some(known) => merge(known, value),
                    None => into.push(value),
                }
            }
        }
        (into, from) => *into = from,
    }
}

fn is_same_entry(one: &Value, other: &Value) -> bool {
    if !one.is_object() {
        return one == other;
    }
    let keys = ["name", "interface-id", "id", "sequence", "type", "identifier", "prefix", "index"];
    let key = keys.into_iter().find(|key| one.get(key).is_some());
    key.is_some_and(|key| one.get(key) == other.get(key))
}

/// Applies a JSON patch (RFC 6902). A switch refuses all of a patch if one operation fails; here the others are applied,
/// so that each failure is one finding.
fn apply(all: &mut Value, patch: Vec<Value>, file: &File, facts: &mut Facts) {
    let is_whole = all.get(OF_WHOLE).is_some();
    for (number, operation) in (1..).zip(patch) {
        let [op, path] = ["op", "path"].map(|key| operation[key].as_str().unwrap_or("").to_owned());
        let parts = [&operation["path"], &operation["from"]].map(parts).into_iter().max();
        let (found, expected) = if parts > Some(MAX_PARTS) {
            (format!("a path of more than {MAX_PARTS} parts"), "table, key and field".to_owned())
        } else {
            let parsed = serde_json::from_value::<PatchOperation>(operation);
            let done = parsed.map_err(|error| error.to_string()).and_then(|operation| {
                if let (PatchOperation::Add(add), false) = (&operation, is_whole) {
                    make_parents(all, add.path.as_str());
                }
                let done = json_patch::patch(all, &[operation]);
                done.map_err(|error| error.kind.to_string())
            });
            let Err(why) = done else { continue };
            (format!("{op} {path} fails: {why}"), "an operation that succeeds".to_owned())
        };
        let at = Location { file: file.name.clone(), line: 0 };
        let remedy = "the switch would refuse the whole patch: correct it, or give the configuration that it is for too";
        facts.report(&at, format!("operation {number}: {found}"), expected, remedy);
    }
}

/// Returns the number of parts of a patch's path.
fn parts(path: &Value) -> usize {
    path.as_str().map_or(0, |path| path.matches('/').count())
}

/// Creates the tables and entries to which a path adds: a patch alone is for a switch that has them.
fn make_parents(all: &mut Value, path: &str) {
    let mut level = all;
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for part in &parts[..parts.len().saturating_sub(1)] {
        let Value::Object(entries) = level else { return };
        let empty = || Value::Object(Map::new());
        level = entries.entry(unescaped(part)).or_insert_with(empty);
    }
}

/// An index of the names in each file, so that locations are found without reading the files again.
pub(super) struct Locations<'a>(Vec<Index<'a>>);

struct Index<'a> {
    file: &'a File,
    /// The offsets of each quoted text; for a path, those of its parts.
    names: HashMap<Cow<'a, str>, Vec<usize>>,
    line_ends: Vec<usize>,
}

impl<'a> Locations<'a> {
    pub(super) fn new(files: &'a [File]) -> Self {
        Self(files.iter().map(Index::new).collect())
    }

    /// Returns the location of the last of the keys that lead to a value, as far as they can be followed.
    pub(super) fn of(&self, keys: &[&str]) -> Location {
        let mut best = (0, Location { file: self.0[0].file.name.clone(), line: 0 });
        for index in &self.0 {
            let mut at = 0;
            let mut depth = 0;
            for key in keys {
                let Some(found) = index.next(key, at) else { break };
                at = found + 1;
                depth += 1;
            }
            if depth > best.0 {
                let line = index.line_ends.partition_point(|end| *end < at) + 1;
                best = (depth, Location { file: index.file.name.clone(), line });
            }
        }
        best.1
    }
}

impl<'a> Index<'a> {
    fn new(file: &'a File) -> Self {
        let line_ends = file.text.match_indices('\n').map(|(at, _)| at).collect();
        let mut names: HashMap<Cow<'a, str>, Vec<usize>> = HashMap::new();
        let mut at = 0;
        // Every other part is quoted. An escaped quote in a name would only misplace a finding.
        for (number, part) in file.text.split('"').enumerate() {
            if number % 2 == 1 {
                if part.starts_with('/') {
                    let mut start = at;
                    for key in part.split('/') {
                        names.entry(unescaped(key)).or_default().push(start);
                        start += key.len() + 1;
                    }
                } else {
                    names.entry(part.into()).or_default().push(at);
                }
            }
            at += part.len() + 1;
        }
        Self { file, names, line_ends }
    }

    fn next(&self, key: &str, from: usize) -> Option<usize> {
        let all = self.names.get(key)?;
        all.get(all.partition_point(|at| *at < from)).copied()
    }
}

/// Unescapes a part of a JSON pointer (RFC 6901).
fn unescaped(key: &str) -> Cow<'_, str> {
    if key.contains('~') { key.replace("~1", "/").replace("~0", "~").into() } else { key.into() }
}

/// Returns a number that may be written as text.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns the entries of an object.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Returns the entries of a list.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
