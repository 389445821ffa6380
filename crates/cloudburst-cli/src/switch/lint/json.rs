//! JSON, and the lines that things stand on.

use super::File;
use super::facts::{Facts, Place};
use serde_json::{Map, Value};

/// All files merged into one value; those that are no JSON are found.
pub(super) fn read(files: &[File], facts: &mut Facts) -> Value {
    let mut all = Value::Object(Map::new());
    for file in files {
        match serde_json::from_str::<Value>(&file.text) {
            Ok(Value::Array(patch)) => apply(&mut all, &patch),
            Ok(value) => merge(&mut all, value),
            Err(error) => {
                let at = Place { file: file.name.clone(), line: error.line() };
                let found = format!("it cannot be read: {error}");
                facts.find(&at, found, "JSON", "correct it, or leave the file out");
            }
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
        // Lists of objects with a key: the same entry of two files is one entry.
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

/// A JSON patch (RFC 6902), as far as it adds and replaces.
fn apply(all: &mut Value, patch: &[Value]) {
    for step in patch {
        let is_told = matches!(step["op"].as_str(), Some("add" | "replace"));
        let (Some(path), true) = (step["path"].as_str(), is_told) else { continue };
        let mut value = step["value"].clone();
        for key in path.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
            let key = key.replace("~1", "/").replace("~0", "~");
            value = Value::Object(Map::from_iter([(key, value)]));
        }
        merge(all, value);
    }
}

/// Where the keys stand that lead to a value, as far as they can be followed.
pub(super) fn place(files: &[File], keys: &[&str]) -> Place {
    let mut best = (0, Place { file: files[0].name.clone(), line: 0 });
    for file in files {
        let (mut at, mut depth) = (0, 0);
        for key in keys {
            // In a patch, the keys are one path.
            let quoted = [format!("\"{key}\""), format!("/{key}/"), format!("/{key}\"")];
            let found = quoted.iter().filter_map(|key| file.text[at..].find(key)).min();
            let Some(found) = found else { break };
            at += found + 1;
            depth += 1;
        }
        if depth > best.0 {
            let line = file.text[..at].lines().count().max(1);
            best = (depth, Place { file: file.name.clone(), line });
        }
    }
    best.1
}

/// A number that may be written as text.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The entries of an object.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The entries of a list.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
