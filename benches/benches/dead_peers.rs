//! The effect of unresponsive peers on the latency to a responsive one, over loopback at 1 Gb/s.
//!
//! Measures the time from the call to STOP of messages of 5 KB to a living peer: while nothing else is in
//! flight; while 4,000 messages wait for a peer that has died; and while handshakes to 2,000 nonexistent
//! peers are attempted. The three are measured in turn, each with its own endpoint, so that other load on
//! this machine affects all of them alike.

use cloudburst_benches::stats::percentile;
use cloudburst_benches::transport::{builder, message};
use cloudburst_benches::{Result, run};
use cloudburst_net::{Config, Endpoint, PathMap, Sending};
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
/// Messages of a trial.
const MESSAGES: usize = 2_000;
const BACKLOG: usize = 4_000;
const DEAD_PEERS: u16 = 2_000;
/// The time from the death of a peer to the start of a trial.
const SILENT_FOR: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    run("dead_peers", |_| compare())
}

fn compare() -> Result<()> {
    let server = endpoint()?;
    let living = server.local_addr();
    let taking = {
        let server = server.clone();
        thread::spawn(move || while server.recv().wait().is_ok() {})
    };
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let client = endpoint()?;
        measure(&client, living, &mut times[0])?;
        drop(client);

        let client = endpoint()?;
        let (_dead, backlog) = kill_a_peer(&client)?;
        measure(&client, living, &mut times[1])?;
        drop((backlog, client));

        let client = endpoint()?;
        let (_sockets, sends) = contact_nobody(&client)?;
        measure(&client, living, &mut times[2])?;
        drop((sends, client));
    }
    server.blocking_shutdown(Duration::from_millis(100));
    taking.join().map_err(|_| "the server's thread panicked")?;
    print(&mut times);
    Ok(())
}

fn endpoint() -> Result<Endpoint> {
    let config = Config { capacity: 1_000_000_000.into(), ..Config::default() };
    let builder = builder(config).bind("127.0.0.1:0".parse()?).paths(PathMap::ecmp(4));
    Ok(builder.build()?)
}

/// Kills a peer that was there, and queues a backlog of messages to it.
fn kill_a_peer(client: &Endpoint) -> Result<(UdpSocket, Vec<Sending>)> {
    let peer = endpoint()?;
    let address = peer.local_addr();
    client.send(address, "hello").wait()?;
    drop(peer);
    // Occupies its port, so that not even the system answers there.
    let silent = UdpSocket::bind(address)?;
    let backlog = (0..BACKLOG).map(|_| client.send(address, vec![7; 100]).begin());
    let backlog = backlog.collect::<Result<_, _>>()?;
    thread::sleep(SILENT_FOR);
    Ok((silent, backlog))
}

/// Sends messages to nonexistent peers. One socket receives for all of them, and never answers.
fn contact_nobody(client: &Endpoint) -> Result<(UdpSocket, Vec<Sending>)> {
    let silent = UdpSocket::bind("0.0.0.0:0")?;
    let port = silent.local_addr()?.port();
    let address = |peer: u16| {
        let [a, b] = peer.to_be_bytes();
        SocketAddr::from(([127, 1, a, b], port))
    };
    let sends = (0..DEAD_PEERS).map(|peer| client.send(address(peer), vec![7; 100]).begin());
    let sends = sends.collect::<Result<_, _>>()?;
    thread::sleep(SILENT_FOR);
    Ok((silent, sends))
}

fn measure(client: &Endpoint, living: SocketAddr, times: &mut Vec<Duration>) -> Result<()> {
    let bytes = message(5_000, 0);
    // The handshake is not measured.
    client.send(living, "hello").wait()?;
    for _ in 0..MESSAGES {
        let start = Instant::now();
        client.send(living, bytes.clone()).wait()?;
        times.push(start.elapsed());
    }
    Ok(())
}

fn print(times: &mut [Vec<Duration>; 3]) {
    println!("| while | p50 | p99 | p99 of idle |");
    println!("|---|---:|---:|---:|");
    let names = [
        "nothing else is in flight",
        "4,000 messages wait for a dead peer",
        "2,000 dead peers are contacted",
    ];
    times.iter_mut().for_each(|times| times.sort_unstable());
    let idle = percentile(&times[0], 99);
    for (name, times) in names.into_iter().zip(&*times) {
        let [p50, p99] = [50, 99].map(|percent| percentile(times, percent));
        println!(
            "| {name} | {p50:.1?} | {p99:.1?} | {:.2} |",
            p99.as_secs_f64() / idle.as_secs_f64()
        );
    }
}
