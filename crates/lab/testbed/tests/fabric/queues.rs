//! The two queues of each port.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Node, Queue, Queues, Topology, Weights};
use libtest_mimic::Failed;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DSCP: u32 = 43;

/// Tells the other threads of a test that it is over, even if it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a stream is still usable after a call that may have timed out.
fn goes_on(doing: &str, done: io::Result<usize>) -> bool {
    match done {
        Ok(length) => length > 0,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
        Err(error) => {
            println!("{doing}: {error}");
            false
        }
    }
}

fn marked(socket: &UdpSocket, byte: u32) -> Result<(), Failed> {
    let v6 = socket.local_addr()?.is_ipv6();
    let socket = SockRef::from(socket);
    Ok(if v6 { socket.set_tclass_v6(byte) } else { socket.set_tos_v4(byte) }?)
}

pub(crate) fn the_tiny_queue_is_for_one_dscp() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let ports = || -> Result<Vec<(u64, u64)>, Failed> {
        let way = [
            (Node::Host(1), Node::Leaf(1)),
            (Node::Leaf(1), Node::Spine(2)),
            (Node::Spine(2), Node::Leaf(2)),
            (Node::Leaf(2), Node::Host(4)),
        ];
        let port = |(node, neighbour)| {
            let port = fabric.port(node, neighbour)?;
            Ok((port.tiny.sent, port.default.sent))
        };
        way.into_iter().map(port).collect()
    };
    let mut expected = 0;
    for v6 in [false, true] {
        let receiver = bound(&to, v6, PORT)?;
        let sender = bound(&from, v6, 0)?;
        let alias: IpAddr =
            if v6 { to.path_address_v6(2)?.into() } else { to.path_address(2)?.into() };
        for dscp in 0..64 {
            for ecn in 0..4 {
                marked(&sender, dscp << 2 | ecn)?;
                sender.send_to(b"marked", (alias, PORT))?;
            }
            assert_eq!(arrivals(&receiver, 4), 4, "DSCP {dscp}, IPv6: {v6}");
        }
        expected += 4;
        for (tiny, default) in ports()? {
            assert_eq!(tiny, expected, "all that have the DSCP, and nothing else");
            assert!(default >= expected * 63);
        }
    }
    Ok(())
}

pub(crate) fn a_flood_leaves_tcp_its_share() -> Result<(), Failed> {
    let topology = Topology {
        rate: 40_000_000,
        uplink_rate: Some(20_000_000),
        tiny_packets: 5,
        weights: Weights { tiny: 1, default: 3 },
        ..small()
    };
    let fabric = Fabric::up(&topology)?;
    let flooding = fabric.host(1)?;
    let flooded = fabric.host(3)?;
    let sending = fabric.host(2)?;
    let receiving = fabric.host(4)?;
    let flood = bound(&flooding, false, 0)?;
    marked(&flood, DSCP << 2)?;
    let _sink = bound(&flooded, false, PORT)?;
    let listener = receiving.run(|| TcpListener::bind(("0.0.0.0", PORT)))??;
    let ended = &AtomicBool::new(false);
    let flood_to = (flooded.path_address(1)?, PORT);
    let send_to = (receiving.path_address(1)?, PORT);
    let deepest = thread::scope(|scope| -> Result<u64, Failed> {
        let _ends = Ends(ended);
        scope.spawn(|| {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let mut buffer = vec![0; 1 << 16];
            while !ended.load(Ordering::Relaxed) && goes_on("reading", stream.read(&mut buffer)) {}
        });
        let mut stream = sending.run(|| TcpStream::connect(send_to))??;
        scope.spawn(move || {
            let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
            let bytes = [0; 100_000];
            while !ended.load(Ordering::Relaxed) && goes_on("writing", stream.write(&bytes)) {}
        });
        let watch = || {
            // First TCP has the link to itself, and fills its queue. With a window from under the
            // flood, or behind an equally slow port of its own, it would leave the queue empty at
            // times.
            thread::sleep(Duration::from_millis(1000));
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let _ = flood.send_to(&[0; 1400], flood_to);
                }
            });
            thread::sleep(Duration::from_millis(500));
            let port = || fabric.port(Node::Leaf(1), Node::Spine(1));
            let before = port()?;
            let start = Instant::now();
            let mut deepest = 0;
            while start.elapsed() < Duration::from_secs(3) {
                thread::sleep(Duration::from_millis(10));
                for port in fabric.ports_of(Node::Leaf(1))? {
                    assert_eq!(port.tiny.limit, 5);
                    assert!(port.tiny.backlog <= 5, "{port:?}");
                    deepest = deepest.max(port.tiny.backlog);
                }
            }
            let after = port()?;
            let seconds = start.elapsed().as_secs_f64();
            let tiny = (after.tiny.bytes - before.tiny.bytes) as f64 * 8.0 / seconds / 1e6;
            let rest = (after.default.bytes - before.default.bytes) as f64 * 8.0 / seconds / 1e6;
            println!(
                "of 20 Mb/s at weights 1:3: tiny {tiny:.1}, {} dropped, deepest {deepest}; TCP {rest:.1}",
                after.tiny.dropped - before.tiny.dropped,
            );
            assert!(after.tiny.dropped > before.tiny.dropped);
            assert!((11.0..18.0).contains(&rest), "TCP has {rest} of 15 Mb/s");
            assert!((3.0..9.0).contains(&tiny), "the flood has {tiny} of 5 Mb/s");
            assert!(tiny + rest < 22.0, "more than the link carries");
            Ok(deepest)
        };
        watch()
    })?;
    assert!(deepest >= 3, "the flood has filled the queue");
    Ok(())
}

/// Floods in the first tiny queue, in the second and in the default queue share one uplink. Then the first flood
/// ends.
pub(crate) fn tiny_queues_have_one_weight_and_an_order() -> Result<(), Failed> {
    const LOW: u8 = 45;
    let topology = Topology {
        rate: 40_000_000,
        uplink_rate: Some(20_000_000),
        low_dscps: vec![LOW],
        weights: Weights { tiny: 3, default: 1 },
        ..small()
    };
    let fabric = Fabric::up(&topology)?;
    let first = fabric.host(1)?;
    let second = fabric.host(2)?;
    let to = fabric.host(3)?;
    let _sink = bound(&to, false, PORT)?;
    let flood_to = (to.path_address(1)?, PORT);
    let sender = |from, byte| -> Result<UdpSocket, Failed> {
        let socket = bound(from, false, 0)?;
        marked(&socket, byte)?;
        Ok(socket)
    };
    let urgent = sender(&first, DSCP << 2)?;
    let others = [sender(&second, u32::from(LOW) << 2)?, sender(&second, 0)?];
    let over = &AtomicBool::new(false);
    let urgent_over = &AtomicBool::new(false);
    let flood = |socket: UdpSocket, is_over: &AtomicBool| {
        while !is_over.load(Ordering::Relaxed) {
            // More than any port carries, even if the thread wakes late.
            for _ in 0..32 {
                let _ = socket.send_to(&[0; 1400], flood_to);
            }
            thread::sleep(Duration::from_millis(1));
        }
    };
    // The rates of the three queues in Mb/s.
    let rates = || -> Result<[f64; 3], Failed> {
        thread::sleep(Duration::from_millis(500));
        let sent = || -> Result<[u64; 3], Failed> {
            let port = fabric.port(Node::Leaf(1), Node::Spine(1))?;
            assert!(port.low[0].limit == port.tiny.limit && port.low[0].backlog <= 8, "{port:?}");
            Ok([port.tiny, port.low[0], port.default].map(|queue| queue.bytes))
        };
        let before = sent()?;
        let start = Instant::now();
        thread::sleep(Duration::from_millis(1500));
        let after = sent()?;
        let seconds = start.elapsed().as_secs_f64();
        Ok([0, 1, 2].map(|queue| (after[queue] - before[queue]) as f64 * 8.0 / seconds / 1e6))
    };
    let (with, without) = thread::scope(|scope| -> Result<_, Failed> {
        let _ends = Ends(over);
        let _urgent_ends = Ends(urgent_over);
        scope.spawn(move || flood(urgent, urgent_over));
        for socket in others {
            scope.spawn(move || flood(socket, over));
        }
        let with = rates()?;
        urgent_over.store(true, Ordering::Relaxed);
        Ok((with, rates()?))
    })?;
    println!("Mb/s of 20 at weights 3:1, two tiny queues and the other: {with:.1?}, {without:.1?}");
    assert!(with[0] > 11.0 && with[1] < 2.0 && with[2] > 3.0, "{with:?}");
    assert!(without[0] < 0.1 && without[1] > 11.0 && without[2] > 3.0, "{without:?}");
    Ok(())
}

pub(crate) fn a_super_packet_is_queued_in_pieces() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let receiver = bound(&to, false, PORT)?;
    let sender = bound(&from, false, 0)?;
    marked(&sender, DSCP << 2)?;
    setsockopt(&sender, sockopt::UdpGsoSegment, &1400)?;
    let mut dropped = 0;
    // A switch's queue of 8 always drops part of a burst of 40. On a busy machine, a late host also causes a drop
    // now and then, but not each time.
    for train in 1..=20 {
        sender.send_to(&[0; 40 * 1400], (to.path_address(1)?, PORT))?;
        let queues = || -> Result<[Queue; 2], Failed> {
            let host = fabric.port(Node::Host(1), Node::Leaf(1))?.tiny;
            Ok([host, fabric.port(Node::Leaf(1), Node::Spine(1))?.tiny])
        };
        let begun = Instant::now();
        let mut now = queues()?;
        while now.iter().any(|queue| queue.sent + queue.dropped < train * 40) {
            assert!(begun.elapsed() < PATIENCE, "{now:?}");
            now = queues()?;
        }
        for queue in now {
            assert_eq!(queue.sent + queue.dropped, train * 40);
            assert_eq!(queue.bytes, queue.sent * (1400 + 8 + 20 + 14));
        }
        let [host, leaf] = now;
        assert_eq!(host.dropped, 0);
        if leaf.dropped == dropped {
            assert_eq!(arrivals(&receiver, 40), 40);
            return Ok(());
        }
        println!("train {train}: {} dropped", leaf.dropped - dropped);
        dropped = leaf.dropped;
        survivors(&receiver)?;
    }
    Err("the host sends bursts that its rate forbids".into())
}

pub(crate) fn queues_change_while_the_fabric_is_up() -> Result<(), Failed> {
    let mut fabric = Fabric::up(&small())?;
    let limits = |fabric: &Fabric| -> Result<Vec<(u64, u64)>, Failed> {
        let nodes = [Node::Host(1), Node::Leaf(1), Node::Spine(1)];
        let port = |node| {
            let port = fabric.ports_of(node)?.remove(0);
            Ok((port.tiny.limit, port.default.limit))
        };
        nodes.into_iter().map(port).collect()
    };
    let before = limits(&fabric)?;
    let host = before[0].0;
    let switch = small().queues();
    assert_eq!(before[1], (switch.tiny_packets.into(), switch.default_packets.into()));
    let weights = Weights { tiny: 9, default: 1 };
    fabric.set_queues(Queues { tiny_packets: 3, default_packets: 66, weights })?;
    assert_eq!(limits(&fabric)?, [(host, 66), (3, 66), (3, 66)]);
    let place = fabric.namespace(Node::Leaf(1))?;
    let classes = place.command("tc").args(["class", "show", "dev", "s1"]).output()?;
    let classes = String::from_utf8_lossy(&classes.stdout).into_owned();
    let rate = format!("rate {}Mbit", fabric.topology().rate / 10_000_000 * 9);
    assert!(classes.contains(&rate), "{rate} in {classes}");
    let refused = fabric.set_queues(Queues { tiny_packets: 0, default_packets: 66, weights });
    assert!(refused.is_err_and(|error| error.to_string().starts_with("tiny_packets 0: ")));
    assert_eq!(limits(&fabric)?[1], (3, 66), "nothing changed");
    Ok(())
}
