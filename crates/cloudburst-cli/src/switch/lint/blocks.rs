//! Configurations that are blocks by indentation: Cisco's, Arista's, Dell's.

use super::facts::{Facts, Place};
use super::{File, lines};
use std::net::IpAddr;

/// A line, and the lines that are indented below it.
#[derive(Clone, Debug)]
pub(super) struct Block<'a> {
    pub(super) line: &'a str,
    pub(super) at: Place,
    pub(super) inner: Vec<Block<'a>>,
}

/// All blocks of all files.
pub(super) fn read(files: &[File]) -> Vec<Block<'_>> {
    let mut top: Vec<Block<'_>> = Vec::new();
    let mut file = String::new();
    // The indentation of the open blocks, from the outermost.
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
        insert(&mut top, open.len(), block);
        open.push(indent);
    }
    top
}

/// Each open block is the last one of its level.
fn insert<'a>(level: &mut Vec<Block<'a>>, depth: usize, block: Block<'a>) {
    match (depth.checked_sub(1), level.len().checked_sub(1)) {
        (Some(depth), Some(last)) => insert(&mut level[last].inner, depth, block),
        _ => level.push(block),
    }
}

impl<'a> Block<'a> {
    /// What follows `start`, if the line begins with it.
    pub(super) fn after(&self, start: &str) -> Option<&'a str> {
        let rest = self.line.strip_prefix(start)?;
        rest.strip_prefix(' ').or(rest.is_empty().then_some(""))
    }

    /// The words of the line.
    pub(super) fn words(&self) -> Vec<&'a str> {
        self.line.split_whitespace().collect()
    }

    /// The number behind a word of the line.
    pub(super) fn number(&self, word: &str) -> Option<u64> {
        let words = self.words();
        let at = words.iter().position(|each| *each == word)?;
        words.get(at + 1)?.parse().ok()
    }
}

/// Numbers and ranges: `1,3-5 7`.
pub(super) fn numbers(text: &str) -> Vec<u8> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let range = |part: &str| match part.split_once('-') {
        Some((low, high)) => {
            let (low, high) = (low.parse::<u8>().ok()?, high.parse::<u8>().ok()?);
            Some((low..=high.min(63)).collect::<Vec<_>>())
        }
        None => crate::switch::dscp::parse(part).map(|one| vec![one]),
    };
    parts.filter_map(range).flatten().collect()
}

/// The tiny queue's class takes something besides a DSCP.
pub(super) fn alone(facts: &mut Facts, line: &str, at: &Place) {
    let remedy = "other traffic would be dropped from a queue this small: take it out";
    facts.find(at, format!("the tiny queue has {line} too"), "its DSCP alone", remedy);
}

/// The next hop of a route: a port may stand before it, and a name, a tag or a distance behind.
pub(super) fn next_hop<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().copied().find(|word| word.parse::<IpAddr>().is_ok())
}

/// A number of bytes with the units that switches print.
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
    fn lists_of_dscps_have_ranges_and_names() {
        assert_eq!(numbers("1,3-5 ef"), [1, 3, 4, 5, 46]);
        assert_eq!(bytes("6", "kbytes"), Some(6000));
    }
}
