//! A peer that holds the key and lies harms only its own messages.

use crate::common::peer::{KEY, Liar, open_fields, payload, symbol_prefix};
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::id::{Incarnation, MessageId};
use cloudburst_core::path::Via;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::handshake::{OpenFields, shake_hands};
use cloudburst_core::wire::seal::Sealer;
use cloudburst_core::wire::{RejectReason, SymbolHeader, Verdict};

fn verdicts(answers: Vec<cloudburst_core::wire::Answer>) -> Vec<Verdict> {
    answers.into_iter().map(|answer| answer.verdict).collect()
}

#[test]
fn the_truth_is_delivered() {
    let mut peer = Liar::meet(Config::default());
    let answers = peer.say_message(0, b"hello, world", 16);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    let digest = peer.block_digest(0, 0, b"hello, world");
    assert!(matches!(&answer.verdict, Verdict::Delivered { digest: d, .. } if *d == digest));
    assert_eq!(&peer.messages()[0].bytes[..], b"hello, world");
}

#[test]
fn poisoned_payloads_are_found_by_the_digest_collected_again_and_then_rejected() {
    let mut peer = Liar::meet(Config::default());
    let mut header = peer.header(0, b"12345678", 16, 0);
    for (round, expected) in [(0, None), (1, Some(RejectReason::Corrupt))] {
        header.symbol = 2 * round;
        assert_eq!(peer.say(&header, false, b"12345678\0\0\0\0\0\0\0\0"), []);
        header.symbol = 2 * round + 1;
        let answers = verdicts(peer.say(&header, false, &[b'x'; 16]));
        let rejected: Vec<Verdict> = expected.into_iter().map(Verdict::Reject).collect();
        assert_eq!(answers, rejected);
    }
    // A rejection is final: the truth comes too late.
    let late = verdicts(peer.say_message(0, b"12345678", 16));
    assert!(late.iter().all(|v| *v == Verdict::Reject(RejectReason::Corrupt)), "{late:?}");
    assert_eq!(peer.messages(), []);
    assert_eq!(peer.endpoint.receive_memory(), 0);
}

#[test]
fn one_poisoned_symbol_delays_a_message_and_does_not_alter_it() {
    let mut peer = Liar::meet(Config::default());
    let mut header = peer.header(0, b"12345678", 16, 0);
    peer.say(&header, false, b"12345678\0\0\0\0\0\0\0\0");
    header.symbol = 1;
    peer.say(&header, false, &[b'x'; 16]);
    let answers = verdicts(peer.say_message(0, b"12345678", 16));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]), "{answers:?}");
    assert_eq!(&peer.messages()[0].bytes[..], b"12345678");
}

#[test]
fn symbols_that_contradict_the_first_one_are_ignored() {
    let mut peer = Liar::meet(Config::default());
    let first = peer.header(0, b"12345678", 16, 0);
    peer.say(&first, false, b"12345678\0\0\0\0\0\0\0\0");
    let mut lies = vec![first; 5];
    lies[0].length = 9;
    lies[1].symbol_size = 17;
    lies[2].code = [1, 5];
    lies[3].block = 1;
    lies[4].length = 1 << 20;
    for lie in &lies {
        let payload = vec![0; usize::from(lie.symbol_size)];
        assert_eq!(peer.say(lie, true, &payload), [], "{lie:?}");
    }
    let counters = peer.endpoint.counters().receiver;
    assert_eq!(
        (counters.nonsense, counters.late_symbols),
        (4, 1),
        "larger symbols are an older cut"
    );
    let answers = verdicts(peer.say_message(0, b"12345678", 16));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]));
}

#[test]
fn a_message_that_is_cut_again_begins_again_with_smaller_symbols_only() {
    let bytes = [7; 100];
    for (pulled, probes) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut peer = Liar::meet(Config::default());
        peer.pulled = pulled;
        let mut header = peer.header(0, &bytes, 60, 0);
        let large = peer.payload(&header, &bytes);
        peer.say(&header, false, &large);
        // Of two symbols of 60 bytes, one has arrived; of four of 30, none.
        let small = peer.header(0, &bytes, 30, 0);
        let first = if probes { Vec::new() } else { peer.payload(&small, &bytes) };
        peer.say(&small, false, &first);
        header.symbol = 1;
        let late = peer.payload(&header, &bytes);
        assert_eq!(peer.say(&header, true, &late), [], "the older cut is late");
        let answers = peer.say_message(0, &bytes, 30);
        assert!(matches!(answers.last().unwrap().verdict, Verdict::Delivered { .. }));
        assert_eq!(&peer.messages()[0].bytes[..], bytes, "{pulled} {probes}");
        // Delivered is delivered, whatever cut is sent next.
        let repeated = verdicts(peer.say_message(0, &bytes, 20));
        assert!(repeated.iter().all(|v| matches!(v, Verdict::Delivered { .. })), "{repeated:?}");
        assert_eq!(peer.messages(), []);
        assert_eq!(peer.endpoint.receive_memory(), 0);
    }
}

#[test]
fn thousands_of_cuts_up_and_down_hold_no_more_memory_than_one() {
    let mut peer = Liar::meet(Config::default());
    let bytes = vec![7; 100_000];
    let mut most = 0;
    for size in (800..9_000).rev() {
        for size in [size, size + 700, size] {
            let header = peer.header(0, &bytes, size, 0);
            peer.say(&header, false, &vec![0; usize::from(size)]);
        }
        most = most.max(peer.endpoint.receive_memory());
    }
    assert!(most < 300_000, "{most} bytes for a message of 100,000");
    let answers = verdicts(peer.say_message(0, &bytes, 790));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]), "the last cut counts: {answers:?}");
    assert_eq!(peer.messages().len(), 1);
}

#[test]
fn nonsense_is_rejected_before_anything_is_allocated() {
    let mut peer = Liar::meet(Config::default());
    let truth = peer.header(0, b"x", 17, 0);
    let mut lies = vec![truth; 3];
    lies[0].code = [99, 0];
    lies[1].length = u32::MAX;
    lies[2].length = 16 * 1024 * 1024 + 1;
    let expected = [RejectReason::Unsupported, RejectReason::TooLarge, RejectReason::TooLarge];
    for (id, (mut lie, reason)) in lies.into_iter().zip(expected).enumerate() {
        lie.message = MessageId(id as u64);
        let payload = vec![0; usize::from(lie.symbol_size)];
        assert_eq!(verdicts(peer.say(&lie, false, &payload)), [Verdict::Reject(reason)]);
    }
    assert_eq!(peer.endpoint.receive_memory(), 0);
    // An index set for a code without index sets is invalid too.
    let header = peer.header(9, b"x", 17, 0);
    assert_eq!(peer.say_with(&header, true, &[0x80], &[b'x'; 17]), []);
    assert_eq!(peer.messages(), []);
}

#[test]
fn a_low_watermark_raised_too_far_forgets_only_the_liars_own_messages() {
    let mut peer = Liar::meet(Config::default());
    let first = peer.header(5, b"12345678", 16, 0);
    peer.say(&first, false, b"12345678\0\0\0\0\0\0\0\0");
    let mut far = peer.header(u64::MAX >> 16, b"x", 17, 0);
    far.age = 0;
    let payload = peer.payload(&far, b"x");
    assert!(matches!(verdicts(peer.say(&far, false, &payload))[..], [Verdict::Delivered { .. }]));
    // Message 5 is now below the low watermark: no answer, no memory, no delivery.
    assert_eq!(peer.say_message(5, b"12345678", 16), []);
    assert_eq!(peer.endpoint.receive_memory(), 0);
    assert_eq!(peer.messages().len(), 1);
}

#[test]
fn a_message_is_delivered_once_however_often_it_is_reported() {
    let mut peer = Liar::meet(Config::default());
    for _ in 0..5 {
        peer.say_message(0, b"12345678", 16);
    }
    assert_eq!(peer.messages().len(), 1);
    let late = verdicts(peer.say_message(0, b"87654321", 16));
    let digest = peer.block_digest(0, 0, b"12345678");
    assert!(
        late.iter().all(|v| matches!(v, Verdict::Delivered { digest: d, .. } if *d == digest)),
        "STOP carries the digest of the delivered message, not the claimed one"
    );
    assert_eq!(peer.messages(), []);
}

#[test]
fn a_nonsensical_first_symbol_pins_nothing() {
    let mut peer = Liar::meet(Config::default());
    // An index set for a code without index sets.
    let lie = peer.header(0, b"12345678", 16, 0);
    assert_eq!(peer.say_with(&lie, true, &[0x80], &[7; 16]), []);
    assert_eq!(peer.endpoint.receive_memory(), 0);
    let answers = verdicts(peer.say_message(0, b"12345678", 16));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]), "{answers:?}");
}

#[test]
fn tiny_symbols_are_charged_what_their_decoders_take() {
    let mut peer = Liar::meet(Config {
        tuning: Tuning { decode_bytes_per_peer: Some(40 << 20), ..Tuning::default() },
        ..Config::default()
    });
    let mut begun = 0;
    for id in 0..5_000 {
        let mut header = peer.header(id, &[7; 2_032], 16, 300);
        header.age = id as u32;
        if !peer.say(&header, false, &[b'x'; 16]).is_empty() {
            break;
        }
        begun += 1;
    }
    assert!(begun > 500, "{begun}");
    let charged = peer.endpoint.receive_memory() / begun;
    assert!(charged > 128 * 128, "n rows of n coefficients: {charged} bytes for each");
}

#[test]
fn only_a_few_blocks_of_a_long_message_are_decoded_at_a_time() {
    let mut peer = Liar::meet(Config::default());
    let mut header = peer.header(0, b"", 16, 300);
    header.length = 16 << 20;
    for block in 0..2_000 {
        header.block = block;
        peer.say(&header, false, &[b'x'; 16]);
    }
    let seen = peer.endpoint.counters().receiver;
    assert_eq!((seen.useful_symbols, seen.nonsense), (8, 1_992));
    assert!(peer.endpoint.receive_memory() < 32 << 20, "{}", peer.endpoint.receive_memory());
}

#[test]
fn a_peer_that_claims_the_port_of_another_takes_nothing_over() {
    let mut pair = Pair::new(Setup { paths: 1, ..Setup::default() });
    pair.deliver(message(10, 1));
    pair.send_from(Side::B, message(10, 2), SendOptions::default());
    pair.settle();
    // Another process at A's address shakes hands with B, and claims A's port as its own.
    let via = Via { egress: 0, local: None, remote: ([10, 0, 0, 1], 6666).into() };
    let fields = OpenFields { addressed: Side::B.address(0), ..open_fields(Incarnation([66; 16])) };
    let (_, keys) = shake_hands(&KEY, 1, &fields, |mut packet| {
        pair.b.endpoint.handle_datagram(pair.now, via, &mut packet);
        packet.clear();
        pair.b.endpoint.poll_transmit(pair.now, &mut packet).unwrap();
        packet
    });
    let flow = keys.forward;
    let mut sealer = Sealer::new(flow.symbols.clone());
    let prefix = symbol_prefix(&sealer);
    let header = SymbolHeader {
        path_number: 0,
        message: MessageId(0),
        length: 1,
        age: 0,
        block: 0,
        symbol: 0,
        symbol_size: 17,
        code: [0x30, 0],
        unscheduled: 0,
    };
    let mut packet = Vec::new();
    header.write(&prefix, None, &[], &mut packet);
    let payload_at = packet.len();
    packet.extend(payload(&flow.digest, &header, b"x"));
    sealer.seal(&mut packet, 0, payload_at);
    pair.b.endpoint.handle_datagram(pair.now, via, &mut packet);
    // B checks which host is at that address. It is A, in their existing session.
    pair.send_from(Side::B, message(10, 3), SendOptions::default());
    pair.settle();
    assert_eq!(pair.b.delivered(), 2, "{:?}", pair.b.outcomes);
    assert_eq!(pair.a.inbox.len(), 2);
}

#[test]
fn padding_takes_no_memory_in_the_applications_queue() {
    let mut peer = Liar::meet(Config::default());
    let says = |peer: &mut Liar, id| {
        let header = peer.header(id, &[0], 60_000, 0);
        let payload = peer.payload(&header, &[0]);
        peer.say(&header, false, &payload);
    };
    says(&mut peer, 0);
    let held = allocation_counter::measure(|| {
        for id in 1..100 {
            says(&mut peer, id);
        }
    });
    assert!(held.bytes_current < 100_000, "{} bytes for 99 messages of one", held.bytes_current);
    assert_eq!(peer.messages().len(), 100);
}
