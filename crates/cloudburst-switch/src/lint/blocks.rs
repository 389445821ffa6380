//! Configurations with blocks by indentation: Cisco's, Arista's, Dell's.

use super::facts::{Facts, Place};
use super::{File, lines};
use std::net::IpAddr;

/// A line and the lines that are indented below it.
#[derive(Clone, Debug)]
pub(super) struct Block<'a> {
    pub(super) line: &'a str,
    pub(super) at: Place,
    pub(super) inner: Vec<Block<'a>>,
}

/// Returns all blocks of all files, without the lines that a later `no` or `default` takes back. The `no` line itself
/// is kept, since some are settings: `no priority` is round robin on EOS.
pub(super) fn read(files: &[File]) -> Vec<Block<'_>> {
    let mut top: Vec<Block<'_>> = Vec::new();
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
        let block = Block { line: text.trim(), at, inner: Vec::new() };
        if let Some(what) = block.after("no").or_else(|| block.after("default")) {
            let headers = headers(&top, open.len());
            take_back(&mut top, &headers, what);
        }
        insert(&mut top, open.len(), block);
        open.push(indent);
    }
    top
}

/// Returns the lines of the open blocks, the outermost first. Each is the last one of its level.
fn headers<'a>(level: &[Block<'a>], depth: usize) -> Vec<&'a str> {
    let mut headers = Vec::new();
    let mut last = level.last();
    while let Some(block) = last.filter(|_| headers.len() < depth) {
        headers.push(block.line);
        last = block.inner.last();
    }
    headers
}

/// Removes lines from all blocks with these headers: a block may be given in parts, and in two files.
fn take_back(level: &mut Vec<Block<'_>>, headers: &[&str], what: &str) {
    match headers.split_first() {
        None => level.retain(|block| !is_taken_back(block.line, what)),
        Some((header, deeper)) => {
            let parts = level.iter_mut().filter(|part| part.line.eq_ignore_ascii_case(header));
            parts.for_each(|part| take_back(&mut part.inner, deeper, what));
        }
    }
}

/// Whether `no` and these words take a line back: they are its beginning, or the kind and name of a class or policy.
/// For a queue's limit and share, the number need not match.
fn is_taken_back(line: &str, what: &str) -> bool {
    let (words, taken) = (words(line), words(what));
    match taken.first().map(String::as_str) {
        None => false,
        // EOS takes single DSCPs out of the list: its parser handles that.
        Some("qos") if words.starts_with(&["qos".into(), "map".into(), "dscp".into()]) => false,
        Some("queue-limit" | "bandwidth") => words[0] == taken[0],
        Some("class-map" | "policy-map") => words[0] == taken[0] && words.last() == taken.last(),
        Some(_) => words.starts_with(&taken),
    }
}

/// Returns the words of a line, in lower case.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_lowercase).collect()
}

/// Inserts a block at `depth`. Each open block is the last one of its level.
fn insert<'a>(level: &mut Vec<Block<'a>>, depth: usize, block: Block<'a>) {
    match (depth.checked_sub(1), level.len().checked_sub(1)) {
        (Some(depth), Some(last)) => insert(&mut level[last].inner, depth, block),
        _ => level.push(block),
    }
}

impl<'a> Block<'a> {
    /// Returns the text that follows `start`, if the line begins with it.
    pub(super) fn after(&self, start: &str) -> Option<&'a str> {
        let rest = self.line.strip_prefix(start)?;
        rest.strip_prefix(' ').or(rest.is_empty().then_some(""))
    }

    /// Returns the words of the line.
    pub(super) fn words(&self) -> Vec<&'a str> {
        self.line.split_whitespace().collect()
    }

    /// Returns the number that follows a word of the line.
    pub(super) fn number(&self, word: &str) -> Option<u64> {
        let words = self.words();
        let at = words.iter().position(|each| *each == word)?;
        words.get(at + 1)?.parse().ok()
    }
}

/// Parses numbers and ranges: `1,3-5 7`.
pub(super) fn numbers(text: &str) -> Vec<u8> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let range = |part: &str| match part.split_once('-') {
        Some((low, high)) => {
            let (low, high) = (low.parse::<u8>().ok()?, high.parse::<u8>().ok()?);
            Some((low..=high.min(63)).collect::<Vec<_>>())
        }
        None => crate::dscp::parse(part).map(|one| vec![one]),
    };
    parts.filter_map(range).flatten().collect()
}

/// Reports that the tiny queue's class matches something besides a DSCP.
pub(super) fn alone(facts: &mut Facts, line: &str, at: &Place) {
    let remedy = "other traffic would be dropped from a queue this small: take it out";
    facts.find(at, format!("the tiny queue has {line} too"), "its DSCP alone", remedy);
}

/// Returns the next hop of a route: a port may precede it, and a name, a tag or a distance may follow.
pub(super) fn next_hop<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().copied().find(|word| word.parse::<IpAddr>().is_ok())
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

    #[test]
    fn indentation_makes_blocks() {
        let text = "a 1\n  b\n     c\n  d\n!\n  ! no\ne\n";
        let files = [File { name: "x".into(), text: text.into() }];
        let blocks = read(&files);
        let inner: Vec<_> = blocks[0].inner.iter().map(|block| block.line).collect();
        assert_eq!((blocks.len(), inner), (2, vec!["b", "d"]));
        assert_eq!((blocks[0].inner[0].inner[0].line, blocks[1].at.line), ("c", 7));
        assert_eq!(
            (blocks[0].after("a"), blocks[0].after("a 1"), blocks[1].after("a")),
            (Some("1"), Some(""), None)
        );
    }

    #[test]
    fn what_is_taken_back_is_gone_from_every_part_of_its_block() {
        let text = "If 1\n  a 5\n  b c\nif 2\n  a 5\nif 1\n  a 6\nif 1\n  no a\n  a 7\nno x\n";
        let files = [File { name: "x".into(), text: text.into() }];
        let inner = |block: &Block<'_>| -> Vec<String> {
            block.inner.iter().map(|inner| inner.line.to_owned()).collect()
        };
        let all: Vec<_> = read(&files).iter().map(inner).collect();
        let expected: [&[&str]; 5] = [&["b c"], &["a 5"], &[], &["no a", "a 7"], &[]];
        assert_eq!(all, expected);
        for (line, what, is_gone) in [
            ("class-map match-any A", "class-map A", true),
            ("class-map match-any A", "class-map B", false),
            ("queue-limit 8 packets", "queue-limit 9 bytes", true),
            ("fields ip a", "fields ipv6", false),
            ("qos map dscp 10 11 to traffic-class 5", "qos map dscp 10", false),
            ("a", "a b", false),
        ] {
            assert_eq!(is_taken_back(line, what), is_gone, "{line}: no {what}");
        }
    }

    #[test]
    fn lists_of_dscps_have_ranges_and_names() {
        assert_eq!(numbers("1,3-5 ef"), [1, 3, 4, 5, 46]);
        assert_eq!(bytes("6", "kbytes"), Some(6000));
    }
}
