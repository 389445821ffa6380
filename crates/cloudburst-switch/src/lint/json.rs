//! Parses JSON, and finds the lines of its values.

use super::File;
use super::facts::{Facts, Place};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// The most parts of a path, far more than any configuration has. Each part becomes a nested value.
const MOST_PARTS: usize = 16;

/// Merges all files into one value, patches last. Reports files that are not JSON.
pub(super) fn read(files: &[File], facts: &mut Facts) -> Value {
    let mut all = Value::Object(Map::new());
    let mut patches = Vec::new();
    for file in files {
        match serde_json::from_str::<Value>(&file.text) {
            Ok(Value::Array(patch)) => patches.push((file, patch)),
            Ok(value) => merge(&mut all, value),
            Err(error) => {
                let at = Place { file: file.name.clone(), line: error.line() };
                let found = format!("it cannot be read: {error}");
                facts.find(&at, found, "JSON", "correct it, or leave the file out");
            }
        }
    }
    for (file, patch) in patches {
        apply(&mut all, &patch, file, facts);
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

/// Applies a JSON patch (RFC 6902), as far as it adds, replaces and removes members of objects.
fn apply(all: &mut Value, patch: &[Value], file: &File, facts: &mut Facts) {
    for step in patch {
        let Some(path) = step["path"].as_str() else { continue };
        match step["op"].as_str() {
            Some("add" | "replace") => {}
            Some("remove") => {
                remove(all, path);
                continue;
            }
            _ => continue,
        }
        let keys: Vec<&str> = path.split('/').skip(1).take(MOST_PARTS + 1).collect();
        if keys.len() > MOST_PARTS {
            let at = Place { file: file.name.clone(), line: 0 };
            let found = format!("a path of more than {MOST_PARTS} parts");
            facts.find(&at, found, "table, key and field", "correct the path");
            continue;
        }
        let mut value = step["value"].clone();
        for key in keys.into_iter().rev() {
            value = Value::Object(Map::from_iter([(unescaped(key).into_owned(), value)]));
        }
        merge(all, value);
    }
}

/// Removes the value at a patch's path, if it exists.
fn remove(all: &mut Value, path: &str) {
    let Some((parent, key)) = path.rsplit_once('/') else { return };
    if let Some(parent) = all.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.remove(&*unescaped(key));
    }
}

/// An index of the names in each file, so that places are found without reading the files again.
pub(super) struct Places<'a>(Vec<Index<'a>>);

struct Index<'a> {
    file: &'a File,
    /// The offsets of each quoted text; for a path, those of its parts.
    names: HashMap<Cow<'a, str>, Vec<usize>>,
    line_ends: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(super) fn new(files: &'a [File]) -> Self {
        Self(files.iter().map(Index::new).collect())
    }

    /// Returns the place of the last of the keys that lead to a value, as far as they can be followed.
    pub(super) fn of(&self, keys: &[&str]) -> Place {
        let mut best = (0, Place { file: self.0[0].file.name.clone(), line: 0 });
        for index in &self.0 {
            let (mut at, mut depth) = (0, 0);
            for key in keys {
                let Some(found) = index.next(key, at) else { break };
                at = found + 1;
                depth += 1;
            }
            if depth > best.0 {
                let line = index.line_ends.partition_point(|end| *end < at) + 1;
                best = (depth, Place { file: index.file.name.clone(), line });
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
