//! Aeolus: which packets the network may drop first, and which it should spare.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::EcnMode;
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::{Class, Ecn, Marking, Transmit};
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::symbol::SymbolView;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;

/// More than two blocks, which are sent before any answer.
const LARGE: usize = 500_000;

/// A pair whose packets are tapped.
fn pair(aeolus: bool) -> Pair {
    let mut setup = Setup::default();
    if aeolus {
        setup.a.fabric.ecn = EcnMode::Aeolus;
        setup.b.fabric.ecn = EcnMode::Aeolus;
    }
    let mut pair = Pair::new(setup);
    pair.tap = Some(Vec::new());
    pair
}

/// A packet that was sent.
struct Sent {
    side: Side,
    kind: Kind,
    /// The message and the block of a symbol.
    symbol: Option<(u64, u32)>,
    class: Class,
    ect: bool,
}

fn sent(pair: &mut Pair) -> Vec<Sent> {
    let packets = pair.tap.replace(Vec::new()).expect("it is tapped");
    let batches = core::mem::take(&mut pair.batches);
    assert_eq!(packets.len(), batches.len());
    let describe = |((side, _, packet), batch): ((Side, _, Vec<u8>), Transmit)| {
        let symbol = SymbolView::parse(&packet).ok();
        let symbol = symbol.map(|symbol| (symbol.header.message.0, symbol.header.block));
        let kind = Kind::of(&packet).expect("a packet");
        let Marking { class, ecn } = batch.marking;
        Sent { side, kind, symbol, class, ect: ecn == Ecn::Ect0 }
    };
    packets.into_iter().zip(batches).map(describe).collect()
}

fn loss(share: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Independent(share), ..Setup::default().link }
}

#[test]
fn without_aeolus_packets_differ_by_class_alone() {
    let mut pair = pair(false);
    pair.deliver(message(LARGE, 1));
    let sent = sent(&mut pair);
    assert!(sent.len() > 366 && sent.iter().all(|packet| !packet.ect));
    for packet in sent {
        let class = if packet.symbol.is_some() { Class::DATA } else { Class::CONTROL };
        assert_eq!(packet.class, class, "{:?}", packet.kind);
    }
}

#[test]
fn symbols_of_each_message_are_spared_from_its_first_answer_on_and_all_else_always() {
    let mut pair = pair(true);
    for seed in 0..3 {
        let id = pair.send(message(LARGE, seed));
        pair.outcome(id);
        let sent = sent(&mut pair);
        assert!(sent.iter().all(|packet| packet.ect || packet.kind == Kind::Symbol));
        let symbols: Vec<_> = sent.iter().filter(|packet| packet.symbol.is_some()).collect();
        assert!(symbols.iter().all(|packet| packet.symbol.unwrap().0 == id.0));
        let spared = symbols.iter().position(|packet| packet.ect).expect("the later ones");
        assert!(spared > 0 && symbols[spared..].iter().all(|packet| packet.ect));
        // Some symbols of blocks 0 and 1 were sent before, and some may have been sent after the
        // first answer.
        assert!(symbols.iter().all(|packet| packet.ect || packet.symbol.unwrap().1 < 2));
        let answered =
            sent.iter().position(|packet| packet.side == Side::B && packet.kind == Kind::Answer);
        let first = sent.iter().position(|packet| packet.symbol.is_some() && packet.ect);
        assert!(answered.unwrap() < first.unwrap());
    }
}

#[test]
fn while_answers_are_lost_no_symbol_is_spared() {
    let mut pair = pair(true);
    pair.deliver(message(1, 0));
    sent(&mut pair);
    pair.set_links(Side::B, None, &loss(1.0));
    let id = pair.send(message(LARGE, 1));
    pair.run_for(Duration::from_secs(1));
    let lost = sent(&mut pair);
    let answers = lost.iter().filter(|packet| packet.side == Side::B);
    assert!(answers.filter(|packet| packet.kind == Kind::Answer).count() > 2, "they were sent");
    assert!(lost.iter().all(|packet| packet.ect == packet.symbol.is_none()));
    assert!(lost.iter().any(|packet| packet.kind == Kind::Hello), "the silent peer is probed");

    pair.set_links(Side::B, None, &loss(0.0));
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    let healed = sent(&mut pair);
    let last = healed.iter().rfind(|packet| packet.symbol.is_some()).unwrap();
    assert!(last.ect, "block {:?}", last.symbol);
}
