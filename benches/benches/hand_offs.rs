//! System calls and context switches of one call, one at a time, beside TCP, HTTP/2 and QUIC:
//! `cargo bench -p cloudburst-benches --bench hand_offs`.
//!
//! A request of 1.5 KB and a response of 1.5 or 5 KB, over loopback. Each end is a thread on a CPU of its
//! own, if there are two, and sleeps while it waits (`busy_poll` is zero). System calls are counted by
//! strace in two runs of different length, whose difference is divided by the difference in length, so that
//! set-up cancels out. Each group of system calls has runs of its own, in which all others run at full
//! speed: when all are traced at once, a round trip takes longer than retransmission timeouts, whose
//! threads then wake in each of them. `all` is the sum of these groups; others are not counted. Context switches, and the threads that an endpoint adds, are those of
//! a run without strace. The last table says which targets are met.
//!
//! It needs strace, and is skipped without it.

use cloudburst_benches::ends::Ends;
use cloudburst_benches::transport::{
    Calls, Http2, Messages, Quic, Tcp, TcpTasks, Transport, config,
};
use cloudburst_benches::usage::Usage;
use cloudburst_benches::{Result, run};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs};

/// Round trips of the two runs that are traced, and of the one that is not.
const FEW: usize = 200;
const MANY: usize = 1_200;
const UNTRACED: usize = 2_000;
/// Round trips before the context switches are counted.
const WARM_UP: usize = 100;
/// The argument by which this program asks itself to run one row: `row`, bytes of the response, round trips.
const CHILD: &str = "--row";
/// The counts of the last run under strace.
const COUNTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/hand_offs.txt");
/// The timeout of a run: strace makes system calls slower.
const LONGEST_RUN: Duration = Duration::from_secs(60);

const ROWS: [(&str, &str); 6] = [
    ("call", "`call` on tokio"),
    ("messages", "blocking `send` and `recv`"),
    ("quic", "quinn on tokio"),
    ("http2", "HTTP/2 on tokio"),
    ("tcp-tasks", "TCP on tokio"),
    ("tcp", "blocking TCP"),
];
const RESPONSES: [(usize, &str); 2] = [(1_500, "1.5 KB"), (5_000, "5 KB")];

/// Targets: a row, a column, and what its figure is at most.
const TARGETS: [(&str, &str, f64); 5] = [
    ("call", "futex", 0.0),
    ("messages", "futex", 0.0),
    ("call", "all", 12.0),
    ("call", SWITCHES, 2.0),
    ("call", THREADS, 1.0),
];
const SWITCHES: &str = "context switches an end";
const THREADS: &str = "threads an end";

/// The groups of system calls, in the order of the columns.
const GROUPS: [(&str, &[&str]); 6] = [
    ("futex", &["futex"]),
    ("epoll", &["epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl", "poll", "ppoll"]),
    ("send", &["sendto", "sendmsg", "sendmmsg", "writev"]),
    ("receive", &["recvfrom", "recvmsg", "recvmmsg", "readv"]),
    ("timer", &["timerfd_settime", "clock_nanosleep", "nanosleep"]),
    ("eventfd", &["read", "write"]),
];

fn main() -> ExitCode {
    run("hand_offs", |arguments| match arguments {
        [child, row, response, count] if child == CHILD => {
            run_row(row, response.parse()?, count.parse()?)
        }
        _ if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() => {
            println!("hand_offs: skipped, there is no strace");
            Ok(())
        }
        _ => table(),
    })
}

fn table() -> Result<()> {
    println!("For one round trip, both ends together; context switches and threads for one end.\n");
    let columns: Vec<_> =
        GROUPS.iter().map(|(name, _)| *name).chain(["all", SWITCHES, THREADS]).collect();
    println!("| | {} |\n|---|{}", columns.join(" | "), "---:|".repeat(columns.len()));
    let mut verdicts = String::new();
    for ((row, name), (response, size)) in
        ROWS.into_iter().flat_map(|row| RESPONSES.map(|response| (row, response)))
    {
        let mut cells = Vec::new();
        for (_, calls) in GROUPS {
            let few = traced(row, response, FEW, calls)?;
            let many = traced(row, response, MANY, calls)?;
            cells.push((many - few) / (MANY - FEW) as f64);
        }
        cells.push(cells.iter().sum());
        let output = Command::new(env::current_exe()?)
            .args(["--bench", CHILD, row, &response.to_string(), &UNTRACED.to_string()])
            .output()?;
        if !output.status.success() {
            return Err(format!("{row}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let output = String::from_utf8(output.stdout)?;
        for word in output.split_whitespace() {
            cells.push(word.parse()?);
        }
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:.1}")).collect();
        println!("| {name}, {size} | {} |", cells.join(" | "));
        for (_, column, bound) in TARGETS.iter().filter(|(target, ..)| *target == row) {
            let at = columns.iter().position(|name| name == column).ok_or("an unknown column")?;
            // As it is printed: set-up that differs between two runs is no system call of a round trip.
            let met = if cells[at].parse::<f64>()? <= *bound { "met" } else { "**missed**" };
            let figure = &cells[at];
            verdicts +=
                &format!("| {name}, {size}: {column} | at most {bound} | {figure} | {met} |\n");
        }
    }
    println!("\n| target | | | |\n|---|---|---:|---|\n{verdicts}");
    Ok(())
}

/// Runs a row under strace. Returns the number of `calls`.
fn traced(row: &str, response: usize, count: usize, calls: &[&str]) -> Result<f64> {
    let status = Command::new("strace")
        .args(["-f", "-qq", "--seccomp-bpf", "-c", "-U", "calls,name", "-o", COUNTS])
        .arg("-e")
        .arg(format!("trace={}", calls.join(",")))
        .arg(env::current_exe()?)
        .args(["--bench", CHILD, row, &response.to_string(), &count.to_string()])
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("{row} failed under strace: {status}").into());
    }
    let mut total = 0.0;
    for line in fs::read_to_string(COUNTS)?.lines() {
        let mut words = line.split_whitespace();
        let (Some(count), Some(name)) = (words.next(), words.next()) else { continue };
        if calls.contains(&name) {
            total += count.parse::<f64>()?;
        }
    }
    Ok(total)
}

/// Runs a row, and prints the context switches of a round trip and the added threads, of one end.
fn run_row(row: &str, response: usize, count: usize) -> Result<()> {
    let ends = Ends::on_loopback()?;
    let asleep = config(Duration::ZERO);
    let mut transport: Box<dyn Transport> = match row {
        "call" => Box::new(Calls::open(&ends, &asleep)?),
        "messages" => Box::new(Messages::open(&ends, &asleep)?),
        "quic" => Box::new(Quic::open(&ends)?),
        "http2" => Box::new(Http2::open(&ends)?),
        "tcp-tasks" => Box::new(TcpTasks::open(&ends)?),
        "tcp" => Box::new(Tcp::asleep(&ends)?),
        row => return Err(format!("there is no row {row}").into()),
    };
    transport.round_trips(response, WARM_UP, LONGEST_RUN)?;
    let before = Usage::now()?;
    let done = transport.round_trips(response, count, LONGEST_RUN)?.len();
    let switches = Usage::since(before)?.context_switches;
    if done < count {
        return Err(format!("{row}: {done} of {count} round trips in {LONGEST_RUN:?}").into());
    }
    // Without the client's thread and the server's.
    let added = fs::read_dir("/proc/self/task")?.count().saturating_sub(2) as f64 / 2.0;
    println!("{} {added}", switches as f64 / 2.0 / count as f64);
    Ok(())
}
