//! The sockets alone: batches, waiting, waking, and losses.

use crate::common::{TIMEOUT, bytes, eventually};
use cloudburst_core::burst::{Datagrams, PacketIo};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Class, Contents, Ecn, Marking, Transmit};
use cloudburst_net::io::{UdpConfig, UdpIo};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

fn open(sockets: u16, socket_buffers: usize) -> UdpIo {
    let config = UdpConfig {
        bind: "127.0.0.1:0".parse().expect("an address"),
        reuse_port: false,
        sockets,
        ports: 1,
        flow_labels: 0,
        encapsulates: false,
        dscps: vec![43],
        trim_dscp: None,
        socket_buffers,
    };
    UdpIo::open(&config, Vec::new()).expect("loopback sockets")
}

fn send(from: &UdpIo, egress: u16, remote: SocketAddr, segment_size: usize, contents: &[u8]) {
    try_send(from, egress, remote, segment_size, contents).expect("the system takes it");
}

fn try_send(
    from: &UdpIo,
    egress: u16,
    remote: SocketAddr,
    segment_size: usize,
    contents: &[u8],
) -> Result<(), LocalError> {
    let via = Via { egress, local: None, remote };
    let transmit = Transmit {
        contents: Contents::Answers,
        via,
        segment_size,
        len: contents.len(),
        marking: Marking { class: Class::DATA, ecn: Ecn::NotEct },
    };
    from.transmit(&transmit, contents)
}

fn receive(io: &UdpIo, count: usize) -> Vec<(Via, Vec<u8>)> {
    let mut came = Vec::new();
    let start = Instant::now();
    while came.len() < count {
        assert!(start.elapsed() < TIMEOUT, "{} of {count}", came.len());
        io.take(io.wait(Duration::from_secs(1)), true, &mut |datagrams| {
            datagrams.for_each(|via, packet| came.push((via, packet.to_vec())));
        });
    }
    came
}

#[test]
fn a_batch_is_one_call_and_arrives_as_single_datagrams() {
    let from = open(3, 1 << 20);
    let to = open(1, 1 << 20);
    let contents = bytes(40 * 1_452, 1);
    send(&from, 2, to.local_addr(), 1_452, &contents);
    let came = receive(&to, 40);
    let sent: Vec<&[u8]> = contents.chunks(1_452).collect();
    assert_eq!(came.iter().map(|(_, packet)| &packet[..]).collect::<Vec<_>>(), sent);
    assert!(came.iter().all(|(via, _)| via.egress == 0 && via.remote != from.local_addr()));
    let sent = from.counters();
    let received = to.counters();
    assert_eq!((sent.batches_sent, sent.datagrams_sent), (1, 40));
    assert_eq!(received.datagrams_received, 40);
    assert!(received.batches_received < 40, "GRO");
}

#[test]
fn a_batch_beyond_the_limits_of_a_call_takes_more_calls() {
    // (bytes a segment, segments, calls): at most 64 segments, and at most 65,507 bytes.
    for (size, segments, calls) in [(100, 64, 1), (100, 65, 2), (1_452, 90, 2), (60_000, 2, 2)] {
        let from = open(1, 1 << 20);
        let to = open(1, 1 << 20);
        let contents = bytes(size * segments, 1);
        send(&from, 0, to.local_addr(), size, &contents);
        let came = receive(&to, segments);
        assert!(came.iter().all(|(_, packet)| packet.len() == size));
        assert_eq!(from.counters().batches_sent, calls, "{size} {segments}");
    }
}

#[test]
fn a_wait_ends_with_a_packet_a_wake_up_or_its_timeout() {
    let io = open(2, 1 << 20);
    let nothing = &mut |_: Datagrams<'_>| panic!("nothing was sent");
    let start = Instant::now();
    io.take(io.wait(Duration::from_millis(30)), true, nothing);
    assert!(start.elapsed() >= Duration::from_millis(30));
    io.take(io.wait(Duration::ZERO), true, nothing);

    thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| io.take(io.wait(Duration::from_secs(600)), true, &mut |_| {})))
            .collect();
        eventually("one wake after another ends all waits", || {
            io.wake();
            waiters.iter().all(|waiter| waiter.is_finished())
        });
    });
    assert!(io.now() >= cloudburst_core::time::Instant::from_nanos(30_000_000));
}

#[test]
fn several_threads_share_the_arriving_packets() {
    const DATAGRAMS: usize = 2_000;
    let from = open(4, 4 << 20);
    let to = open(1, 8 << 20);
    let came = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let start = Instant::now();
                while came.lock().unwrap().len() < DATAGRAMS && start.elapsed() < TIMEOUT {
                    to.take(to.wait(Duration::from_millis(5)), true, &mut |datagrams| {
                        datagrams.for_each(|_, packet| {
                            let number = usize::from_be_bytes((&*packet).try_into().unwrap());
                            assert!(came.lock().unwrap().insert(number), "each once");
                        });
                    });
                }
            });
        }
        for number in 0..DATAGRAMS {
            send(&from, (number % 4) as u16, to.local_addr(), 8, &number.to_be_bytes());
            if number % 100 == 0 {
                thread::yield_now();
            }
        }
    });
    let lost = to.counters().kernel_drops as usize;
    assert!(came.lock().unwrap().len() + lost >= DATAGRAMS);
}

#[test]
fn datagrams_that_the_kernel_drops_are_counted() {
    let from = open(1, 1 << 20);
    let to = open(1, 4 << 10);
    for _ in 0..50 {
        send(&from, 0, to.local_addr(), 1_000, &bytes(1_000, 1));
    }
    let mut came = 0;
    to.take(to.wait(Duration::ZERO), true, &mut |datagrams| datagrams.for_each(|_, _| came += 1));
    assert!((1..50).contains(&came), "{came}");
    // The next datagram reports it.
    send(&from, 0, to.local_addr(), 1_000, &bytes(1_000, 1));
    receive(&to, 1);
    assert_eq!(to.counters().kernel_drops, 50 - came);
    assert_eq!(to.counters().datagrams_received, came + 1);
}

#[test]
fn datagrams_that_the_system_refuses_are_lost_and_counted() {
    let from = open(1, 1 << 20);
    let to = open(1, 1 << 20);
    let error = try_send(&from, 0, to.local_addr(), 65_508, &bytes(65_508, 1));
    assert_eq!(error, Err(LocalError::TooLarge));
    assert_eq!(from.counters().send_errors.too_large, 1);

    // There is no route from loopback to the world. The address is to blame, not segmentation.
    let world = "203.0.113.7:9".parse().unwrap();
    assert!(try_send(&from, 0, world, 1_000, &bytes(3_000, 1)).is_err());
    let counters = from.counters();
    assert_eq!(counters.send_errors.total(), 4);
    assert_eq!((counters.gso_fallbacks, counters.datagrams_sent), (0, 0));

    send(&from, 0, to.local_addr(), 1_000, &bytes(3_000, 1));
    assert_eq!(receive(&to, 3).len(), 3);
    assert_eq!(from.counters().batches_sent, 1);
}

#[test]
fn empty_and_odd_datagrams_of_strangers_are_delivered() {
    let to = open(1, 1 << 20);
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 65_507] {
        stranger.send_to(&bytes(len, 1), to.local_addr()).unwrap();
        let came = receive(&to, 1);
        assert_eq!((came[0].0.remote, came[0].1.len()), (stranger.local_addr().unwrap(), len));
    }
    assert_eq!(to.counters().datagrams_received, 3);
}
