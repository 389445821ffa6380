//! Long packet trains through devices that do not coalesce, do not segment, or whose MTU has
//! shrunk.

use super::wire::endpoint;
use super::{errors, within};
use crate::common::{TIMEOUT, bytes, eventually};
use cloudburst_net::{Config, Endpoint, PathMap};
use cloudburst_testbed::{End, Wire};
use libtest_mimic::Failed;
use std::collections::BTreeSet;

const LARGE: usize = 93_000;
/// Messages of a flood: more than the receiver has capacity for while its application takes none.
const MESSAGES: u64 = 1_500;
/// Messages that are sent together.
const LENGTHS: [usize; 7] = [8, 9, 700, 1_500, 5_000, 20_000, LARGE];

/// An endpoint with one path and a rate at which trains are as long as a system call carries.
fn fast(end: &End) -> Result<Endpoint, Failed> {
    endpoint(end, |on| {
        on.config(Config { capacity: 10_000_000_000.into(), ..Config::default() })
            .paths(PathMap::ecmp(1))
    })
}

/// A pair with long trains from left to right.
fn pair(wire: &Wire) -> Result<(Endpoint, Endpoint), Failed> {
    let sender = fast(&wire.left)?;
    let receiver = fast(&wire.right)?;
    let to = receiver.local_addr();
    eventually("its trains are long", || {
        sender.send(to, bytes(LARGE, 1)).wait().is_ok()
            && receiver.recv().wait().is_ok()
            && sender.paths(to).iter().all(|path| path.train == 64)
    });
    let sent = sender.counters().io.datagrams_sent;
    eventually("nothing is under way", || receiver.counters().io.datagrams_received >= sent);
    Ok((sender, receiver))
}

/// Message `n` of a flood: its number and other bytes.
fn numbered(n: u64) -> Vec<u8> {
    let length = LENGTHS[n as usize % LENGTHS.len()];
    [n.to_be_bytes().to_vec(), bytes(length - 8, n)].concat()
}

/// Sends a flood, has something done in the middle of it, and receives each message once.
fn flood(
    sender: &Endpoint,
    receiver: &Endpoint,
    midway: impl FnOnce() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let to = receiver.local_addr();
    let delivered = |endpoint: &Endpoint| endpoint.counters().sender.delivered;
    let before = delivered(sender);
    let sends =
        (0..MESSAGES).map(|n| sender.send(to, numbered(n)).options(within(TIMEOUT)).begin());
    let sends: Vec<_> = sends.collect::<Result<_, _>>()?;
    eventually("some have arrived", || delivered(sender) > before + 100);
    midway()?;
    let mut missing: BTreeSet<u64> = (0..MESSAGES).collect();
    while !missing.is_empty() {
        let message = receiver.recv().wait_for(TIMEOUT).ok_or("not all have come")??;
        let (number, _) = message.bytes.split_first_chunk().ok_or("no number")?;
        let number = u64::from_be_bytes(*number);
        assert!(message.bytes == numbered(number), "message {number}");
        assert!(missing.remove(&number), "message {number} came twice");
    }
    for send in sends {
        send.wait()?;
    }
    assert_eq!(receiver.try_recv(), Ok(None));
    Ok(())
}

/// Messages whose packets have become too long for the interface are cut again.
pub(crate) fn outlive_a_smaller_mtu() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let (sender, receiver) = pair(&wire)?;
    let calls = || sender.counters().io;
    flood(&sender, &receiver, || {
        wire.left.command("ip", "link set wire mtu 1280")?;
        Ok(())
    })?;
    // All may have been sent before.
    flood(&sender, &receiver, || Ok(()))?;
    let refused = errors(&sender).too_large;
    assert!(0 < refused && refused < 200, "{:?}", errors(&sender));
    assert_eq!(sender.peers()[0].sent.mtu, 1_280);
    let before = calls();
    sender.send(receiver.local_addr(), bytes(LARGE, 1)).wait()?;
    // The device was not to blame: calls carry many packets.
    assert!(calls().batches_sent - before.batches_sent < 40, "of 78 packets");
    assert_eq!(errors(&sender).too_large, refused);
    assert_eq!(calls().gso_fallbacks, 0);
    Ok(())
}

pub(crate) fn reach_a_device_that_joins_nothing() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let (sender, receiver) = pair(&wire)?;
    let came = || {
        let io = receiver.counters().io;
        (io.batches_received, io.datagrams_received)
    };
    let (buffers, datagrams) = came();
    assert!(buffers < datagrams, "the system joins packets by default");
    for end in [&wire.left, &wire.right] {
        end.command("ethtool", "-K wire tso off gso off gro off tx-udp-segmentation off")?;
    }
    let before = came();
    flood(&sender, &receiver, || Ok(()))?;
    let (buffers, datagrams) = came();
    assert_eq!(buffers - before.0, datagrams - before.1, "each came alone");
    Ok(())
}

/// The socket's buffer holds less than one train.
pub(crate) fn outlive_a_full_socket_buffer() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let receiver = fast(&wire.right)?;
    let sender = endpoint(&wire.left, |on| {
        on.config(Config { capacity: 10_000_000_000.into(), ..Config::default() })
            .paths(PathMap::ecmp(1))
            .socket_buffers(10_000)
    })?;
    wire.left
        .command("tc", "qdisc add dev wire root tbf rate 500mbit burst 50000 limit 10000000")?;
    flood(&sender, &receiver, || Ok(()))?;
    assert!(errors(&sender).no_buffer > 0, "{:?}", errors(&sender));
    assert_eq!(errors(&sender).total(), errors(&sender).no_buffer);
    Ok(())
}
