//! In steady state, messages allocate only the memory that the application keeps.

use crate::common::{self, message};
use bytes::Bytes;
use cloudburst_core::config::Config;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{
    Class, Contents, Ecn, Event, Marking, SendOptions, Transceiver, Transmit,
};
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

const PATHS: u16 = 8;

/// A sender and a receiver, and the datagrams in flight.
struct Ends {
    now: Instant,
    sender: Transceiver,
    receiver: Transceiver,
    batches: Vec<(Transmit, Vec<u8>)>,
}

/// The allocations at each end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    sender: u64,
    receiver: u64,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7000))
}

fn endpoint(host: u8) -> Transceiver {
    let config = Config { capacity: 100_000_000_000.into(), ..Config::default() };
    common::endpoint(&config, host, PATHS)
}

/// The batches that leave `from`, one after the other in one buffer.
fn transmit(now: Instant, from: &mut Transceiver, batches: &mut [(Transmit, Vec<u8>)]) -> usize {
    let mut filled = 0;
    for (transmit, buffer) in batches.iter_mut() {
        buffer.clear();
        let Some(next) = from.poll_transmit(now, buffer) else { break };
        *transmit = next;
        filled += 1;
    }
    filled
}

fn take(now: Instant, to: &mut Transceiver, from: u8, batches: &mut [(Transmit, Vec<u8>)]) {
    for (transmit, buffer) in batches {
        let via = Via { egress: transmit.via.egress, local: None, remote: address(from) };
        for packet in buffer.chunks_mut(transmit.segment_size) {
            to.handle_datagram(now, via, packet);
        }
    }
}

impl Ends {
    fn new() -> Self {
        let via = Via { egress: 0, local: None, remote: address(1) };
        let marking = Marking { class: Class::CONTROL, ecn: Ecn::NotEct };
        let empty = Transmit { contents: Contents::Answers, via, segment_size: 1, len: 0, marking };
        Self {
            now: Instant::from_nanos(1_000_000_000),
            sender: endpoint(1),
            receiver: endpoint(2),
            batches: (0..256).map(|_| (empty, Vec::with_capacity(65_536))).collect(),
        }
    }

    /// Sends this many messages at a time, until all have ended.
    fn send(&mut self, bytes: &Bytes, messages: usize) -> Counted {
        let Self { now, sender, receiver, batches } = self;
        let mut counted = Counted { sender: 0, receiver: 0 };
        let mut received = 0;
        let mut ended = 0;
        let sending = allocation_counter::measure(|| {
            for _ in 0..messages {
                sender.send(*now, address(2), bytes.clone(), &SendOptions::default()).unwrap();
            }
        });
        counted.sender += sending.count_total;
        while ended < messages {
            *now += Duration::from_micros(20);
            let mut filled = 0;
            let sending = allocation_counter::measure(|| {
                sender.handle_timeout(*now);
                filled = transmit(*now, sender, batches);
            });
            let receiving = allocation_counter::measure(|| {
                receiver.handle_timeout(*now);
                take(*now, receiver, 1, &mut batches[..filled]);
                while let Some(event) = receiver.poll_event() {
                    assert!(matches!(event, Event::Readable(_)));
                    received += usize::from(receiver.recv().unwrap().bytes == bytes);
                }
                filled = transmit(*now, receiver, batches);
            });
            *now += Duration::from_micros(20);
            let answered = allocation_counter::measure(|| {
                take(*now, sender, 2, &mut batches[..filled]);
                while let Some(event) = sender.poll_event() {
                    ended += usize::from(matches!(event, Event::Ended(_, _)));
                }
            });
            counted.sender += sending.count_total + answered.count_total;
            counted.receiver += receiving.count_total;
        }
        assert_eq!(received, messages);
        counted
    }
}

/// The allocations of 100 times this many messages at once, after others that make tables grow.
fn count(ends: &mut Ends, length: usize, messages: usize) -> Counted {
    let bytes = message(length, 0);
    // Bytes from a vector get their reference count with the first clone.
    let _shared = bytes.clone();
    (0..64).for_each(|_| _ = ends.send(&bytes, messages));
    let mut sum = Counted { sender: 0, receiver: 0 };
    for _ in 0..100 {
        let counted = ends.send(&bytes, messages);
        sum.sender += counted.sender;
        sum.receiver += counted.receiver;
    }
    sum
}

#[test]
fn one_message_at_a_time_allocates_what_the_application_gets() {
    let mut ends = Ends::new();
    for length in [1, 100, 5_000, 93_000, 400_000, 5_000, 93_000] {
        let counted = count(&mut ends, length, 1);
        // The arrivals of a receipt, and the owner of a message's bytes.
        assert_eq!(counted, Counted { sender: 100, receiver: 100 }, "{length} bytes");
    }
}

#[test]
fn many_messages_at_a_time_allocate_a_few_nodes_of_trees_besides() {
    let mut ends = Ends::new();
    for length in [5_000, 93_000] {
        let Counted { sender, receiver } = count(&mut ends, length, 128);
        let [sender, receiver] = [sender, receiver].map(|count| count as f64 / 12_800.0 - 1.0);
        println!(
            "{length} bytes: {sender} nodes a message at the sender, {receiver} at the receiver"
        );
        // The schedule, timers and windows are B-trees.
        assert!(sender < 1.5 && receiver < 0.25, "{length} bytes: {sender}, {receiver}");
    }
}
