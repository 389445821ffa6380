//! The effect of a flood of handshake packets on the latency to a server, over loopback at 1 Gb/s:
//! `cargo bench -p cloudburst-benches --bench hello_flood`.
//!
//! A client sends messages of 5 KB to a server and times each from the call to STOP, while a stranger
//! with a plain socket sends 10,000 packets a second:
//!
//! | row | packets of the stranger |
//! |---|---|
//! | `junk elsewhere` | as `junk`, but to a socket that is never read: the baseline |
//! | `the same again` | the baseline once more: the deviation of its ratios from 1 is the error of the other rows |
//! | `junk` | to the server, packets as long as a HELLO and random after the first byte: no answer |
//! | `replayed HELLO` | a HELLO that opened another client's handshake with this server: RETRY |
//! | `replayed OPEN` | an OPEN of that handshake, whose token is another address's: RETRY |
//! | `no flood` | nothing |
//!
//! The baseline also sends, because the stranger shares the machine: with few cores it takes processor
//! time from client and server that a remote stranger would not. The ratios are to the baseline, and thus
//! show the cost of receiving and answering the flood; the row `no flood` shows the cost of sending it. They
//! err on the high side: dropping packets at a full socket is cheaper than queueing them, and the system's
//! work for the RETRYs that reach the stranger counts as the server's.
//!
//! The rows are measured in rounds of trials of about 50 ms. Each round starts with another row, and every
//! other round is in reverse order. A ratio is the median over rounds of the ratio within the round, so that
//! other load on this machine cancels out; it is followed by the 95 % confidence interval of that median. The
//! percentiles and the last column are over all rounds together.
//!
//! No flood may raise the p99 by more than 10 %: if one does, this prints "MISSED" and fails.

use cloudburst_benches::stats::{Median, order, percentile};
use cloudburst_benches::transport::{KEY, builder, message};
use cloudburst_benches::{Result, run};
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::handshake::{HELLO_LEN, HelloKey, Retry};
use cloudburst_net::{Config, Endpoint, PathMap};
use nix::sys::prctl;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

const ROUNDS: usize = 240;
/// Timed messages of a trial.
const MESSAGES: usize = 1_000;
/// Messages before these, while the flood starts.
const WARM_UP: usize = 100;
/// The maximum p99 under a flood, as a multiple of the baseline's.
const LIMIT: f64 = 1.1;
/// The time from one packet of the flood to the next.
const PERIOD: Duration = Duration::from_micros(100);
/// The minimum packets a second of a valid flood of 10,000.
const LEAST_RATE: f64 = 9_900.0;
/// The number of different packets of junk, which are sent cyclically.
const JUNK: usize = 1_000;
/// The timeout for an answer to the stranger.
const PATIENCE: Duration = Duration::from_secs(5);

/// The stranger's behaviour during a trial.
struct Row {
    name: &'static str,
    packets: Vec<Vec<u8>>,
    to: SocketAddr,
    trials: Vec<Trial>,
}

/// The sorted times of one trial, and its flood.
struct Trial {
    times: Vec<Duration>,
    packets: usize,
    packets_per_second: f64,
}

fn main() -> ExitCode {
    run("hello_flood", |_| compare())
}

fn compare() -> Result<()> {
    let server = endpoint(PathMap::ecmp(4))?;
    let address = server.local_addr();
    let taking = {
        let server = server.clone();
        thread::spawn(move || while server.recv().wait().is_ok() {})
    };
    let (hello, open) = capture(address)?;
    // Never read: once its receive buffer is full, the system drops further packets.
    let unread = UdpSocket::bind("127.0.0.1:0")?;
    let row = |name, packets, to| Row { name, packets, to, trials: Vec::new() };
    let mut rows = [
        row("junk elsewhere", junk(), unread.local_addr()?),
        row("the same again", junk(), unread.local_addr()?),
        row("junk", junk(), address),
        row("replayed HELLO", vec![hello], address),
        row("replayed OPEN", vec![open], address),
        row("no flood", vec![], address),
    ];
    // Not the address of the handshake, to which its token is bound.
    let stranger = UdpSocket::bind("127.0.0.2:0")?;
    check(&server, &stranger, &rows)?;

    let client = endpoint(PathMap::ecmp(4))?;
    client.connect(address).wait()?;
    let before = server.counters();
    for round in 0..ROUNDS {
        for row in order(round, rows.len()) {
            let row = &mut rows[row];
            row.trials.push(measure(&client, address, &stranger, row)?);
        }
    }
    let after = server.counters();
    server.blocking_shutdown(Duration::from_millis(100));
    taking.join().map_err(|_| "the server's thread panicked")?;
    print(&rows);
    println!(
        "\nOf {} packets of junk the server refused {}. Packets that found its receive buffers full: {}.",
        rows[2].trials.iter().map(|trial| trial.packets).sum::<usize>(),
        after.receiver.refused_handshakes - before.receiver.refused_handshakes,
        after.io.kernel_drops - before.io.kernel_drops,
    );
    judge(&rows)
}

fn endpoint(paths: PathMap) -> Result<Endpoint> {
    let config = Config { capacity: 1_000_000_000.into(), ..Config::default() };
    let builder = builder(config).bind("127.0.0.1:0".parse()?).paths(paths);
    Ok(builder.build()?)
}

/// Captures the HELLO and the OPEN of a client's handshake with `server`, by a relay between the two.
fn capture(server: SocketAddr) -> Result<(Vec<u8>, Vec<u8>)> {
    let [front, back] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(PATIENCE))?;
    }
    // One source port: the relay has one socket towards the server.
    let client = endpoint(PathMap::ecmp(1))?;
    let _sending = client.send(front.local_addr()?, "hello").begin()?;
    let mut hello = None;
    let mut buffer = [0; 2_048];
    loop {
        let (len, from) = front.recv_from(&mut buffer)?;
        let packet = buffer[..len].to_vec();
        match Kind::of(&packet)? {
            Kind::Hello => {
                back.send_to(&packet, server)?;
                hello.get_or_insert(packet);
                // The answer to a repeated HELLO may come from another of the server's ports.
                let (len, _) = back.recv_from(&mut buffer)?;
                front.send_to(&buffer[..len], from)?;
            }
            // The handshake ends here: the relay's address is not one of the server's own.
            Kind::Open => return Ok((hello.ok_or("an OPEN before any HELLO")?, packet)),
            kind => return Err(format!("a {kind:?} during the handshake").into()),
        }
    }
}

/// Returns packets as long as a HELLO, of which only the first byte is valid.
fn junk() -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let packet = |_| [0x31].into_iter().chain((1..HELLO_LEN).map(|_| random())).collect();
    (0..JUNK).map(packet).collect()
}

/// Checks that the server handles each flood as intended: two packets of junk are dropped, the others
/// get a RETRY.
fn check(server: &Endpoint, stranger: &UdpSocket, rows: &[Row; 6]) -> Result<()> {
    let [_, _, junk, hello, open, _] = rows;
    let refused = server.counters().receiver.refused_handshakes;
    stranger.set_read_timeout(Some(PATIENCE))?;
    for (row, token_refused) in [(hello, false), (open, true)] {
        // If the junk before it were answered, the answer would be read here.
        for packet in [&junk.packets[0], &row.packets[0]] {
            stranger.send_to(packet, row.to)?;
        }
        let mut buffer = [0; 2_048];
        let (len, _) = stranger.recv_from(&mut buffer)?;
        let retry = Retry::parse(&HelloKey::new(&KEY), &buffer[..len])?;
        if retry.is_none_or(|retry| retry.token_refused != token_refused) {
            return Err(format!("{}: not the RETRY that is due: {retry:?}", row.name).into());
        }
    }
    let refused = server.counters().receiver.refused_handshakes - refused;
    if refused != 2 {
        return Err(format!("junk: 2 packets, of which {refused} were refused").into());
    }
    Ok(())
}

fn measure(
    client: &Endpoint,
    server: SocketAddr,
    stranger: &UdpSocket,
    row: &Row,
) -> Result<Trial> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let begun = Instant::now();
        let flood = scope.spawn(|| flood(stranger, row, &over));
        let times = time_messages(client, server);
        over.store(true, Ordering::Relaxed);
        let packets = flood.join().map_err(|_| "the stranger's thread panicked")??;
        let packets_per_second = packets as f64 / begun.elapsed().as_secs_f64();
        let mut times = times?;
        times.sort_unstable();
        Ok(Trial { times, packets, packets_per_second })
    })
}

fn time_messages(client: &Endpoint, server: SocketAddr) -> Result<Vec<Duration>> {
    let bytes = message(5_000, 0);
    let mut times = Vec::with_capacity(MESSAGES);
    for at in 0..WARM_UP + MESSAGES {
        let start = Instant::now();
        client.send(server, bytes.clone()).wait()?;
        if at >= WARM_UP {
            times.push(start.elapsed());
        }
    }
    Ok(times)
}

/// Sends at the average rate until `over`; late wake-ups are made up for. Returns the number of packets
/// sent.
fn flood(stranger: &UdpSocket, row: &Row, over: &AtomicBool) -> io::Result<usize> {
    // Sleeps end late by the timer slack, whose default is half of the period.
    prctl::set_timerslack(1)?;
    let mut due = Instant::now();
    let mut sent = 0;
    for packet in row.packets.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        stranger.send_to(packet, row.to)?;
        due += PERIOD;
        sent += 1;
    }
    Ok(sent)
}

fn print(rows: &[Row]) {
    println!(
        "| the stranger sends | packets/s | p50 | p99 | p50 of baseline | p99 of baseline | p99, all rounds |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let baseline = &rows[0];
    let all_p99 = percentile(&baseline.times(), 99);
    for row in rows {
        let times = row.times();
        let [p50, p99] = [50, 99].map(|percent| percentile(&times, percent));
        let [of_p50, of_p99] = [50, 99].map(|percent| row.ratio(baseline, percent));
        let all = p99.as_secs_f64() / all_p99.as_secs_f64();
        let name = row.name;
        let rate = row.rate();
        println!("| {name} | {rate:.0} | {p50:.1?} | {p99:.1?} | {of_p50} | {of_p99} | {all:.3} |");
    }
}

/// Prints whether the target is met, and fails if it is missed.
fn judge(rows: &[Row; 6]) -> Result<()> {
    let [baseline, _, floods @ .., _] = rows;
    let mut met = true;
    for row in floods {
        let name = row.name;
        let rate = row.rate();
        let ratio = row.ratio(baseline, 99).value;
        if rate < LEAST_RATE {
            println!("MISSED: {name}: only {rate:.0} packets a second could be sent");
            met = false;
        } else if ratio > LIMIT {
            println!("MISSED: {name}: p99 is {ratio:.3} of the baseline's, more than {LIMIT:.2}");
            met = false;
        }
    }
    if !met {
        return Err("a target is missed".into());
    }
    println!("Met: no flood makes p99 more than {LIMIT:.2} of the baseline's.");
    Ok(())
}

impl Row {
    /// Returns the sorted times of all trials.
    fn times(&self) -> Vec<Duration> {
        let mut times: Vec<_> =
            self.trials.iter().flat_map(|trial| &trial.times).copied().collect();
        times.sort_unstable();
        times
    }

    fn rate(&self) -> f64 {
        Median::of(self.trials.iter().map(|trial| trial.packets_per_second)).value
    }

    /// Returns the percentile as a fraction of that of `baseline` in the same round.
    fn ratio(&self, baseline: &Self, percent: usize) -> Median {
        let of = |trial: &Trial| percentile(&trial.times, percent).as_secs_f64();
        let rounds = self.trials.iter().zip(&baseline.trials);
        Median::of(rounds.map(|(trial, base)| of(trial) / of(base)))
    }
}
