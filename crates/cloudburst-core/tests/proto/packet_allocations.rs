//! What is allocated is allocated for messages, not for packets.

use cloudburst_core::config::{Config, Security};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{
    Class, Contents, Ecn, Endpoint, Event, Marking, SendOptions, Transmit,
};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use std::net::SocketAddr;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const PATHS: u16 = 8;

fn endpoint(host: u8) -> (Endpoint, SocketAddr) {
    let config = Config { port: 7000, capacity: 100_000_000_000, ..Config::default() };
    let security = Security::pre_shared(crate::common::KEY);
    let seed = Seed::new([host; 32]);
    let endpoint =
        Endpoint::new(Instant::ZERO, config, &security, seed, Box::new(Egresses(PATHS))).unwrap();
    (endpoint, SocketAddr::from(([10, 0, 0, host], 7000)))
}

/// Batches that leave `from`, one after the other in one buffer.
fn transmit(from: &mut Endpoint, batches: &mut [(Transmit, Vec<u8>)]) -> usize {
    let mut filled = 0;
    for (transmit, buffer) in batches.iter_mut() {
        buffer.clear();
        let Some(next) = from.poll_transmit(NOW, buffer) else { break };
        *transmit = next;
        filled += 1;
    }
    filled
}

fn take(to: &mut Endpoint, from: SocketAddr, batches: &mut [(Transmit, Vec<u8>)]) {
    for (transmit, buffer) in batches {
        let via = Via { egress: transmit.via.egress, local: None, remote: from };
        for packet in buffer.chunks_mut(transmit.segment_size) {
            to.handle_datagram(NOW, via, packet);
        }
    }
}

#[test]
fn longer_messages_allocate_no_more_often() {
    let ((mut a, at_a), (mut b, at_b)) = (endpoint(1), endpoint(2));
    let via = Via { egress: 0, local: None, remote: at_a };
    let marking = Marking { class: Class::CONTROL, ecn: Ecn::NotEct };
    let nothing = Transmit { contents: Contents::Answers, via, segment_size: 1, len: 0, marking };
    let mut batches: Vec<_> = (0..256).map(|_| (nothing, Vec::with_capacity(65_536))).collect();
    let mut counts = Vec::new();
    for symbols in [16, 64, 16, 64, 112, 16] {
        let bytes = vec![7; symbols * 1_300];
        a.send(NOW, at_b, bytes.into(), &SendOptions::default()).unwrap();
        let (mut sent, mut received) = (0, 0);
        let mut delivered = false;
        while !delivered {
            let mut filled = 0;
            let counted = allocation_counter::measure(|| filled = transmit(&mut a, &mut batches));
            sent += counted.count_total;
            let there = &mut batches[..filled];
            received += allocation_counter::measure(|| take(&mut b, at_a, there)).count_total;
            while let Some(event) = b.poll_event() {
                delivered |= matches!(event, Event::Readable(_));
            }
            let filled = transmit(&mut b, &mut batches);
            take(&mut a, at_b, &mut batches[..filled]);
            while a.poll_event().is_some() {}
        }
        counts.push((symbols, sent, received));
    }
    println!("symbols, allocations by the sender, by the receiver: {counts:?}");
    // The first ones also make tables that stay, and questions are answered by what is allocated.
    let of = |symbols| counts.iter().rev().find(|(of, ..)| *of == symbols).unwrap();
    let ((_, sent_16, received_16), (_, sent_64, received_64)) = (of(16), of(64));
    assert!(sent_64.saturating_sub(*sent_16) < 8, "{counts:?}");
    assert!(received_64.saturating_sub(*received_16) < 8, "{counts:?}");
}
