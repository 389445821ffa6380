//! System calls and context switches of one round trip, one at a time, beside TCP:
//! `cargo bench -p cloudburst-benches --bench hand_offs`.
//!
//! A request of 1.5 KB and a response of 1.5 or 5 KB, over loopback. Each end is a thread on a CPU of its
//! own, if there are two, and sleeps while it waits (`busy_poll` is zero). System calls are counted by
//! strace in two runs of different length, whose difference is divided by the difference in length, so that
//! set-up cancels out. Each group of system calls has runs of its own, in which all others run at full
//! speed: when all are traced at once, a round trip takes longer than retransmission timeouts, whose
//! threads then wake in each of them. Context switches, and the threads that an endpoint adds, are those of
//! a run without strace.
//!
//! It needs strace, and is skipped without it.

use cloudburst_net::{Bytes, Config, Endpoint, RequestParts, Security, blocking};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::{env, fs, thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime;

/// Round trips of the two runs that are traced, and of the one that is not.
const FEW: usize = 200;
const MANY: usize = 1_200;
const UNTRACED: usize = 2_000;
/// Round trips before the context switches are counted.
const WARM_UP: usize = 100;
const REQUEST: usize = 1_500;
/// The argument by which this program asks itself to run one row: `row`, bytes of the response, round trips.
const CHILD: &str = "--row";
/// The counts of the last run under strace.
const COUNTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/hand_offs.txt");

const ROWS: [(&str, &str, usize); 8] = [
    ("call on tokio, 1.5 KB", "call", 1_500),
    ("call on tokio, 5 KB", "call", 5_000),
    ("blocking send and recv, 1.5 KB", "send", 1_500),
    ("blocking send and recv, 5 KB", "send", 5_000),
    ("TCP on tokio, 1.5 KB", "tcp-tokio", 1_500),
    ("TCP on tokio, 5 KB", "tcp-tokio", 5_000),
    ("blocking TCP, 1.5 KB", "tcp", 1_500),
    ("blocking TCP, 5 KB", "tcp", 5_000),
];

/// The groups of system calls, in the order of the columns.
const GROUPS: [(&str, &[&str]); 6] = [
    ("futex", &["futex"]),
    ("epoll", &["epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl", "poll", "ppoll"]),
    ("send", &["sendto", "sendmsg", "sendmmsg"]),
    ("receive", &["recvfrom", "recvmsg", "recvmmsg"]),
    ("timer", &["timerfd_settime", "clock_nanosleep", "nanosleep"]),
    ("eventfd", &["read", "write"]),
];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [child, row, response, count] if child == CHILD => run_row(row, response, count),
        // `cargo test --benches` and `--all-targets` run benches.
        _ if !arguments.iter().any(|argument| argument == "--bench") => {
            println!("hand_offs: skipped, it is not a test: cargo bench -p cloudburst-benches");
            Ok(())
        }
        _ if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() => {
            println!("hand_offs: skipped, there is no strace");
            Ok(())
        }
        _ => table(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hand_offs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn table() -> Result<()> {
    println!("For one round trip, both ends together; context switches and threads for one end.\n");
    let groups = GROUPS.map(|(name, _)| name).join(" | ");
    println!("| | {groups} | all | context switches an end | threads an end |");
    println!("|---|{}", "---|".repeat(GROUPS.len() + 3));
    for (name, row, response) in ROWS {
        let mut cells = Vec::new();
        for (_, calls) in GROUPS {
            let few = traced(row, response, FEW, calls)?;
            let many = traced(row, response, MANY, calls)?;
            cells.push((many - few) / (MANY - FEW) as f64);
        }
        cells.push(cells.iter().sum());
        let output = Command::new(env::current_exe()?)
            .args([CHILD, row, &response.to_string(), &UNTRACED.to_string()])
            .output()?;
        let output = String::from_utf8(output.stdout)?;
        for word in output.split_whitespace() {
            cells.push(word.parse()?);
        }
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:.1}")).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    Ok(())
}

/// Runs a row under strace. Returns the number of `calls`.
fn traced(row: &str, response: usize, count: usize, calls: &[&str]) -> Result<f64> {
    let status = Command::new("strace")
        .args(["-f", "-qq", "--seccomp-bpf", "-c", "-U", "calls,name", "-o", COUNTS])
        .arg("-e")
        .arg(format!("trace={}", calls.join(",")))
        .arg(env::current_exe()?)
        .args([CHILD, row, &response.to_string(), &count.to_string()])
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
fn run_row(row: &str, response: &str, count: &str) -> Result<()> {
    let response: usize = response.parse()?;
    let count: usize = count.parse()?;
    let (listening, address) = mpsc::channel();
    let cpus = cpus()?;
    let (server, client): (Serve, Call) = match row {
        "call" => (serve_calls, call),
        "send" => (serve_messages, send),
        "tcp-tokio" => (serve_tcp_on_tokio, tcp_on_tokio),
        _ => (serve_tcp, tcp),
    };
    thread::spawn(move || {
        if let Err(error) = pin(cpus[1]).and_then(|()| server(&listening, response)) {
            eprintln!("hand_offs: the server: {error}");
            std::process::exit(1);
        }
    });
    let caller = thread::spawn(move || {
        pin(cpus[0])?;
        let mut before = 0;
        let mut threads = 0;
        client(address.recv()?, response, count + WARM_UP, &mut |done| {
            if done == WARM_UP {
                before = context_switches()?;
            }
            if done == count + WARM_UP {
                threads = fs::read_dir("/proc/self/task")?.count();
            }
            Ok(())
        })?;
        Ok::<_, Box<dyn Error + Send + Sync>>((context_switches()? - before, threads))
    });
    let (switches, threads) = caller.join().map_err(|_| "the client panicked")??;
    // Without the main thread, and a thread for each end.
    let added = threads.saturating_sub(3) as f64 / 2.0;
    println!("{} {added}", switches as f64 / 2.0 / count as f64);
    // The server ends with the process.
    std::process::exit(0);
}

type Serve = fn(&mpsc::Sender<SocketAddr>, usize) -> Result<()>;
type Call = fn(SocketAddr, usize, usize, &mut dyn FnMut(usize) -> Result<()>) -> Result<()>;

/// The CPUs of both ends.
fn cpus() -> Result<[usize; 2]> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut cpus = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or_default());
    let first = cpus.next().ok_or("there is no CPU")?;
    Ok([first, cpus.next().unwrap_or(first)])
}

/// Pins this thread, and those that it starts.
fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn context_switches() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

fn endpoint() -> Result<Endpoint> {
    let config = Config { busy_poll: std::time::Duration::ZERO, ..Config::default() };
    let builder = Endpoint::builder().bind("127.0.0.1:0".parse()?).config(config);
    Ok(builder.security(Security::pre_shared([7; 32])).build()?)
}

fn current_thread() -> Result<runtime::Runtime> {
    Ok(runtime::Builder::new_current_thread().enable_all().build()?)
}

fn serve_calls(listening: &mpsc::Sender<SocketAddr>, response: usize) -> Result<()> {
    let endpoint = endpoint()?;
    let bytes = Bytes::from(vec![7; response]);
    current_thread()?.block_on(async {
        listening.send(endpoint.local_addr())?;
        let handler = |_: RequestParts| {
            let bytes = bytes.clone();
            async move { bytes }
        };
        endpoint.serve(16, handler).await;
        Ok(())
    })
}

fn call(
    to: SocketAddr,
    response: usize,
    count: usize,
    done: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let endpoint = endpoint()?;
    let request = Bytes::from(vec![7; REQUEST]);
    current_thread()?.block_on(async {
        for k in 1..=count {
            let answer = endpoint.call(to, request.clone()).await?;
            assert_eq!(answer.len(), response);
            done(k)?;
        }
        Ok(())
    })
}

fn serve_messages(listening: &mpsc::Sender<SocketAddr>, response: usize) -> Result<()> {
    let endpoint: blocking::Endpoint = endpoint()?.blocking();
    let bytes = Bytes::from(vec![7; response]);
    listening.send(endpoint.local_addr())?;
    let mut previous = None;
    loop {
        let request = endpoint.recv()?;
        // The next request shows that the previous response has arrived.
        let sending = endpoint.try_send(request.peer, bytes.clone())?;
        if let Some(sending) = previous.replace(sending) {
            let sending: blocking::Sending = sending;
            sending.wait()?;
        }
    }
}

fn send(
    to: SocketAddr,
    response: usize,
    count: usize,
    done: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let endpoint = endpoint()?.blocking();
    let request = Bytes::from(vec![7; REQUEST]);
    for k in 1..=count {
        let sending = endpoint.try_send(to, request.clone())?;
        assert_eq!(endpoint.recv()?.bytes.len(), response);
        sending.wait()?;
        done(k)?;
    }
    Ok(())
}

fn serve_tcp_on_tokio(listening: &mpsc::Sender<SocketAddr>, response: usize) -> Result<()> {
    current_thread()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        listening.send(listener.local_addr()?)?;
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let bytes = vec![7; response];
        let mut request = vec![0; REQUEST];
        while stream.read_exact(&mut request).await.is_ok() {
            stream.write_all(&bytes).await?;
        }
        Ok(())
    })
}

fn tcp_on_tokio(
    to: SocketAddr,
    response: usize,
    count: usize,
    done: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    current_thread()?.block_on(async {
        let mut stream = tokio::net::TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let mut bytes = vec![0; response];
        for k in 1..=count {
            stream.write_all(&[7; REQUEST]).await?;
            stream.read_exact(&mut bytes).await?;
            done(k)?;
        }
        Ok(())
    })
}

fn serve_tcp(listening: &mpsc::Sender<SocketAddr>, response: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listening.send(listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let bytes = vec![7; response];
    let mut request = vec![0; REQUEST];
    while stream.read_exact(&mut request).is_ok() {
        stream.write_all(&bytes)?;
    }
    Ok(())
}

fn tcp(
    to: SocketAddr,
    response: usize,
    count: usize,
    done: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; response];
    for k in 1..=count {
        stream.write_all(&[7; REQUEST])?;
        stream.read_exact(&mut bytes)?;
        done(k)?;
    }
    Ok(())
}
