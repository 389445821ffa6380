//! Reordering, duplication, corruption, truncation and extension of packets: the application never
//! sees their effects.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_netem::LinkConfig;
use core::time::Duration;

fn survive(link: LinkConfig) -> Pair {
    let mut pair = Pair::new(Setup { link, ..Setup::default() });
    let sent: Vec<_> = (0..100).map(|seed| message(seed as usize * 331, seed)).collect();
    let ids: Vec<_> = sent.iter().map(|bytes| pair.send(bytes.clone())).collect();
    pair.settle();
    // Late packets of completed messages must have no effect.
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.a.delivered(), 100, "{:?}", pair.a.outcomes);
    assert_eq!(pair.b.inbox.len(), 100);
    for message in &pair.b.inbox {
        let at = ids.iter().position(|id| *id == message.id).unwrap();
        assert_eq!(message.bytes, sent[at]);
    }
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
    pair
}

#[test]
fn reordering_and_jitter_change_nothing() {
    let pair = survive(LinkConfig {
        reorder: 0.3,
        reorder_by: Duration::from_millis(3),
        jitter: Duration::from_micros(200),
        ..Setup::default().link
    });
    assert!(pair.link_stats(Side::A).reordered > 100);
}

#[test]
fn duplicates_are_dropped_as_replays() {
    let pair = survive(LinkConfig { duplicate: 0.5, ..Setup::default().link });
    assert!(pair.link_stats(Side::A).duplicated > 100);
    assert!(pair.b.counters().receiver.replayed > 100);
    assert!(pair.a.counters().sender.replayed > 0);
}

#[test]
fn corrupted_packets_do_not_open() {
    let pair = survive(LinkConfig { corrupt: 0.3, ..Setup::default().link });
    assert!(pair.link_stats(Side::A).corrupted > 100);
    let seen = pair.b.counters().receiver;
    assert!(seen.forged + seen.malformed + seen.unknown_session > 100, "{seen:?}");
    assert_eq!((seen.nonsense, seen.corrupt_blocks), (0, 0));
}

#[test]
fn truncated_and_extended_packets_are_malformed() {
    let pair = survive(LinkConfig { truncate: 0.2, extend: 0.2, ..Setup::default().link });
    assert!(pair.link_stats(Side::A).truncated > 100);
    assert!(pair.link_stats(Side::A).extended > 100);
    let seen = pair.b.counters().receiver;
    assert!(seen.malformed > 100, "{seen:?}");
}

#[test]
fn reordering_loss_and_duplication_together_change_nothing() {
    survive(LinkConfig {
        loss: cloudburst_netem::Loss::Independent(0.1),
        reorder: 0.1,
        reorder_by: Duration::from_millis(2),
        duplicate: 0.1,
        corrupt: 0.1,
        truncate: 0.05,
        extend: 0.05,
        ..Setup::default().link
    });
}
