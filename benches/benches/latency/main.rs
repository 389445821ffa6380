//! Cloudburst beside TCP, HTTP/2 and QUIC, between two network namespaces on this machine.
//!
//! | part | what is measured |
//! |---|---|
//! | `calls` | a request of 1.5 KB and a response of 5, 20 or 93 KB, one at a time: p50, p99, and CPU time |
//! | `loss` | the same with 1 % packet loss in each direction, offloads off |
//! | `floods` | messages of 5 KB a second, 64 in flight; goodput of messages of 93 KB, 32 in flight |
//! | `packets` | packets that Cloudburst sends for each source symbol, one message at a time |
//! | `trains` | goodput and time of 93 KB by Cloudburst alone, by packets back to back on a path |
//! | `memory` | what Cloudburst holds while 10,000 messages of 5 KB are in flight |
//!
//! Calls are compared between rivals that wait in the same way ([`cloudburst_benches::transport`]): an endpoint that
//! busy-polls beside a socket that sleeps would measure how fast the machine wakes an idle CPU. All rivals take part in
//! each round, in changing order, and a ratio is the median over rounds of the ratio within the round, followed by its
//! 95 % confidence interval, so that other load on this machine affects all of them alike; a ratio of p99 is that of all
//! rounds together. Compare only within a run, and ratios only between processors of one kind.
//!
//! Each end is a thread of this process, pinned with all of its threads to a CPU of its own. CPU time is that of both
//! ends.
//!
//! It needs root, iproute2, nftables and ethtool, and is skipped without them. Arguments choose parts; `--rounds=N`
//! shortens a run. A full run ends with the targets, the table that README.md shows, and takes three minutes. The exit
//! code is 1 if anything fails or takes too long, but not if a target is missed. `scripts/bench latency --last` prints
//! the tables again.

mod calls;
mod floods;
mod targets;
mod trains;

use crate::calls::Group;
use cloudburst_benches::ends::Ends;
use cloudburst_benches::stats::{digits, machine};
use cloudburst_benches::transport::{Messages, PATIENCE, config, message};
use cloudburst_benches::usage::Others;
use cloudburst_benches::{Result, run_in_namespaces};
use cloudburst_net::{Code, Config};
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The timeout of a run.
const LONGEST_RUN: Duration = Duration::from_secs(400);
/// The file of the tables.
const TABLES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/latency.md");

fn main() -> ExitCode {
    run_in_namespaces("latency", |arguments| {
        thread::spawn(|| {
            thread::sleep(LONGEST_RUN);
            eprintln!("latency: not done after {LONGEST_RUN:?}");
            process::exit(1);
        });
        run(arguments)
    })
}

fn run(arguments: &[String]) -> Result<()> {
    let mut rounds = 20;
    let mut parts = Vec::new();
    for argument in arguments {
        match argument.strip_prefix("--rounds=") {
            Some(number) => rounds = number.parse()?,
            None => parts.push(argument.as_str()),
        }
    }
    let wanted = |part| parts.is_empty() || parts.contains(&part);

    let ends = Ends::on_a_wire(0)?;
    let others = Others::watch()?;
    let mut text = String::new();
    // First, while the allocator holds no freed memory.
    if wanted("memory") {
        text += &memory(&ends)?;
    }
    let mut groups = Vec::new();
    if wanted("calls") {
        groups = calls::measure(Group::all(&ends)?, rounds, calls::IDLE)?;
        text += &calls::table("Calls without loss", &groups);
    }
    let mut lossy = Vec::new();
    if wanted("loss") {
        let ends = Ends::on_a_wire(1)?;
        lossy = calls::measure(vec![Group::tasks(&ends)?], rounds, calls::LOSSY)?;
        text += &calls::table("Calls with 1 % loss each way", &lossy);
    }
    let mut floods = Vec::new();
    if wanted("floods") {
        floods = floods::measure(&ends, rounds.div_ceil(2))?;
        text += &floods::table(&floods);
    }
    if wanted("packets") {
        text += &packets(&ends)?;
    }
    if wanted("trains") {
        text += &trains::table(&ends)?;
    }
    text += &targets::tables(&groups, &lossy, &floods);
    let text = format!(
        "Measured on {}.\n\nOther processes used {:.0} % of its CPUs meanwhile.\n{text}",
        machine(),
        others.share()? * 100.0
    );
    print!("\n{text}");
    if arguments.is_empty() {
        fs::write(TABLES, text).map_err(|error| format!("{TABLES}: {error}"))?;
    }
    Ok(())
}

fn packets(ends: &Ends) -> Result<String> {
    const MESSAGES: usize = 2_000;
    let messages = Messages::open(ends, &config(Duration::ZERO))?;
    let mut line = String::from("\nPackets for each source symbol, mean:");
    for (len, size) in [(1_500, "1.5 KB"), (5_000, "5 KB"), (20_000, "20 KB"), (93_000, "93 KB")] {
        let bytes = message(len, 0);
        let mut packets = 0;
        let mut symbols = 0;
        for _ in 0..MESSAGES {
            let receipt =
                messages.client().send(messages.server().local_addr(), bytes.clone()).wait()?;
            packets += receipt.packets;
            symbols += receipt.source_symbols;
        }
        line += &format!(" {size} {:.3},", packets as f64 / symbols as f64);
    }
    Ok(format!("{}.\n", line.trim_end_matches(',')))
}

/// Sends messages that the receiver's application does not take, and measures the memory when the receiver is full.
fn memory(ends: &Ends) -> Result<String> {
    const MESSAGES: usize = 10_000;
    const LEN: usize = 5_000;
    let config = config(Config::default().busy_poll);
    let endpoints = Messages::open_silent(ends, &config)?;
    let client = endpoints.client();
    let to = endpoints.server().local_addr();
    let before = resident()?;
    let mut under_way = Vec::with_capacity(MESSAGES);
    for _ in 0..MESSAGES {
        let sending = client.send(to, message(LEN, 0)).deadline(PATIENCE * 4);
        under_way.push(sending.begin()?);
    }
    let begun = Instant::now();
    let mut symbols = 0;
    loop {
        thread::sleep(Duration::from_millis(250));
        let useful = endpoints.server().counters().receiver.useful_symbols;
        if useful == symbols || begun.elapsed() > PATIENCE {
            break;
        }
        symbols = useful;
    }
    let grown = resident()?.saturating_sub(before);
    let limits = config.limits();
    let bound = limits.send_bytes + limits.receive_bytes + limits.decode_bytes_per_peer;
    let mb = |bytes: usize| digits(bytes as f64 / 1e6);
    Ok(format!(
        "\nMemory with {MESSAGES} messages of {LEN} bytes in flight, {} of them at the receiver, both ends together: \
         {} MB, {} bytes a message; the configured bound is {} MB.\n",
        symbols as usize / LEN.div_ceil(config.max_symbol(Code::default(), 28)),
        mb(grown),
        grown / MESSAGES,
        mb(bound),
    ))
}

/// Returns the resident bytes of this process.
fn resident() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    Ok(kib.ok_or("/proc/self/status has no VmRSS")? * 1024)
}
