//! Pulled messages (SCDP, section IV-C): the packets that are sent for them, with and without
//! losses.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::code::{Code, Degree};
use cloudburst_core::config::{BurstPolicy, Config, Fabric, Tuning};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Kind;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

const WINDOW: usize = 12;

fn options() -> SendOptions {
    SendOptions::default().policy(BurstPolicy::Pulled { window: Some(WINDOW as u16) })
}

fn deliver(pair: &mut Pair, length: usize) -> Receipt {
    let id = pair.send_from(Side::A, message(length, length as u64), options());
    match pair.outcome(id) {
        Outcome::Delivered(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

/// A pair with a session.
fn pair(paths: u16) -> Pair {
    let mut pair = Pair::new(Setup { paths, ..Setup::default() });
    pair.deliver(message(5_000, 1));
    pair
}

#[test]
fn without_loss_the_source_symbols_are_sent_and_all_beyond_the_window_are_pulled() {
    for paths in [1, 4, 16] {
        let mut pair = pair(paths);
        for length in [0, 1, 5_000, 20_000, 70_000, 256_000, 1_000_000] {
            pair.tap = Some(Vec::new());
            let receipt = deliver(&mut pair, length);
            let needed = receipt.source_symbols;
            assert_eq!(receipt.packets, needed, "{length} bytes, {paths} paths");
            // The packets that were sent before the first answer left.
            let tap = pair.tap.take().unwrap();
            let is_symbol =
                |packet: &[u8]| Kind::of(packet) == Ok(Kind::Symbol) && packet.len() > 58;
            let opening = tap.iter().take_while(|(side, ..)| *side == Side::A);
            let opening = opening.filter(|(.., packet)| is_symbol(packet)).count();
            assert_eq!(opening, WINDOW.min(needed), "{length} bytes, {paths} paths");
        }
        assert_eq!(pair.b.endpoint.counters().receiver.symbols_lost, 0);
    }
}

#[test]
fn each_lost_symbol_is_pulled_anew_and_no_other() {
    for (paths, share) in [(1, 0.01), (1, 0.1), (4, 0.01), (4, 0.1), (16, 0.01), (16, 0.1)] {
        let mut pair = pair(paths);
        pair.set_links(Side::A, None, &lossy(share));
        let mut sent = 0;
        let mut needed = 0;
        let mut lost = 0;
        for _ in 0..20 {
            let before = pair.link_stats(Side::A).lost;
            let receipt = deliver(&mut pair, 256_000);
            lost += (pair.link_stats(Side::A).lost - before) as usize;
            sent += receipt.packets;
            needed += receipt.source_symbols;
        }
        let more = sent - needed - lost.min(sent - needed);
        assert!(more * 500 <= needed, "{paths} paths: {sent} sent, {needed} needed, {lost} lost");
    }
}

#[test]
fn pulls_that_are_lost_held_back_or_copied_cost_time_and_no_packets() {
    let link = Setup::default().link;
    let held_back = Duration::from_micros(300);
    let faults = [
        ("lost", lossy(0.2)),
        ("copied", LinkConfig { duplicate: 0.5, ..link.clone() }),
        ("held back", LinkConfig { reorder: 0.3, reorder_by: held_back, ..link }),
    ];
    for (name, link) in faults {
        let mut pair = pair(4);
        pair.set_links(Side::B, None, &link);
        let mut sent = 0;
        let mut needed = 0;
        for _ in 0..20 {
            let receipt = deliver(&mut pair, 256_000);
            sent += receipt.packets;
            needed += receipt.source_symbols;
        }
        assert!(sent * 100 <= needed * 103, "{name}: {sent} sent, {needed} needed");
    }
}

#[test]
fn a_blackout_of_both_directions_ends_with_the_message() {
    let mut pair = pair(4);
    let id = pair.send_from(Side::A, message(1_000_000, 1), options());
    pair.run_for(Duration::from_millis(2));
    (0..4).for_each(|path| pair.set_down(path, true));
    pair.run_for(Duration::from_secs(1));
    (0..4).for_each(|path| pair.set_down(path, false));
    let Outcome::Delivered(receipt) = pair.outcome(id) else { panic!("not delivered") };
    assert!(receipt.packets < receipt.source_symbols + 150, "{receipt:?}");
    assert!(receipt.completed_in < Duration::from_millis(1_200), "{receipt:?}");
}

#[test]
fn a_receiver_that_forgot_the_message_is_sent_it_again() {
    let mut setup = Setup::default();
    setup.b.tuning.decode_timeout = Duration::from_millis(20);
    let mut pair = Pair::new(setup);
    pair.deliver(message(5_000, 1));
    let id = pair.send_from(Side::A, message(300_000, 1), options());
    pair.run_for(Duration::from_millis(1));
    (0..4).for_each(|path| pair.set_down(path, true));
    pair.run_for(Duration::from_millis(200));
    (0..4).for_each(|path| pair.set_down(path, false));
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    assert!(pair.b.endpoint.counters().receiver.decoders_expired > 0);
}

#[test]
fn codes_without_source_symbols_are_burst() {
    let mut pair = pair(4);
    let code = Code::Lt(Degree::Fixed(5));
    let id = pair.send_from(Side::A, message(70_000, 1), options().code(code));
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    let before = pair.b.endpoint.counters().receiver;
    assert_eq!(before.pulls_sent, 0);
    let code = Code::LtSystematic(Degree::Dense);
    let id = pair.send_from(Side::A, message(70_000, 1), options().code(code));
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    assert!(pair.b.endpoint.counters().receiver.pulls_sent > 0);
}

#[test]
fn messages_are_pulled_from_a_length_on() {
    let mut setup = Setup::default();
    setup.a = Config { fabric: Fabric { pull_above: 50_000, ..setup.a.fabric }, ..setup.a };
    let mut pair = Pair::new(setup);
    pair.deliver(message(49_999, 1));
    assert_eq!(pair.b.endpoint.counters().receiver.pulls_sent, 0);
    pair.deliver(message(50_000, 1));
    assert!(pair.b.endpoint.counters().receiver.pulls_sent > 0);
}

#[test]
fn a_message_continues_while_its_receiver_is_busy() {
    let mut setup = Setup::default();
    setup.b = Config {
        max_message: 100_000,
        tuning: Tuning {
            decode_bytes: Some(200_000),
            decode_bytes_per_peer: Some(200_000),
            ..setup.b.tuning
        },
        ..setup.b
    };
    let mut pair = Pair::new(setup);
    pair.deliver(message(5_000, 1));
    let ids: Vec<_> =
        (0..8).map(|seed| pair.send_from(Side::A, message(90_000, seed), options())).collect();
    for id in ids {
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    }
    assert!(pair.b.endpoint.counters().receiver.busy_sent > 0);
}
