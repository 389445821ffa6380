//! Queues that trim, and queues that drop selectively.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Host, Node, Queue, Queues, Topology, Trim};
use libtest_mimic::Failed;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use socket2::SockRef;
use std::io::IoSliceMut;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

const DSCP: u8 = 43;
const TRIMMED: u8 = 44;
const ECT: u8 = 0b10;
const LENGTH: usize = 1400;

/// Its uplinks are a fifth as fast as its hosts.
fn slow_uplinks() -> Topology {
    Topology { uplink_rate: Some(20_000_000), ..small() }
}

/// The sum of the counters of the tiny queues of all ports.
fn counted(fabric: &Fabric, count: fn(&Queue) -> u64) -> Result<u64, Failed> {
    Ok(fabric.ports()?.iter().map(|port| count(&port.tiny)).sum())
}

/// A receiver on host 4 that reads marks, and its address through the first spine.
fn receiver(fabric: &Fabric, v6: bool) -> Result<(UdpSocket, IpAddr), Failed> {
    let host = fabric.host(4)?;
    let receiver = bound(&host, v6, PORT)?;
    if v6 {
        setsockopt(&receiver, sockopt::Ipv6RecvTClass, &true)?;
        return Ok((receiver, host.path_address_v6(1)?.into()));
    }
    setsockopt(&receiver, sockopt::IpRecvTos, &true)?;
    Ok((receiver, host.path_address(1)?.into()))
}

/// Sends packets of [`LENGTH`] bytes at once, each of which begins with its number.
fn burst(from: &Host, to: IpAddr, byte: u8, numbers: core::ops::Range<u8>) -> Result<(), Failed> {
    let sender = bound(from, to.is_ipv6(), 0)?;
    let socket = SockRef::from(&sender);
    let mark = u32::from(byte);
    if to.is_ipv6() { socket.set_tclass_v6(mark) } else { socket.set_tos_v4(mark) }?;
    setsockopt(&sender, sockopt::UdpGsoSegment, &(LENGTH as i32))?;
    let packets: Vec<u8> = numbers.flat_map(|number| [number; LENGTH]).collect();
    sender.send_to(&packets, (to, PORT))?;
    Ok(())
}

/// The next packet, and the byte of its DSCP and ECN.
fn next(socket: &UdpSocket) -> Option<(Vec<u8>, u8)> {
    let mut buffer = vec![0; 2 * LENGTH];
    let mut control = nix::cmsg_space!(i32);
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let flags = MsgFlags::empty();
    let received =
        recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags).ok()?;
    let byte = received.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4Tos(byte) => Some(byte),
        ControlMessageOwned::Ipv6TClass(byte) => u8::try_from(byte).ok(),
        _ => None,
    })?;
    let length = received.bytes;
    buffer.truncate(length);
    Some((buffer, byte))
}

pub(crate) fn packets_that_find_the_queue_full_are_trimmed() -> Result<(), Failed> {
    let trim = Some(Trim { bytes: 128, dscp: TRIMMED });
    let fabric = Fabric::up(&Topology { trim, ..slow_uplinks() })?;
    let mut trimmed_so_far = 0;
    for v6 in [false, true] {
        let (receiver, to) = receiver(&fabric, v6)?;
        burst(&fabric.host(1)?, to, DSCP << 2 | ECT, 0..40)?;
        let arrived: Vec<_> = (0..40).map_while(|_| next(&receiver)).collect();
        let left = 128 - 14 - if v6 { 40 } else { 20 } - 8;
        let mut numbers: Vec<u8> = arrived.iter().map(|(packet, _)| packet[0]).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..40).collect::<Vec<u8>>(), "each once, IPv6: {v6}");
        let (whole, trimmed): (Vec<_>, Vec<_>) =
            arrived.iter().partition(|(packet, _)| packet.len() == LENGTH);
        println!("IPv6: {v6}: {} whole, {} trimmed", whole.len(), trimmed.len());
        assert!(whole.len() >= 8 && !trimmed.is_empty());
        assert!(whole.iter().all(|(_, byte)| *byte == DSCP << 2 | ECT));
        for (packet, byte) in &trimmed {
            assert_eq!((packet.len(), *byte), (left, TRIMMED << 2 | ECT));
            assert!(packet.iter().all(|byte| *byte == packet[0]));
        }
        trimmed_so_far += trimmed.len() as u64;
        // A few may find the spine's queue full, whose link is as fast.
        assert_eq!(counted(&fabric, |queue| queue.trimmed)?, trimmed_so_far);
        assert_eq!(counted(&fabric, |queue| queue.dropped)?, 0);
    }
    let queue = fabric.port(Node::Leaf(1), Node::Spine(1))?.tiny;
    assert_eq!((queue.sent, queue.limit), (80, 8));
    assert!(queue.trimmed > trimmed_so_far / 2);
    Ok(())
}

pub(crate) fn packets_that_are_not_ecn_capable_are_dropped_beyond_the_threshold()
-> Result<(), Failed> {
    let topology = Topology { tiny_packets: 64, selective: Some(6_000), ..slow_uplinks() };
    let mut fabric = Fabric::up(&topology)?;
    let mut dropped_so_far = 0;
    for v6 in [false, true] {
        let (receiver, to) = receiver(&fabric, v6)?;
        burst(&fabric.host(1)?, to, DSCP << 2, 0..20)?;
        burst(&fabric.host(1)?, to, DSCP << 2 | ECT, 20..40)?;
        let mut arrived = Vec::new();
        // The last packet is not dropped. When it arrives, all drops have been counted.
        while arrived.len() as u64 + counted(&fabric, |queue| queue.dropped_selectively)?
            < 40 + dropped_so_far
        {
            arrived.push(next(&receiver).ok_or("a packet neither arrived nor was dropped")?);
        }
        let [not_ect, ect] = [0, ECT].map(|ecn| {
            let those = arrived.iter().filter(|(_, byte)| *byte == DSCP << 2 | ecn);
            those.count() as u64
        });
        println!("IPv6: {v6}: {not_ect} of 20 Not-ECT packets arrived, {ect} of 20 ECT(0)");
        assert_eq!(ect, 20);
        // Four fill 6,000 bytes.
        assert!((4..20).contains(&not_ect), "{not_ect}");
        dropped_so_far += 20 - not_ect;
        assert_eq!(counted(&fabric, |queue| queue.dropped_selectively)?, dropped_so_far);
        assert_eq!(counted(&fabric, |queue| queue.dropped)?, 0);
    }
    let refused = fabric.set_queues(Queues { tiny_packets: 8, ..topology.queues() });
    let refused = refused.err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("tiny_packets 8: expected 64 as before, of emulated queues")
    );
    Ok(fabric.set_queues(Queues { default_packets: 9, ..topology.queues() })?)
}

pub(crate) fn a_capture_sees_packets_to_emulated_queues_once() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology { selective: Some(100_000), ..small() })?;
    let (receiver, to) = receiver(&fabric, false)?;
    let capture = fabric.namespace(Node::Leaf(1))?.capture()?;
    burst(&fabric.host(1)?, to, DSCP << 2, 0..5)?;
    assert_eq!((0..5).map_while(|_| next(&receiver)).count(), 5);
    assert_eq!(capture.packets()?.len(), 5);
    Ok(())
}
