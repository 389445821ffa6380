//! Messages that are pulled (SCDP, section IV-C): what is sent for them, with losses and without.

use crate::common::{KEY, Pair, Setup, Side, lossy, message};
use cloudburst_core::config::{BurstPolicy, Config, PullOrder};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

const WINDOW: u16 = 12;

fn options() -> SendOptions {
    let policy = Some(BurstPolicy::Pulled { window: Some(WINDOW) });
    SendOptions { policy, ..SendOptions::default() }
}

fn deliver(pair: &mut Pair, length: usize) -> Receipt {
    let id = pair.send_from(Side::A, message(length, length as u64), options());
    match pair.outcome(id) {
        Outcome::Delivered(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_loss_exactly_the_source_symbols_are_sent() {
    for paths in [1, 4, 16] {
        let mut pair = Pair::new(Setup { paths, ..Setup::default() });
        for length in [0, 1, 5_000, 20_000, 70_000, 256_000, 1_000_000] {
            let before = pair.b.endpoint.counters().receiver;
            let receipt = deliver(&mut pair, length);
            pair.settle();
            let after = pair.b.endpoint.counters().receiver;
            println!(
                "{paths} paths, {length} bytes: {receipt:?}, {} pulls",
                after.pulls_sent - before.pulls_sent
            );
            assert_eq!(receipt.packets, receipt.source_symbols, "{length} bytes, {paths} paths");
            assert_eq!(after.symbols_lost, 0);
        }
    }
}

#[test]
fn each_lost_symbol_is_pulled_anew() {
    for paths in [1, 4, 16] {
        let mut pair = Pair::new(Setup { paths, ..Setup::default() });
        deliver(&mut pair, 5_000);
        for (loss, seed) in [(0.01, 1), (0.1, 2), (0.3, 3)] {
            pair.set_links(Side::A, None, &lossy(loss));
            for _ in 0..20 {
                let before = pair.link_stats(Side::A);
                let receipt = deliver(&mut pair, 256_000);
                pair.run_for(Duration::from_millis(1));
                let after = pair.link_stats(Side::A);
                let lost = after.lost - before.lost;
                println!(
                    "{paths} paths, loss {loss}, {seed}: {} sent, {} needed, {lost} lost, in {:?}",
                    receipt.packets, receipt.source_symbols, receipt.completed_in
                );
            }
        }
    }
}
