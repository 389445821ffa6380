//! Classes of symbols: the class of each message, and the effects of switches that let one class
//! overtake another.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::{Class, SendOptions};
use cloudburst_core::wire::symbol::SymbolView;
use cloudburst_netem::{LinkConfig, Loss};

/// A pair with all packets tapped, whose A sorts its symbols into classes.
fn pair(classes: &str, link: LinkConfig) -> Pair {
    let mut setup = Setup { link, ..Setup::default() };
    setup.a.fabric.classes = classes.parse().unwrap();
    let mut pair = Pair::new(setup);
    pair.tap = Some(Vec::new());
    pair
}

fn quiet() -> LinkConfig {
    Setup::default().link
}

/// The symbols that A has sent since the last call: message, class, path and number on that path. Checks that
/// each is marked with its class.
fn symbols(pair: &mut Pair) -> Vec<(u64, u8, u16, u16)> {
    let packets = pair.tap.replace(Vec::new()).expect("it is tapped");
    let batches = core::mem::take(&mut pair.batches);
    let sent = packets.into_iter().zip(batches).filter(|((side, ..), _)| *side == Side::A);
    let symbols = sent.filter_map(|((_, _, packet), batch)| {
        let symbol = SymbolView::parse(&packet).ok()?;
        let prefix = symbol.prefix;
        let header = symbol.header;
        assert_eq!(batch.marking.class, Class(prefix.class));
        Some((header.message.0, prefix.class, prefix.path.0, header.path_number))
    });
    symbols.collect()
}

/// The classes of one message's symbols, without repetitions.
fn classes_of(pair: &mut Pair, length: usize) -> Vec<u8> {
    pair.deliver(message(length, length as u64));
    let mut classes: Vec<u8> = symbols(pair).into_iter().map(|(_, class, ..)| class).collect();
    classes.dedup();
    classes
}

#[test]
fn whole_messages_are_of_the_class_of_their_size() {
    let mut pair = pair("left:10000/20000", quiet());
    for (length, class) in [(1, 1), (10_000, 1), (10_001, 2), (20_000, 2), (20_001, 3), (93_000, 3)]
    {
        assert_eq!(classes_of(&mut pair, length), [class], "{length}");
    }
    assert_eq!(classes_of(&mut pair, 500_000).first(), Some(&3));
}

#[test]
fn the_header_of_a_call_is_not_counted() {
    for (length, class) in [(10_000, 1), (10_001, 2)] {
        let mut pair = pair("left:10000", quiet());
        let now = pair.now;
        let options = SendOptions::default();
        let call = pair.a.endpoint.prepare(None, &message(length, 1));
        pair.a.endpoint.call(now, Side::B.address(0), &call, &options).unwrap();
        pair.settle();
        let classes: Vec<u8> = symbols(&mut pair).iter().map(|symbol| symbol.1).collect();
        assert_eq!(classes.first(), Some(&class), "{length}");
    }
}

#[test]
fn the_last_repairs_of_a_long_message_are_urgent() {
    let loss = LinkConfig { loss: Loss::Independent(0.2), ..quiet() };
    let mut pair = pair("left:20000", loss);
    let all: Vec<Vec<u8>> = (0..20).map(|_| classes_of(&mut pair, 93_000)).collect();
    assert!(all.iter().all(|classes| classes.first() == Some(&2)), "{all:?}");
    assert!(all.iter().any(|classes| classes == &[2, 1]), "{all:?}");
}

#[test]
fn a_message_becomes_less_urgent_with_the_bytes_that_were_sent() {
    let mut pair = pair("sent:10000/20000", quiet());
    assert_eq!(classes_of(&mut pair, 5_000), [1]);
    assert_eq!(classes_of(&mut pair, 93_000), [1, 2, 3]);
}

#[test]
fn trains_have_one_class_and_each_class_counts_its_packets_on_each_path() {
    let mut pair = pair("left:20000", quiet());
    for seed in 0..40 {
        pair.send(message(if seed % 2 == 0 { 5_000 } else { 93_000 }, seed));
    }
    pair.settle();
    let mut next = std::collections::BTreeMap::new();
    for (_, class, path, number) in symbols(&mut pair) {
        let expected = next.entry((class, path)).or_insert(number);
        assert_eq!(number, *expected, "class {class}, path {path}");
        *expected = expected.wrapping_add(1);
    }
    assert_eq!(next.len(), 2 * 4);
}

#[test]
fn ends_with_different_classes_understand_each_other_and_see_no_gaps() {
    let mut setup = Setup::default();
    setup.a.fabric.classes = "left:5000/10000/20000".parse().unwrap();
    setup.b.fabric.classes = "sent:10000".parse().unwrap();
    let mut pair = Pair::new(setup);
    for seed in 0..200 {
        let bytes = message([3_000, 8_000, 15_000, 60_000][seed as usize % 4], seed);
        let from = if seed % 3 == 0 { Side::B } else { Side::A };
        pair.send_from(from, bytes, SendOptions::default());
    }
    pair.settle();
    for side in [Side::A, Side::B] {
        let host = pair.host(side);
        assert!(host.outcomes.values().all(|outcome| matches!(outcome, Outcome::Delivered(_))));
        let peers = host.endpoint.peers();
        assert!(
            peers[0].received.symbols_received > 1_000 && peers[0].received.missing_symbols == 0
        );
    }
}
