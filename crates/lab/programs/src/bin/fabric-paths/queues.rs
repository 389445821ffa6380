//! The depth of the tiny queue, and the throughput that remains for TCP.

use cloudburst_bench_programs::rig::{Failure, LARGE, PORT, Rig, go_on};
use cloudburst_net::{Endpoint, PathMap};
use cloudburst_testbed::{Host, Node, Port, Topology, Weights};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

const SENDERS: u16 = 4;
/// The host of leaf 2 that all send to.
const SINK: u16 = 6;
/// Messages that each sender has in flight at a time.
const AT_ONCE: usize = 2;
const WATCHED: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_millis(200);

/// Tells the other threads to end, also when watching fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn run(interrupted: &AtomicBool) -> Result<(), Failure> {
    println!(
        "## Queues: {SENDERS} hosts of leaf 1 send messages of {LARGE} bytes to one of leaf 2, \
         {AT_ONCE} at a time each, over `ecmp:16`; a fifth sends TCP to another by spine 1\n\n\
         Links of 40 Mb/s, between switches of 20 Mb/s: the senders' paths carry half of what they \
         offer. Over {} s.\n\n\
         | weights | deepest queue seen, of 8 | samples | dropped there | messages | DSCP's queue, \
         l1 to s1, Mb/s | TCP, l1 to s1, Mb/s | TCP's share by weight, Mb/s |\n\
         |---|---|---|---|---|---|---|---|",
        WATCHED.as_secs(),
    );
    for weights in [Weights { tiny: 1, default: 1 }, Weights { tiny: 1, default: 3 }] {
        row(weights, interrupted)?;
    }
    Ok(())
}

fn row(weights: Weights, interrupted: &AtomicBool) -> Result<(), Failure> {
    let topology = Topology {
        hosts: 10,
        rate: 40_000_000,
        uplink_rate: Some(20_000_000),
        weights,
        ..Topology::default()
    };
    let rig = Rig::up(&topology, interrupted)?;
    let tcp_from = rig.fabric.host(5)?;
    let tcp_to = rig.fabric.host(10)?;
    let peer = SocketAddr::new(rig.fabric.host(SINK)?.v4().into(), PORT);
    let _sink = rig.sink(SINK, peer.ip())?;
    let senders = senders(&rig)?;
    let ended = &AtomicBool::new(false);
    let messages = &AtomicU64::new(0);
    let (seen, before, after, seconds) = thread::scope(|scope| {
        let _ends = Ends(ended);
        tcp(scope, &tcp_from, &tcp_to, ended)?;
        // TCP has the link to itself at first: under the flood its window would stay small.
        pause(Duration::from_secs(1), interrupted)?;
        for sender in senders.iter().flat_map(|sender| [sender; AT_ONCE]) {
            scope.spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    let sent = sender.send(peer, vec![7; LARGE]).wait();
                    messages.fetch_add(u64::from(sent.is_ok()), Ordering::SeqCst);
                }
            });
        }
        pause(Duration::from_millis(500), interrupted)?;
        let port = || rig.fabric.port(Node::Leaf(1), Node::Spine(1));
        let before = port()?;
        let start = Instant::now();
        let mut seen = Seen::default();
        while start.elapsed() < WATCHED {
            rig.go_on()?;
            for node in [Node::Leaf(1), Node::Leaf(2)] {
                rig.fabric.ports_of(node)?.iter().for_each(|port| seen.see(port));
            }
        }
        Ok::<_, Failure>((seen, before, port()?, start.elapsed().as_secs_f64()))
    })?;
    let rate = |after: u64, before: u64| (after - before) as f64 * 8.0 / seconds / 1e6;
    let share = 20.0 * f64::from(weights.default) / f64::from(weights.default + weights.tiny);
    println!(
        "| {}:{} | {} | {} | {} | {} | {:.1} | {:.1} | {share:.1} |",
        weights.tiny,
        weights.default,
        seen.deepest,
        seen.samples,
        after.tiny.dropped - before.tiny.dropped,
        messages.load(Ordering::SeqCst),
        rate(after.tiny.bytes, before.tiny.bytes),
        rate(after.default.bytes, before.default.bytes),
    );
    Ok(())
}

/// The observations of the tiny queues of the leaves.
#[derive(Default)]
struct Seen {
    deepest: u64,
    samples: u64,
}

impl Seen {
    fn see(&mut self, port: &Port) {
        self.deepest = self.deepest.max(port.tiny.backlog);
        self.samples += 1;
    }
}

fn senders(rig: &Rig) -> Result<Vec<Endpoint>, Failure> {
    let sender = |host| {
        let host = rig.fabric.host(host)?;
        let builder = rig.builder(host.v4().into(), 0).paths(PathMap::ecmp(16));
        Ok(host.run(|| builder.build())??)
    };
    (1..=SENDERS).map(sender).collect()
}

/// Runs a TCP stream through spine 1 until the measurement is over.
fn tcp<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    from: &Host,
    to: &Host,
    ended: &'scope AtomicBool,
) -> Result<(), Failure> {
    let address = (to.path_address(1)?, 7001);
    let listener = to.run(|| TcpListener::bind(("0.0.0.0", 7001)))?;
    let listener = listener.map_err(Failure::io("cannot listen for TCP"))?;
    let stream = from.run(|| TcpStream::connect(address))?;
    let mut stream = stream.map_err(Failure::io("cannot connect by TCP"))?;
    let accepted = listener.accept().map_err(Failure::io("cannot accept TCP"))?;
    let mut accepted = accepted.0;
    // A call must not block after the end.
    accepted.set_read_timeout(Some(PATIENCE)).map_err(Failure::io("TCP"))?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(Failure::io("TCP"))?;
    scope.spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while !ended.load(Ordering::SeqCst) {
            let _ = accepted.read(&mut buffer);
        }
    });
    scope.spawn(move || {
        while !ended.load(Ordering::SeqCst) {
            let _ = stream.write(&[0; 100_000]);
        }
    });
    Ok(())
}

fn pause(length: Duration, interrupted: &AtomicBool) -> Result<(), Failure> {
    thread::sleep(length);
    go_on(interrupted)
}
