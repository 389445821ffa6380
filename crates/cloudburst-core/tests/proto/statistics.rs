//! An endpoint's reports of its peers and of completion times.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::proto::{PeerStats, SendOptions};
use cloudburst_netem::LinkConfig;
use core::time::Duration;

/// The report of `side` on the other one.
fn peer_of(pair: &mut Pair, side: Side) -> PeerStats {
    let peers = pair.host(side).endpoint.peers();
    assert_eq!(peers.len(), 1, "{peers:?}");
    peers[0]
}

#[test]
fn both_ends_of_a_clean_network_count_the_same() {
    let mut pair = Pair::new(Setup::default());
    assert!(pair.a.endpoint.peers().is_empty());
    let receipts: Vec<Receipt> = (0..5).map(|seed| pair.deliver(message(10_000, seed))).collect();
    pair.run_for(Duration::from_millis(1));
    let at_a = peer_of(&mut pair, Side::A);
    let at_b = peer_of(&mut pair, Side::B);
    assert_eq!((at_a.peer, at_b.peer), (Side::B.address(0), Side::A.address(0)));
    let sent = at_a.sent;
    let received = at_b.received;
    assert_eq!((sent.delivered, sent.bytes_delivered), (5, 50_000));
    assert_eq!((received.delivered, received.bytes_delivered), (5, 50_000));
    assert_eq!((sent.rejected, sent.unknown, sent.unfinished, sent.retries), (0, 0, 0, 0));
    let packets: usize = receipts.iter().map(|receipt| receipt.packets).sum();
    assert_eq!((sent.symbols_sent, received.symbols_received), (packets as u64, packets as u64));
    let needed: usize = receipts.iter().map(|receipt| receipt.source_symbols).sum();
    assert_eq!(
        (sent.source_symbols, received.late_symbols),
        (needed as u64, (packets - needed) as u64)
    );
    assert_eq!(sent.answers_received, received.answers_sent);
    assert_eq!(sent.handshakes_sent, pair.a.counters().sender.handshakes_sent);
    assert_eq!(sent.round_trip, Some(Duration::from_micros(100)));
    assert!(sent.session_since > Some(pair.now - Duration::from_secs(1)));
    assert_eq!((at_b.sent.symbols_sent, at_a.received.symbols_received), (0, 0));
}

#[test]
fn losses_show_as_gaps_and_what_is_late_fills_them() {
    let mut pair = Pair::new(Setup { link: lossy(0.1), ..Setup::default() });
    for seed in 0..20 {
        pair.deliver(message(50_000, seed));
    }
    pair.run_for(Duration::from_millis(1));
    let sent = peer_of(&mut pair, Side::A).sent;
    let received = peer_of(&mut pair, Side::B).received;
    let lost = sent.symbols_sent - received.symbols_received;
    // No packet overtakes the last ones on each of the four paths.
    assert!(lost > 50 && (lost - 4..=lost).contains(&received.missing_symbols), "{received:?}");

    let jitter = Duration::from_micros(200);
    let link = LinkConfig { jitter, ..Setup::default().link };
    let mut pair = Pair::new(Setup { link, ..Setup::default() });
    pair.deliver(message(500_000, 1));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(peer_of(&mut pair, Side::B).received.missing_symbols, 0);
}

#[test]
fn messages_under_way_and_ended_ones_are_distinguished() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::B, None, &lossy(1.0));
    let options = SendOptions::default().deadline(Duration::from_millis(500));
    let id = pair.send_from(Side::A, message(1_000, 1), options);
    assert_eq!(peer_of(&mut pair, Side::A).sent.unfinished, 1);
    assert!(matches!(pair.outcome(id), Outcome::Unknown(_)));
    let sent = peer_of(&mut pair, Side::A).sent;
    assert_eq!((sent.unfinished, sent.delivered, sent.unknown), (0, 1, 1));
    assert!((1..sent.symbols_sent).contains(&sent.retries), "{sent:?}");
    let late = peer_of(&mut pair, Side::B).received.late_symbols;
    assert_eq!(late, pair.b.counters().receiver.late_symbols);
    assert!(late > 0);
}

#[test]
fn a_peer_that_restarts_is_one_peer_with_a_newer_session() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let before = peer_of(&mut pair, Side::B).received;
    pair.run_for(Duration::from_secs(1));
    pair.restart(Side::A);
    pair.deliver(message(1, 1));
    let after = peer_of(&mut pair, Side::B).received;
    assert_eq!((before.delivered, after.delivered), (1, 2));
    assert!(after.session_since > before.session_since);
}

#[test]
fn peer_statistics_are_bounded_by_the_limit_on_peers() {
    let mut setup = Setup::default();
    setup.a.tuning.max_peers = Some(2);
    let mut pair = Pair::new(setup);
    for port in 0..10 {
        let elsewhere = ([10, 0, 0, 9], 8000 + port).into();
        let now = pair.now;
        let options = SendOptions::default();
        let id = pair.a.endpoint.send(now, elsewhere, message(1, 0), &options).unwrap();
        pair.a.endpoint.cancel(id);
        pair.drain();
    }
    let peers = pair.a.endpoint.peers();
    assert_eq!(peers.len(), 2);
    assert!(peers.iter().all(|peer| peer.sent.rejected == 1), "{peers:?}");
}

#[test]
fn histograms_have_every_delivered_message_and_agree_with_the_receipts() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::A, None, &lossy(0.2));
    let mut totals: Vec<Duration> =
        (0..200).map(|seed| pair.deliver(message(5_000, seed)).total()).collect();
    totals.sort_unstable();
    let latencies = pair.a.endpoint.latencies();
    assert_eq!(latencies.sent.count(), 201);
    assert_eq!(latencies.received.count(), 0, "nothing came in here");
    for (quantile, rank) in [(0.5, 100), (0.99, 198), (1.0, 200)] {
        let exact = totals[rank - 1];
        let told = latencies.sent.quantile(quantile).unwrap();
        let off = told.as_secs_f64() / exact.as_secs_f64();
        assert!((0.9..1.1).contains(&off), "{quantile}: {told:?} for {exact:?}");
    }
    let received = pair.b.endpoint.latencies().received;
    assert_eq!(received.count(), 201);
    assert!(received.sum() < latencies.sent.sum(), "it excludes the round trip");
}

#[test]
fn undelivered_messages_are_in_no_histogram() {
    let mut pair = Pair::new(Setup::default());
    pair.set_links(Side::A, None, &lossy(1.0));
    let id = pair.send(message(1_000, 1));
    assert!(matches!(pair.outcome(id), Outcome::Rejected(_)));
    assert_eq!(pair.a.endpoint.latencies().sent.count(), 0);
}
