//! `cbrst-switch`: renders and checks configurations of the tiny queue for common switches. It opens no connections.
//!
//! ```text
//!   params (TOML, flags)  ->  intent: checked, rounded  ->  template  ->  files
//!                                      |
//!                                      v
//!   files  ->  lint/PLATFORM: facts  -> lint/judge  ->  findings
//! ```
//!
//! The templates are in `switch-configs`, one directory for each platform, and are compiled into the program. A
//! small parser for each platform reads a configuration into the same facts, and one judge compares these
//! with the intent. So a configuration that was edited, or that a switch prints, is held to the same standard
//! as one that was rendered.

mod args;
mod chip;
mod dscp;
mod error;
mod intent;
mod lint;
mod params;
mod platform;
mod ports;
mod size;
mod template;

use args::{Overrides, SwitchArgs, SwitchCommand};
use clap::CommandFactory;
use cloudburst_program::{complain, escaped};
use error::Refusal;
use intent::Intent;
use params::Parameters;
use platform::{Order, Platform};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit codes, which `--help` documents.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
}

/// Runs `cbrst-switch` from its command line to its exit code.
pub fn main() -> ExitCode {
    match cloudburst_program::parse() {
        Ok(args) => ExitCode::from(run(args) as u8),
        Err(not_run) => not_run.into(),
    }
}

fn run(args: SwitchArgs) -> Exit {
    let done = match (args.command, args.check, args.params) {
        (Some(SwitchCommand::Platforms), ..) => platforms(),
        (Some(SwitchCommand::Render { params, out, force, overrides }), ..) => {
            intent(&params, *overrides).and_then(|intent| render(&intent, &out, force))
        }
        (Some(SwitchCommand::Check { params, files, overrides }), ..) => {
            intent(&params, *overrides).and_then(|intent| check(&intent, &files))
        }
        (None, Some(file), Some(params)) => {
            intent(&params, Overrides::default()).and_then(|intent| check(&intent, &[file]))
        }
        (None, ..) => {
            let _ = write!(io::stderr(), "{}", SwitchArgs::command().render_help());
            return Exit::Usage;
        }
    };
    done.unwrap_or_else(|refusal| {
        complain(&format!("cbrst-switch: {refusal}"));
        if matches!(refusal, Refusal::File { .. }) { Exit::Failed } else { Exit::Usage }
    })
}

fn intent(params: &Path, overrides: Overrides) -> Result<Intent, Refusal> {
    Intent::new(overrides.replace_in(Parameters::read(params)?))
}

fn platforms() -> Result<Exit, Refusal> {
    let lines = Platform::ALL.map(|each| format!("{:<11} {}\n", each.name(), each.describe()));
    print(&lines.concat());
    Ok(Exit::Done)
}

fn render(intent: &Intent, out: &Path, force: bool) -> Result<Exit, Refusal> {
    let files = template::render(intent)?;
    let stale = stale(out, &files)?;
    if let (Some(path), false) = (stale.first(), force) {
        return Err(Refusal::Edited { path: path.clone() });
    }
    fs::create_dir_all(out).map_err(|source| Refusal::File { path: out.into(), source })?;
    let mut lines = report(intent);
    for path in stale {
        fs::remove_file(&path).map_err(|source| Refusal::File { path, source })?;
    }
    for (name, text) in files {
        let path = out.join(name);
        lines += &format!("wrote {}\n", escaped(&path.to_string_lossy()));
        fs::write(&path, text).map_err(|source| Refusal::File { path, source })?;
    }
    print(&lines);
    Ok(Exit::Done)
}

/// Returns the files of `out` that were edited or belong to other parameters: those with the name of any
/// template whose contents differ from what is to be written.
fn stale(out: &Path, files: &[(&str, String)]) -> Result<Vec<PathBuf>, Refusal> {
    let names: BTreeSet<&str> =
        Platform::ALL.into_iter().flat_map(template::all).map(|template| template.file).collect();
    let mut stale = Vec::new();
    for name in names {
        let path = out.join(name);
        let text = files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.as_bytes());
        match fs::read(&path) {
            Ok(found) if Some(&found[..]) != text => stale.push(path),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Refusal::File { path, source });
            }
            _ => {}
        }
    }
    Ok(stale)
}

/// Reports what the parameters mean, for the user to confirm.
fn report(intent: &Intent) -> String {
    let Intent { limit, buffer, requested, .. } = intent;
    let (alone, beside) = intent.delays(&intent.tiny[0]);
    let us = |seconds: f64| format!("{:.1} us", seconds * 1e6);
    let (tiny, default) = intent.shares;
    let others = match intent.tiny.len() {
        1 => "a default queue that is",
        _ => "other queues that are",
    };
    let mut text = format!("{}\n", intent.summary());
    let cells = match buffer.cell {
        1 => String::new(),
        cell => format!("{} cells of {cell} bytes, ", limit.cells),
    };
    text += &chip(intent);
    text += &format!(
        "limit: asked for {requested}, the queue holds {} bytes: {cells}{} packets of MTU {}\n",
        limit.bytes, limit.packets, buffer.mtu
    );
    text += &format!(
        "worst-case queueing delay: {} with the link to itself, {} beside {others} never empty \
         ({tiny}:{default})\n",
        us(alone),
        us(beside)
    );
    if let [.., last] = intent.tiny[1..] {
        text += &match intent.platform.order() {
            Order::Strict => "a queue also waits while one before it has packets\n".into(),
            Order::Weighted => format!(
                "no strict order is possible within a share: each queue weighs twice the next, and the last \
                 one's worst case is {}\n",
                us(intent.delays(&last).1)
            ),
            Order::OneQueue => "they share one queue, and so have no order\n".into(),
        };
    }
    for dscp in intent.tiny.iter().map(|tiny| tiny.dscp) {
        if let Some(name) = dscp::name(dscp) {
            text += &format!("DSCP {dscp} has a name, {name}: other traffic may use it\n");
        }
    }
    if let (Some(address), true) = (intent.decapsulate, intent.decapsulate_from.is_empty()) {
        text += &format!(
            "IP-in-IP packets to {address} are decapsulated from any sender, and the inner packet can claim any source: \
             have the edge of the fabric drop protocol 4 from elsewhere{}\n",
            if intent.platform == Platform::Linux { ", or give `decapsulate_from`" } else { "" }
        );
    }
    if intent.seed.is_none() {
        text += "the ECMP hash's seed is not part of these files: see verify.txt\n";
    }
    text
}

/// Reports the values that the chip sets, and those that were given instead.
fn chip(intent: &Intent) -> String {
    let Intent { chip: Some(chip), buffer, platform, .. } = intent else { return String::new() };
    let name = chip.name;
    let total = buffer.total.unwrap_or(0);
    let mmus = buffer.mmus;
    let each = if mmus > 1 { format!("{mmus} MMUs, each with ") } else { String::new() };
    let mut text = format!(
        "chip {name}: {each}{} bytes of buffer in cells of {} bytes\n",
        total / mmus,
        buffer.cell
    );
    let known = [("buffer", total, chip.buffer), ("mmus", mmus, chip.mmus)];
    let known = known.into_iter().chain(chip.cell.map(|cell| ("cell", buffer.cell, cell)));
    for (field, given, of_chip) in known.filter(|(_, given, of_chip)| given != of_chip) {
        text += &format!("{field} = {given} is given, and replaces {name}'s {of_chip}\n");
    }
    if chip.cell.is_none() && buffer.cell == platform.cell() {
        text +=
            &format!("no public source has the cell size of {name}: give `cell` if you know it\n");
    }
    text
}

fn check(intent: &Intent, files: &[PathBuf]) -> Result<Exit, Refusal> {
    let is_configuration = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        !name.is_some_and(|name| {
            name.starts_with("verify.") || name.starts_with("rollback.") || name == "ecmp.txt"
        })
    };
    let read = |path: &PathBuf| match fs::read_to_string(path) {
        Ok(text) => Ok(lint::File { name: escaped(&path.to_string_lossy()).into_owned(), text }),
        Err(source) => Err(Refusal::File { path: path.clone(), source }),
    };
    let files: Vec<_> =
        files.iter().filter(is_configuration).map(read).collect::<Result<_, _>>()?;
    if files.is_empty() {
        return Err(Refusal::NothingToCheck);
    }
    let findings = lint::lint(intent, &files);
    let lines: Vec<String> =
        findings.iter().map(|finding| format!("{}\n", escaped(&finding.to_string()))).collect();
    print(&lines.concat());
    if findings.is_empty() {
        print(&format!("{}: confirmed by {} files\n", intent.summary(), files.len()));
        return Ok(Exit::Done);
    }
    Ok(Exit::Failed)
}

/// Writes to standard output. A closed stream is not an error.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
