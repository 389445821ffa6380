//! Configurations with blocks by indentation: Cisco's, Arista's, Dell's.

use super::facts::Facts;
use super::interfaces::named;
use super::negations::{self, TYPES, VERBS, are_related, is_for_another, still_applies};
use super::text::{File, Location, after, lines, numbers};
use crate::intent::Intent;
use std::collections::HashMap;
use std::net::IpAddr;

/// A line in its normal form, and the lines that are indented below it.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) line: String,
    pub(super) at: Location,
    pub(super) inner: Vec<Block>,
    /// The last inner block of each key, as far as they were applied.
    // Without an index, an access list of 64,000 lines takes 13.5 s, and 0.35 s with it.
    index: HashMap<String, usize>,
}

/// The most levels of indentation, far more than any configuration has.
const MAX_LEVELS: usize = 16;

/// Blocks in which every line is about what the checks read.
const MAPS: [&str; 6] = ["class-map", "platform", "policy-map", "qos-map", "trust", "wred"];

/// What may be removed from these blocks without notice: the tiny queue needs none of it.
const HARMLESS: [&str; 3] = ["description", "priority", "shape"];

/// Returns all blocks of all files, without the lines that a later `no` or `default` removes. The parts of a block
/// are one block, and each interface has a block of its own. The `no` line itself is kept, since some are settings:
/// `no priority` is round robin on EOS.
pub(super) fn read(intent: &Intent, files: &[File], facts: &mut Facts) -> Vec<Block> {
    let mut all = Block::new(String::new(), Location::default());
    for block in indented(files, facts) {
        apply(&mut Reader { intent, facts }, &mut all, &mut Vec::new(), &block);
    }
    let mut top = all.inner;
    compact(&mut top);
    let is_routing = |block: &&Block| matches!(&*block.line, "ip routing" | "no ip routing");
    if let Some(off) = top.iter().rev().find(is_routing).filter(|block| block.line != "ip routing")
        && !intent.routes.is_empty()
    {
        facts.report(
            &off.at,
            "routing is off",
            "ip routing",
            "no route would be used: take it out",
        );
    }
    top
}

/// Returns all blocks as they are written. Reports lines that are nested too deeply.
fn indented(files: &[File], facts: &mut Facts) -> Vec<Block> {
    let mut top: Vec<Block> = Vec::new();
    let mut file = String::new();
    // The indentation of the open blocks, the outermost first.
    let mut open: Vec<usize> = Vec::new();
    for (at, text) in lines(files, &['!', '#']) {
        if at.file != file {
            file.clone_from(&at.file);
            open.clear();
        }
        let indent = text.len() - text.trim_start().len();
        while open.last().is_some_and(|&last| last >= indent) {
            open.pop();
        }
        if open.len() == MAX_LEVELS {
            let found = format!("`{}` is not understood", text.trim());
            let expected = format!("at most {MAX_LEVELS} levels of indentation");
            facts.report(&at, found, expected, "nothing below is checked: correct the indentation");
            continue;
        }
        insert(&mut top, open.len(), Block::new(text.into(), at));
        open.push(indent);
    }
    top
}

/// Inserts a block at `depth`. Each open block is the last one of its level.
fn insert(level: &mut Vec<Block>, depth: usize, block: Block) {
    match (depth.checked_sub(1), level.len().checked_sub(1)) {
        (Some(depth), Some(last)) => insert(&mut level[last].inner, depth, block),
        _ => level.push(block),
    }
}

struct Reader<'a> {
    intent: &'a Intent,
    facts: &'a mut Facts,
}

/// Applies a line and what is below it to the blocks that were read before, inside of `around`. `path` has the lines
/// around it.
fn apply(reader: &mut Reader<'_>, around: &mut Block, path: &mut Vec<String>, block: &Block) {
    let Some(lines) = normal(reader.intent, &block.line, path.is_empty()) else {
        negations::not_understood(reader.facts, &block.at, block.line.trim());
        return;
    };
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        // Applied where text becomes blocks, so that no platform's parser needs code of its own for
        // removals.
        if let [verb, what @ ..] = &words[..]
            && VERBS.contains(verb)
        {
            let has_removed = matches!(*verb, "no" | "default") && remove(around, what);
            if !has_removed && is_ambiguous(reader.intent, path, &around.inner, what) {
                negations::not_understood(reader.facts, &block.at, &line);
            }
            around.inner.push(Block::new(line, block.at.clone()));
            continue;
        }
        let is_part = |at: &usize| !(around.inner[*at].inner.is_empty() && block.inner.is_empty());
        let known = keys(&words);
        let known = known.iter().filter_map(|key| around.index.get(key).copied());
        let part = known.filter(is_part).max().unwrap_or_else(|| {
            around.index.insert(key(&words), around.inner.len());
            around.inner.push(Block::new(line.clone(), block.at.clone()));
            around.inner.len() - 1
        });
        path.push(line);
        let part = &mut around.inner[part];
        block.inner.iter().for_each(|inner| apply(reader, part, path, inner));
        path.pop();
    }
}

/// Returns the key of a block, which its parts have in common: the line, or kind, type and name of a class or policy.
fn key(words: &[&str]) -> String {
    match words {
        [kind @ ("class" | "class-map" | "policy-map"), .., name] => {
            format!("{kind} {} {name}", after(words, "type").unwrap_or(""))
        }
        _ => words.join(" "),
    }
}

/// Returns the keys of all blocks that a line can continue: it may leave out the type of a class or policy, or the
/// block may.
fn keys(words: &[&str]) -> Vec<String> {
    let [kind @ ("class" | "class-map" | "policy-map"), .., name] = words else {
        return vec![key(words)];
    };
    match after(words, "type") {
        Some(own) if !TYPES.contains(&own) => vec![key(words)],
        Some(own) => [own, ""].map(|of| format!("{kind} {of} {name}")).into(),
        None => {
            let all = TYPES.into_iter().chain([""]);
            all.map(|of| format!("{kind} {of} {name}")).collect()
        }
    }
}

/// Returns a line as all checks read it: one space between words, keywords in lower case, lists of DSCPs as numbers. A
/// line for several interfaces becomes one for each; `None` if it is unknown which they are.
fn normal(intent: &Intent, line: &str, is_top: bool) -> Option<Vec<String>> {
    let mut words: Vec<String> = line.split_whitespace().map(Into::into).collect();
    words[0] = words[0].to_lowercase();
    let first = usize::from(VERBS.contains(&words[0].as_str()) && words.len() > 1);
    words[first] = words[first].to_lowercase();
    if is_top && words[first].len() >= 3 {
        let headers = ["interface", "policy-map", "class-map"];
        let full = headers.into_iter().find(|header| header.starts_with(&words[first]));
        words[first] = full.map_or_else(|| words[first].clone(), Into::into);
    }
    if is_top && words[first] == "interface" {
        let mut list = &words[first + 1..];
        if let [range, rest @ ..] = list
            && range.eq_ignore_ascii_case("range")
        {
            list = rest;
        }
        let before = words[..=first].join(" ");
        let list = list.concat();
        let ports = named(intent, &list)?;
        let other = ports.is_empty().then(|| list.to_lowercase());
        let ports = ports.into_iter().map(Into::into).chain(other);
        return Some(ports.map(|port: String| format!("{before} {port}")).collect());
    }
    if words[first..].starts_with(&["match".into(), "ip".into(), "dscp".into()]) {
        words.remove(first + 1);
    }
    let of_dscps = |start: &[&str]| {
        words[first..].iter().zip(start).filter(|(word, of)| word == *of).count() == start.len()
    };
    let starts: [&[&str]; 2] = [&["match", "dscp"], &["qos", "map", "dscp"]];
    if let Some(start) = starts.into_iter().find(|start| of_dscps(start)) {
        let start = first + start.len();
        let end = words[start..]
            .iter()
            .position(|word| word == "to")
            .map_or(words.len(), |to| start + to);
        let list = numbers(&words[start..end].join(","));
        if !list.is_empty() {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            words.splice(start..end, [list.join(",")]);
        }
    }
    Some(vec![words.join(" ")])
}

/// Removes what a negation names, in whole or in part. Returns whether there was any. Removed lines become empty, so that
/// the index need not be built again.
fn remove(around: &mut Block, what: &[&str]) -> bool {
    let Some(first) = what.first() else { return false };
    let mut has_removed = false;
    for (at, block) in around.inner.iter_mut().enumerate() {
        if !block.line.starts_with(first) {
            continue;
        }
        let words = block.words();
        let Some(rest) = still_applies(&words, what) else { continue };
        has_removed = true;
        around.index.remove(&key(&words));
        if rest.is_empty() {
            *block = Block::new(String::new(), Location::default());
        } else {
            block.line = rest.join(" ");
            around.index.insert(key(&block.words()), at);
        }
    }
    has_removed
}

/// Removes the empty lines.
fn compact(level: &mut Vec<Block>) {
    level.retain(|block| !block.line.is_empty());
    level.iter_mut().for_each(|block| compact(&mut block.inner));
}

/// Whether a negation that has removed nothing may be meant for something that the checks read. It cannot be if nothing
/// of the kind was set before.
fn is_ambiguous(intent: &Intent, path: &[String], level: &[Block], what: &[&str]) -> bool {
    let mut header = path.first().map_or("", String::as_str).split(' ');
    match header.next() {
        Some("interface") => {
            let port = header.next();
            let is_intended = intent.ports.iter().any(|own| Some(own.as_str()) == port);
            is_intended && is_set(intent, level, what)
        }
        Some(kind) if MAPS.contains(&kind) => {
            let Some(first) = what.first() else { return false };
            // It may be abbreviated.
            let is_of_kind =
                |word: &str| word == *first || first.len() >= 2 && word.starts_with(first);
            let is_meant = |block: &Block| {
                let words = block.words();
                is_of_kind(words[0]) && !is_for_another(&words, what)
            };
            !HARMLESS.contains(first) && level.iter().any(is_meant)
        }
        _ => is_set(intent, level, what),
    }
}

/// Whether a line of these blocks is about what a negation names.
fn is_set(intent: &Intent, level: &[Block], what: &[&str]) -> bool {
    // Most negations are about something else.
    are_related(intent, what, what)
        && level.iter().any(|block| {
            let words = block.words();
            are_related(intent, &words, what) && !is_for_another(&words, what)
                || is_set(intent, &block.inner, what)
        })
}

impl Block {
    fn new(line: String, at: Location) -> Self {
        Self { line, at, inner: Vec::new(), index: HashMap::new() }
    }

    /// Returns the text that follows `start`, if the line begins with it.
    pub(super) fn after(&self, start: &str) -> Option<&str> {
        let rest = self.line.strip_prefix(start)?;
        rest.strip_prefix(' ').or(rest.is_empty().then_some(""))
    }

    /// Returns the words of the line.
    pub(super) fn words(&self) -> Vec<&str> {
        self.line.split(' ').collect()
    }

    /// Returns the number that follows a word of the line.
    pub(super) fn number(&self, word: &str) -> Option<u64> {
        after(&self.words(), word)?.parse().ok()
    }

    /// Returns what `read` finds in the last of the inner lines in which it finds anything.
    pub(super) fn last<'a, T>(&'a self, read: impl FnMut(&'a Block) -> Option<T>) -> Option<T> {
        self.inner.iter().rev().find_map(read)
    }

    /// Returns the name at the end of a class's line.
    pub(super) fn class(&self) -> Option<&str> {
        self.after("class")?.rsplit(' ').next()
    }
}

/// Reports that the tiny queue's class matches something besides a DSCP.
pub(super) fn alone(facts: &mut Facts, line: &str, at: &Location) {
    let remedy = "other traffic would be dropped from a queue this small: take it out";
    facts.report(at, format!("the tiny queue has {line} too"), "its DSCP alone", remedy);
}

/// Returns the next hop of a route: a port may precede it, and a name, a tag or a distance may follow.
pub(super) fn next_hop<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().copied().find(|word| word.parse::<IpAddr>().is_ok())
}

/// Returns the thresholds of early dropping, in bytes.
pub(super) fn bounds(line: &Block) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.after("random-detect")?.split(' ').collect();
    let bytes_after = |word: &str| {
        let at = words.iter().position(|each| *each == word)?;
        bytes(words.get(at + 1)?, words.get(at + 2)?)
    };
    bytes_after("minimum-threshold").zip(bytes_after("maximum-threshold"))
}

/// Parses a number of bytes with the units that switches print.
pub(super) fn bytes(number: &str, unit: &str) -> Option<u64> {
    let number: u64 = number.parse().ok()?;
    let scale = match unit {
        "bytes" | "byte" => 1,
        "kbytes" => 1000,
        "mbytes" => 1_000_000,
        _ => return None,
    };
    number.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> (Vec<Block>, usize) {
        let params = "platform = \"eos\"\nports = [\"Ethernet[1-3]\"]\n\
                      limit = \"8 packets\"\nrate = \"10G\"\nseed = 1\n";
        let intent = Intent::new(toml::from_str(params).unwrap()).unwrap();
        let mut facts = Facts::default();
        let files = [File { name: "x".into(), text: text.into() }];
        let blocks = read(&intent, &files, &mut facts);
        (blocks, facts.findings.len())
    }

    fn inner(block: &Block) -> Vec<&str> {
        block.inner.iter().map(|inner| inner.line.as_str()).collect()
    }

    #[test]
    fn indentation_makes_blocks() {
        let (blocks, _) = blocks("a 1\n  b\n     c\n  d\n!\n  ! no\ne\n");
        assert_eq!((blocks.len(), inner(&blocks[0])), (2, vec!["b", "d"]));
        assert_eq!((blocks[0].inner[0].inner[0].line.as_str(), blocks[1].at.line), ("c", 7));
        assert_eq!(
            (blocks[0].after("a"), blocks[0].after("a 1"), blocks[1].after("a")),
            (Some("1"), Some(""), None)
        );
    }

    #[test]
    fn the_parts_of_a_block_are_merged_without_removed_lines() {
        let text = "If 1\n  a 5\n  b c\nif 2\n  a 5\nif 1\n  a 6\nif 1\n  no a\n  a 7\nno x\n";
        let (blocks, findings) = blocks(text);
        let all: Vec<_> = blocks.iter().map(inner).collect();
        let expected: [&[&str]; 3] = [&["b c", "no a", "a 7"], &["a 5"], &[]];
        assert_eq!((all, findings), (expected.map(<[_]>::to_vec).to_vec(), 0));
    }

    #[test]
    fn each_interface_has_a_block_in_any_spelling() {
        let (blocks, _) =
            blocks("interface Ethernet1-3\n  A\ndefault int et 3\nINTERFACE  ethernet 2\n  no a\n");
        let all: Vec<_> = blocks.iter().map(|block| (block.line.as_str(), inner(block))).collect();
        let expected = [
            ("interface Ethernet1", vec!["a"]),
            ("interface Ethernet2", vec!["no a"]),
            ("default interface Ethernet3", vec![]),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_negation_that_removes_nothing_is_reported_where_it_may_matter() {
        for (text, count) in [
            ("interface Ethernet1\n  service-policy output A\n  no service-policy output B\n", 1),
            ("interface Ethernet1\n  service-policy output A\n  no serv out B\n", 1),
            ("interface Ethernet1\n  service-policy output A\n  no shutdown\n", 0),
            ("interface Ethernet1\n  no service-policy output B\n  service-policy output A\n", 0),
            ("interface Ethernet9\n  service-policy output A\n  no service-policy output B\n", 0),
            ("policy-map A\n  class B\n    bandwidth percent 5\n    no band perc 5\n", 1),
            ("policy-map A\n  class B\n    bandwidth percent 5\n    no police\n", 0),
            ("policy-map A\n  class B\n    bandwidth percent 5\n    no priority\n", 0),
            ("interface Ethernet1\nservice-policy output A\nunset service-policy\n", 1),
            ("interface Ethernet1-2/1-4\n  no service-policy\n", 1),
            ("ip name-server 10.0.0.1\nno ip domain-lookup\n", 0),
        ] {
            assert_eq!(blocks(text).1, count, "{text}");
        }
    }

    #[test]
    fn lists_of_dscps_have_ranges_and_names() {
        assert_eq!(numbers("1,3-5 ef"), [1, 3, 4, 5, 46]);
        assert_eq!(bytes("6", "kbytes"), Some(6000));
        let (blocks, _) =
            blocks("qos map dscp 1 2  4-5 to traffic-class 3\nno qos map dscp af11 2\n");
        assert_eq!(blocks[0].line, "qos map dscp 1,4,5 to traffic-class 3");
    }
}
