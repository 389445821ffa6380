//! Checks what a configuration sets against the intent.
//!
//! Each platform's parser reads only as much structure as it needs to find the facts: blocks by
//! indentation, words of a line, commands of a script, or JSON. It skips everything else, so that a whole running
//! configuration can be given, except lines that may undo what it reads and that it does not understand: these are
//! findings.

mod blocks;
mod commands;
mod cumulus4;
mod cumulus5;
mod eos;
mod facts;
mod finding;
mod interfaces;
mod iosxe;
mod iproute;
mod json;
mod judge;
mod linux;
mod negations;
mod nxos;
mod openconfig;
mod os10;
mod picos;
mod shell;
mod sonic;
mod text;

use super::intent::Intent;
use super::platform::Platform;
use facts::Facts;
use finding::Finding;
pub(crate) use text::File;

/// The rendered files, in the order in which the guide applies them.
const RENDERED: [&str; 5] = ["qos", "ecmp", "paths", "aeolus", "trim"];

/// Returns all findings in `files`, which together are one configuration. Each class of Cloudburst's packets is
/// judged as if it were the only one.
pub(crate) fn lint(intent: &Intent, files: &[File]) -> Vec<Finding> {
    let mut files = files.to_vec();
    // A shell sorts `leaf1/*` by name, but what is applied later can remove what is applied earlier.
    files.sort_by_key(rank);
    let read = match intent.platform {
        Platform::Picos => picos::read,
        Platform::Sonic => sonic::read,
        Platform::Cumulus4 => cumulus4::read,
        Platform::Cumulus5 => cumulus5::read,
        Platform::Os10 => os10::read,
        Platform::Eos => eos::read,
        Platform::Nxos => nxos::read,
        Platform::IosXe => iosxe::read,
        Platform::OpenConfig => openconfig::read,
        Platform::Linux => linux::read,
    };
    // Two forms of one configuration are judged one by one: what one sets would hide what the other
    // lacks.
    let sets = match intent.platform {
        Platform::Sonic => sonic::separate(&files),
        Platform::IosXe => iosxe::separate(&files),
        _ => vec![files],
    };
    let of_class = |intent: &Intent, files: &[File]| {
        let mut facts = Facts::default();
        read(intent, files, &mut facts);
        judge::judge(intent, &facts, &files[0].name)
    };
    let classes: Vec<Intent> = intent.per_class().collect();
    let all = sets.iter().flat_map(|files| classes.iter().map(|class| of_class(class, files)));
    let mut findings: Vec<Finding> = all.flatten().collect();
    findings.sort();
    findings.dedup();
    findings
}

/// Returns the rank of a file in the order of application: rendered files first, then all others.
fn rank(file: &File) -> usize {
    let name = file.name.rsplit('/').next().unwrap_or("");
    let stem = name.split('.').next();
    let position = RENDERED.iter().position(|rendered| Some(*rendered) == stem);
    position.unwrap_or(RENDERED.len())
}
