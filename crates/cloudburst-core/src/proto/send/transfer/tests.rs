//! Tests of messages that start over, and of packets that never count as missing.

use super::*;
use crate::id::{MessageId, SessionId};
use crate::path::{Order, Via};
use crate::wire::keys::{SessionKeys, SessionSecrets};
use crate::wire::{Arrivals, Role};
use bytes::Bytes;

fn digest_key() -> DigestKey {
    let secrets = SessionSecrets { k1: [5; 32], k2: [6; 32] };
    SessionKeys::new(&secrets, SessionId(1), SessionId(2)).forward.digest
}

/// One path, of which nothing is known.
fn paths() -> PathSet {
    let via = Via { egress: 0, local: None, remote: "10.0.0.1:1".parse().unwrap() };
    PathSet::new(&[via], &[via], Order::default(), 0).unwrap()
}

/// Message 9, of `len` bytes.
fn message(len: usize) -> (Source, Transfer) {
    let config = Parameters::default();
    let peer = SocketAddr::from(([10, 0, 0, 1], 1));
    let max_symbol = config.max_symbol(1_500, config.code, 28);
    let bytes = Bytes::from(vec![7; len]);
    let source = Source::new(MessageId(9), Role::Plain, bytes, config.code, max_symbol);
    let transfer = Transfer::new(
        Instant::ZERO,
        Instant::ZERO + config.deadline,
        peer,
        &source,
        AnyPolicy::default(),
        4,
        &config,
    );
    (source, transfer)
}

#[test]
fn a_message_that_begins_again_is_still_known_by_its_digest() {
    let key = digest_key();
    let (mut source, mut transfer) = message(300_000);
    let mut digests = Vec::new();
    for index in 0..source.layout.blocks() as u32 {
        let block = transfer.block_to_send(&mut source, &key, &paths()).unwrap();
        assert_eq!(block.index, index);
        block.recovery.revoke();
        digests.push(source.block(index).unwrap().digest);
        if index + 1 < source.layout.blocks() as u32 {
            transfer.on_block_done(Instant::ZERO, index, 7, &mut source);
        }
    }
    assert!(transfer.is_partial());
    // The report is late: the receiver has since collected all blocks again.
    transfer.on_forgotten(7, &mut source);
    assert!(!transfer.is_partial());
    assert!(source.is(key.message(MessageId(9), &digests), &key));
    let first = transfer.block_to_send(&mut source, &key, &paths()).unwrap().index;
    assert_eq!(first, 0, "it starts over with the first block");
    assert!(source.block(0).is_some() && source.block(1).is_none());
}

#[test]
fn a_late_busy_does_not_stop_a_message_that_begins_again() {
    let key = digest_key();
    let (mut source, mut transfer) = message(900_000);
    transfer.block_to_send(&mut source, &key, &paths()).unwrap();
    transfer.on_block_done(Instant::ZERO, 0, 7, &mut source);
    transfer.on_forgotten(7, &mut source);
    // It answers symbols that were sent before the sender learned that all blocks start over.
    transfer.on_busy(Instant::ZERO, false);
    assert!(transfer.is_probed() && transfer.is_ready());
}

#[test]
fn a_message_begins_again_when_its_receiver_lacks_a_block_that_was_done() {
    let key = digest_key();
    let (mut source, mut transfer) = message(300_000);
    let blocks = source.layout.blocks() as u32;
    for index in 0..blocks {
        transfer.block_to_send(&mut source, &key, &paths()).unwrap().recovery.revoke();
        if index + 1 < blocks {
            transfer.on_block_done(Instant::ZERO, index, 7, &mut source);
        }
    }
    // It has the last block but not the message: it has forgotten the others.
    transfer.on_block_done(Instant::ZERO, blocks - 1, 7, &mut source);
    assert!(!transfer.is_partial());
    assert_eq!(transfer.block_to_send(&mut source, &key, &paths()).unwrap().index, 0);
    // Answers to earlier packets say nothing about what the receiver has now.
    assert!(transfer.is_outdated(6) && !transfer.is_outdated(7));
}

#[test]
fn packets_overtaken_by_a_more_urgent_class_do_not_count_as_missing() {
    // 20 packets in class 1, then 2 in class `second`. The answer acknowledges the last.
    let loss_with = |second: u8| {
        let (_, mut transfer) = message(300_000);
        let mut paths = paths();
        let path = PathId(0);
        transfer.on_sent(Instant::ZERO, path, 1, 20, 20);
        transfer.on_sent(Instant::ZERO, path, second, 2, 22);
        transfer.sent.on_report(
            Instant::ZERO,
            21,
            5,
            [Arrivals { path, count: 2, marked: 0 }].into_iter(),
            &mut paths,
        );
        paths.stats()[0].loss_permille
    };
    assert!(loss_with(1) > 900);
    assert_eq!(loss_with(0), 0, "the first packets wait behind the more urgent ones");
    assert!(loss_with(2) > 900, "less urgent packets overtake nothing");
}
