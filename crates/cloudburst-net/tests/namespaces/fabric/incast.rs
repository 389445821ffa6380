//! Four hosts that send to one host of the other leaf at once, whose port is the bottleneck.

use super::rig::*;
use crate::common::{bytes, eventually};
use cloudburst_net::{BurstPolicy, Config, PathMap, PeerStats, ReceiverCounters};
use cloudburst_testbed::{Capture, Fabric, Node, Port, Topology};
use libtest_mimic::Failed;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;
use std::thread;

const SENDERS: u16 = 4;
const SINK: u16 = 5;
const MESSAGES: u64 = 10;

/// The totals of ten incasts in a row.
pub(crate) struct Incast {
    /// SYMBOL packets, those that a loss-free link needs, and those that went out because a timer had
    /// expired.
    pub(crate) sent: u64,
    pub(crate) needed: u64,
    pub(crate) retries: u64,
    /// Paths that senders consider dead in the end.
    pub(crate) degraded: usize,
    pub(crate) receiver: ReceiverCounters,
    /// Datagrams with a DSCP that the receiver does not know.
    pub(crate) foreign_dscp: u64,
    /// The port to the receiving host.
    pub(crate) port: Port,
    /// Packets with each ECN field that left the senders for the receiver, and those that arrived.
    pub(crate) left: [u64; 4],
    pub(crate) arrived: [u64; 4],
}

impl Incast {
    /// Packets with this ECN field that were dropped.
    pub(crate) fn dropped(&self, ecn: usize) -> u64 {
        self.left[ecn] - self.arrived[ecn]
    }
}

/// Has each of four hosts send messages of `len` bytes at the same time. The first `window` symbols
/// of each are burst, and the others are pulled.
pub(crate) fn incast(
    topology: &Topology,
    len: usize,
    window: u16,
    switches: cloudburst_net::Fabric,
) -> Result<Incast, Failed> {
    let fabric = Fabric::up(topology)?;
    // Taken before there are any packets, so that none is missing from one of the counts.
    let capture = |node| fabric.namespace(node)?.capture();
    let leaving = capture(Node::Leaf(1))?;
    let arriving = capture(Node::Host(SINK))?;
    let policy = BurstPolicy::Pulled { window: Some(window) };
    let build = |bind: Ipv4Addr| {
        let fabric = switches.clone();
        let config = Config { policy, capacity: RATE.into(), fabric, ..Config::default() };
        builder(bind).config(config).paths(PathMap::ecmp(16))
    };
    let host = fabric.host(SINK)?;
    let sink = host.run(|| build(Ipv4Addr::UNSPECIFIED).build())??.clone();
    let to = SocketAddr::new(host.v4().into(), sink.local_addr().port());
    let sender = |host| -> Result<_, Failed> {
        let host = fabric.host(host)?;
        Ok(host.run(|| build(host.v4()).build())??.clone())
    };
    let senders: Vec<_> = (1..=SENDERS).map(sender).collect::<Result<_, _>>()?;
    for sender in &senders {
        sender.send(to, bytes(100, 0)).wait()?;
        sink.recv().wait_for(TIMEOUT).ok_or("delivered, and not there")??;
    }
    let stats = || senders.iter().filter_map(|sender| sender.peer(to)).collect::<Vec<PeerStats>>();
    let sum = |peers: &[PeerStats], count: fn(&PeerStats) -> u64| -> u64 {
        peers.iter().map(count).sum()
    };
    let mut incast = Incast {
        sent: 0,
        needed: 0,
        retries: 0,
        degraded: 0,
        receiver: sink.counters().receiver,
        foreign_dscp: 0,
        port: fabric.port(Node::Leaf(2), Node::Host(SINK))?,
        left: [0; 4],
        arrived: [0; 4],
    };
    let before = stats();
    let start = Barrier::new(senders.len());
    thread::scope(|scope| -> Result<(), Failed> {
        let sending: Vec<_> = (0..)
            .zip(&senders)
            .map(|(seed, sender)| {
                let start = &start;
                scope.spawn(move || {
                    (0..MESSAGES).try_for_each(|number| {
                        start.wait();
                        sender.send(to, bytes(len, seed * MESSAGES + number)).wait().map(drop)
                    })
                })
            })
            .collect();
        for _ in 0..u64::from(SENDERS) * MESSAGES {
            let message = sink.recv().wait_for(TIMEOUT).ok_or("a message is missing")??;
            assert_eq!(message.bytes.len(), len);
            count(&leaving, host.v4(), &mut incast.left)?;
            count(&arriving, host.v4(), &mut incast.arrived)?;
        }
        for sending in sending {
            sending.join().expect("it does not panic")?;
        }
        Ok(())
    })?;
    eventually("the queues on the way are empty", || {
        let port = |(node, neighbour)| fabric.port(node, neighbour).expect("the fabric is there");
        way().all(|ends| port(ends).tiny.backlog == 0)
    });
    count(&leaving, host.v4(), &mut incast.left)?;
    count(&arriving, host.v4(), &mut incast.arrived)?;
    let after = stats();
    let since = |count: fn(&PeerStats) -> u64| sum(&after, count) - sum(&before, count);
    incast.sent = since(|peer| peer.sent.symbols_sent);
    incast.needed = since(|peer| peer.sent.source_symbols);
    incast.retries = since(|peer| peer.sent.retries);
    let paths = senders.iter().flat_map(|sender| sender.paths(to));
    incast.degraded = paths.filter(|path| path.degraded).count();
    incast.receiver = sink.counters().receiver;
    incast.foreign_dscp = sink.counters().io.foreign_dscp;
    incast.port = fabric.port(Node::Leaf(2), Node::Host(SINK))?;
    Ok(incast)
}

/// The ports from leaf 1 to the receiver.
fn way() -> impl Iterator<Item = (Node, Node)> {
    let spines = (1..=SPINES).map(Node::Spine);
    let over = spines.flat_map(|spine| [(Node::Leaf(1), spine), (spine, Node::Leaf(2))]);
    over.chain([(Node::Leaf(2), Node::Host(SINK))])
}

/// Counts the captured packets to `to` by their ECN fields.
fn count(capture: &Capture, to: Ipv4Addr, counts: &mut [u64; 4]) -> Result<(), Failed> {
    let packets = capture.packets()?;
    for packet in packets.iter().filter(|packet| packet[16..20] == to.octets()) {
        counts[usize::from(packet[1] & 0b11)] += 1;
    }
    Ok(())
}
