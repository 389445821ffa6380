//! Cloudburst beside kernel TCP and QUIC, between two network namespaces on this machine.
//!
//! | row | what is measured |
//! |---|---|
//! | `idle/<response>` | a request of 1.5 KB and a response of 5, 20 or 93 KB, one at a time |
//! | `loss/<response>` | the same with 1 % packet loss in each direction, offloads off |
//! | `rate/5KB` | messages of 5 KB a second, 64 in flight |
//! | `goodput/93KB` | bits of messages of 93 KB a second, 32 in flight |
//! | `<flood>, CPU` | of the two rows above: processor time per message, both ends together |
//! | `<flood>, page faults` | likewise, minor page faults |
//! | `<flood>, system calls` | likewise, system calls, if perf_event_open(2) may count them |
//! | `<flood>, answers` | packets that Cloudburst's server sends for each message |
//! | `packets` | packets that Cloudburst sends for each source symbol, one message at a time |
//! | `trains` | the two rows of 93 KB for Cloudburst alone, by packets back to back on a path |
//! | `memory` | what Cloudburst holds while 10,000 messages of 5 KB are in flight |
//!
//! The three are measured in turn within each row, so that other load on this machine affects all of
//! them alike: compare only within a row. Both ends are threads of this process: the client's on one
//! CPU, the server's on another, the first two that the process may use. If the system puts both on one,
//! TCP's figures change by factors: a second table, `unpinned`, has the rows `idle`, `rate` and
//! `goodput` without pinning. With one CPU there is only that table, with all rows. Connections are
//! opened before the timing. TCP is in the clear, the others seal with AES-128-GCM.
//!
//! It needs root, iproute2, nftables and ethtool, and is skipped without them. An argument restricts the
//! rows to those whose names contain it. The exit code is 1 if anything fails or takes too long.
//! `scripts/bench latency --last` prints the tables again, and the path of the first one's chart.

mod chart;
mod cloudburst;
mod floods;
mod placement;
mod quic;
mod report;
mod tcp;
mod trains;
mod transport;
mod usage;

use crate::cloudburst::Cloudburst;
use crate::placement::Placement;
use crate::quic::Quic;
use crate::report::{Row, Times, Unit, digits, section};
use crate::tcp::Tcp;
use crate::transport::{Result, Transport, text};
use cloudburst_testbed::Wire;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, process, thread};

/// The timeout of a run.
const LONGEST_RUN: Duration = Duration::from_secs(220);
/// The file of the tables; the chart of the first is beside it.
const TABLE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/latency.md");
const CHART: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/latency.svg");

/// The responses, in bytes and by name.
const RESPONSES: [(usize, &str); 3] = [(5_000, "5KB"), (20_000, "20KB"), (93_000, "93KB")];
/// Trials of each transport in a row, and the round trips of each.
const TRIALS: usize = 20;
const IDLE_ROUND_TRIPS: usize = 300;
const LOSSY_ROUND_TRIPS: usize = 100;
/// The maximum length of a trial.
const LONGEST_TRIAL: Duration = Duration::from_millis(700);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    // `cargo test --benches` and `--all-targets` run benches, but this one takes too long for a test.
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("latency: skipped, it is not a test: cargo bench -p cloudburst-benches");
        return ExitCode::SUCCESS;
    }
    if let Err(reason) = cloudburst_testbed::available() {
        println!("latency: skipped, {reason}");
        return ExitCode::SUCCESS;
    }
    thread::spawn(|| {
        thread::sleep(LONGEST_RUN);
        eprintln!("latency: not done after {LONGEST_RUN:?}");
        process::exit(1);
    });
    let filter = arguments.into_iter().find(|argument| !argument.starts_with('-'));
    match run(&filter.unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latency: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(filter: &str) -> Result<()> {
    let wanted = |name: &str| name.contains(filter);
    let anywhere = Placement::anywhere()?;
    let apart = anywhere.apart();
    let placement = apart.as_ref().unwrap_or(&anywhere);
    let clean = placement.wire()?;
    let lossy = placement.wire()?;
    lossy.lose(1).map_err(text)?;
    let mut notes = Vec::new();
    // First, while the allocator holds no freed memory.
    if wanted("memory") {
        notes.push(memory(&clean)?);
    }
    let mut rows = without_loss(&clean, wanted)?;
    rows.extend(responses(&mut open(&lossy)?, "loss", LOSSY_ROUND_TRIPS, wanted)?);
    if wanted("packets") {
        notes.push(packets(&clean)?);
    }
    if wanted("trains") {
        notes.push(trains::table(&clean)?);
    }
    let mut text = if apart.is_some() {
        let unpinned = without_loss(&anywhere.wire()?, wanted)?;
        section("pinned: each end on a CPU of its own", &rows) + &section("unpinned", &unpinned)
    } else {
        section("unpinned: this process may use one CPU only", &rows)
    };
    text += &notes.join("\n");
    print!("\n{text}");
    if filter.is_empty() {
        fs::write(TABLE, text).map_err(|error| format!("{TABLE}: {error}"))?;
        chart::draw(Path::new(CHART), &rows)?;
        println!("\nchart: {CHART}");
    }
    Ok(())
}

/// Measures the rows without loss.
fn without_loss(wire: &Wire, wanted: impl Fn(&str) -> bool + Copy) -> Result<Vec<Row>> {
    let mut transports = open(wire)?;
    let mut rows = responses(&mut transports, "idle", IDLE_ROUND_TRIPS, wanted)?;
    rows.extend(floods::rows(&mut transports, wanted)?);
    Ok(rows)
}

fn responses(
    transports: &mut Transports,
    title: &str,
    count: usize,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (response, size) in RESPONSES {
        let name = format!("{title}/{size}");
        if wanted(&name) {
            rows.extend(round_trips(transports, &name, response, count)?);
        }
    }
    Ok(rows)
}

type Transports = [(&'static str, Box<dyn Transport>); 3];

fn open(wire: &Wire) -> Result<Transports> {
    let blame = |name: &'static str| move |error| format!("{name}: {error}");
    Ok([
        ("TCP", Box::new(Tcp::open(wire).map_err(blame("TCP"))?)),
        ("quinn", Box::new(Quic::open(wire).map_err(blame("quinn"))?)),
        ("Cloudburst", Box::new(Cloudburst::open(wire).map_err(blame("Cloudburst"))?)),
    ])
}

fn round_trips(
    transports: &mut Transports,
    name: &str,
    response: usize,
    count: usize,
) -> Result<[Row; 2]> {
    let mut times = [Times::new(), Times::new(), Times::new()];
    // The first trials warm up caches, windows and estimates.
    for round in 0..=TRIALS {
        for ((who, transport), times) in transports.iter_mut().zip(&mut times) {
            let took = transport.round_trips(response, count, LONGEST_TRIAL);
            let took = took.map_err(|error| format!("{name}, {who}: {error}"))?;
            if round > 0 {
                times.add(&took);
            }
        }
    }
    let counts = times.each_ref().map(Times::count);
    eprintln!("{name}: round trips of TCP, quinn, Cloudburst: {counts:?}");
    Ok([50.0, 99.0].map(|percent| Row {
        name: format!("{name}, p{percent}"),
        figures: times.each_ref().map(|times| times.percentile(percent)),
        unit: Unit::Microseconds,
    }))
}

fn packets(wire: &Wire) -> Result<String> {
    let cloudburst = Cloudburst::open(wire)?;
    let mut line = String::from("Packets for each source symbol, mean:");
    for (len, size) in [(1_500, "1.5KB"), (5_000, "5KB"), (20_000, "20KB"), (93_000, "93KB")] {
        let mean = cloudburst.packets_per_symbol(len, 2_000)?;
        line += &format!(" {size} {mean:.3},");
    }
    Ok(format!("{}.\n", line.trim_end_matches(',')))
}

fn memory(wire: &Wire) -> Result<String> {
    const LEN: usize = 5_000;
    let memory = Cloudburst::memory(wire, 10_000, LEN)?;
    let mb = |bytes: usize| digits(bytes as f64 / 1e6);
    Ok(format!(
        "Memory with {} messages of {LEN} bytes in flight, {} of them at the receiver, both ends \
         together: {} MB, {} bytes a message; the configured bound is {} MB.\n",
        memory.messages,
        memory.received,
        mb(memory.grown),
        memory.grown / memory.messages,
        mb(memory.bound),
    ))
}
