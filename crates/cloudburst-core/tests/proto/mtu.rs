//! Paths that carry less than the usual packet, or more: discovered by probes, without ICMP.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::code::Code;
use cloudburst_core::config::{BurstPolicy, Config, Fabric};
use cloudburst_core::error::{Indeterminate, Outcome, Receipt};
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

/// Bytes of the headers of IPv4 and UDP: links carry payloads.
const HEADERS: usize = 28;

/// A link that carries IP packets of up to `mtu` bytes. Longer ones vanish.
fn carries(mtu: usize) -> LinkConfig {
    LinkConfig { mtu: Some(mtu - HEADERS), ..Setup::default().link }
}

fn one_path(mtu: usize) -> Setup {
    Setup { paths: 1, link: carries(mtu), ..Setup::default() }
}

/// The MTU that A has found for B.
fn found(pair: &Pair) -> usize {
    pair.a.endpoint.peers()[0].sent.mtu
}

/// Every way of bursting a message.
fn ways() -> Vec<Config> {
    let lt: Code = "lt".parse().unwrap();
    let config = Config::default;
    vec![
        config(),
        Config { policy: BurstPolicy::Oblivious, ..config() },
        Config { policy: BurstPolicy::UntilStop, ..config() },
        Config { policy: BurstPolicy::Pulled { window: None }, ..config() },
        Config { code: lt, ..config() },
        Config { code: lt, policy: BurstPolicy::Oblivious, ..config() },
        Config { fabric: Fabric { trim_dscp: Some(10), ..Fabric::default() }, ..config() },
    ]
}

/// How long a message may take, in milliseconds, and how long one that bursts until STOP may: it is
/// told by the number of symbols alone that they vanish.
fn longest(config: &Config, millis: u64, until_stop: u64) -> Duration {
    let bursts = config.policy == BurstPolicy::UntilStop;
    Duration::from_millis(if bursts { until_stop } else { millis })
}

#[test]
fn messages_of_every_length_policy_and_code_cross_a_narrow_path() {
    for (way, config) in ways().into_iter().enumerate() {
        for mtu in [1_280, 1_400, 1_499] {
            for length in [1_400, 5_000, 93_000, 600_000] {
                let setup = Setup { a: config.clone(), b: config.clone(), ..one_path(mtu) };
                let mut pair = Pair::new(setup);
                let bytes = message(length, 1);
                let receipt = pair.deliver(bytes.clone());
                let took = receipt.completed_in;
                assert!(took < longest(&config, 100, 300), "{way} {mtu} {length}: {took:?}");
                assert!(pair.b.inbox.iter().map(|one| &one.bytes).eq([&bytes]), "once, unaltered");
                pair.run_for(Duration::from_secs(1));
                if pair.link_stats(Side::A).too_long > 0 {
                    assert!((mtu - 80..=mtu).contains(&found(&pair)), "{mtu}: {}", found(&pair));
                }
                // From now on, messages take what they took before.
                let before = pair.link_stats(Side::A).too_long;
                let again = pair.deliver(message(length, 2));
                assert!(again.completed_in < Duration::from_millis(10), "{again:?}");
                assert_eq!(pair.link_stats(Side::A).too_long, before);
            }
        }
    }
}

#[test]
fn a_call_and_its_response_cross_a_narrow_path() {
    for mtu in [1_280, 1_400] {
        let mut pair = Pair::new(one_path(mtu));
        let to = Side::B.address(0);
        let bytes = message(93_000, 1);
        let call = pair.a.endpoint.prepare(None, &bytes);
        pair.a.endpoint.call(pair.now, to, &call, &SendOptions::default()).unwrap();
        pair.run(|pair| !pair.b.requests.is_empty());
        let request = pair.b.requests.remove(0);
        let now = pair.now;
        pair.b.endpoint.reply(now, &request, Some(&bytes), &SendOptions::default()).unwrap();
        pair.run(|pair| !pair.a.answers.is_empty());
        assert_eq!(pair.a.answers[&call.id()], Ok(bytes));
        assert!(pair.now.saturating_since(now) < Duration::from_millis(150));
    }
}

#[test]
fn one_narrow_path_of_four_is_degraded_and_does_not_shorten_the_packets_of_the_others() {
    for narrow in 0..4 {
        let mut pair = Pair::new(Setup { seed: narrow.into(), ..Setup::default() });
        pair.set_links(Side::A, Some(narrow), &carries(1_280));
        for seed in 0..50 {
            let length = [1_400, 5_000, 93_000, 600_000][seed as usize % 4];
            let took = pair.deliver(message(length, seed)).completed_in;
            assert!(took < Duration::from_millis(50), "{narrow} {seed}: {took:?}");
        }
        assert_eq!(found(&pair), 1_500);
        let paths = pair.a.endpoint.paths(Side::B.address(0));
        let degraded = paths.iter().filter(|path| path.degraded).count();
        assert_eq!(degraded, 1, "{paths:?}");
    }
}

#[test]
fn packets_are_as_long_as_most_paths_carry() {
    for (narrow, expected) in [(2, 1_500), (4, 1_400)] {
        let mut pair = Pair::new(Setup::default());
        for path in 0..narrow {
            pair.set_links(Side::A, Some(path), &carries(1_400));
        }
        for seed in 0..20 {
            let took = pair.deliver(message(93_000, seed)).completed_in;
            assert!(took < Duration::from_millis(100), "{narrow} {seed}: {took:?}");
        }
        pair.run_for(Duration::from_secs(1));
        assert_eq!(found(&pair), expected, "{narrow}");
    }
}

#[test]
fn a_path_that_shrinks_under_way_costs_milliseconds() {
    for (way, config) in ways().into_iter().enumerate() {
        let link = LinkConfig { rate: Some(1_000_000_000), ..Setup::default().link };
        let narrow = LinkConfig { mtu: Some(1_400 - HEADERS), ..link.clone() };
        let config = Config { capacity: 1_000_000_000.into(), ..config };
        let setup =
            Setup { paths: 1, a: config.clone(), b: config.clone(), link, ..Setup::default() };
        let mut pair = Pair::new(setup);
        let bytes = message(4_000_000, 1);
        let id = pair.send(bytes.clone());
        pair.run_for(Duration::from_millis(10));
        pair.set_links(Side::A, None, &narrow);
        let shrunk = pair.now;
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
        let took = pair.now.saturating_since(shrunk);
        // 4 MB take 35 ms, and begin again.
        assert!(took < longest(&config, 100, 1_000), "{way}: {took:?}");
        assert!(pair.b.inbox.iter().map(|one| &one.bytes).eq([&bytes]));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(found(&pair), 1_400);
    }
}

#[test]
fn a_path_that_grows_back_is_used_in_full_again() {
    let mut pair = Pair::new(one_path(1_400));
    pair.deliver(message(93_000, 1));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(found(&pair), 1_400);
    pair.set_links(Side::A, None, &carries(1_500));
    for seed in 0..30 {
        pair.deliver(message(93_000, seed));
        pair.run_for(Duration::from_secs(3));
    }
    assert_eq!(found(&pair), 1_500);
}

fn packets(receipt: &Receipt) -> usize {
    receipt.source_symbols
}

#[test]
fn a_jumbo_path_is_used_once_the_peer_gets_much() {
    for (mtu, expected) in [(9_000, 9_000), (8_950, 8_900), (4_000, 4_000), (1_500, 1_500)] {
        for paths in [1, 4] {
            let setup =
                Setup { paths, interface_mtu: 9_000, link: carries(mtu), ..Setup::default() };
            let mut pair = Pair::new(setup);
            let before = pair.deliver(message(93_000, 0));
            assert_eq!((found(&pair), packets(&before)), (1_500, 66), "not for little");
            for seed in 0..10 {
                let took = pair.deliver(message(93_000, seed)).completed_in;
                assert!(took < Duration::from_millis(2), "nothing waits for probes: {took:?}");
            }
            pair.run_for(Duration::from_secs(1));
            assert_eq!(found(&pair), expected, "{mtu} by {paths}");
            let after = pair.deliver(message(93_000, 1));
            assert!(packets(&after) <= 93_016_usize.div_ceil(expected - 100), "{after:?}");
        }
    }
}

#[test]
fn the_setting_bounds_what_a_jumbo_interface_allows() {
    let a = Config { mtu: 4_000, ..Config::default() };
    let mut pair = Pair::new(Setup { a, paths: 1, interface_mtu: 9_000, ..Setup::default() });
    (0..10).for_each(|seed| drop(pair.deliver(message(93_000, seed))));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(found(&pair), 4_000);
}

#[test]
fn a_jumbo_path_that_shrinks_costs_milliseconds() {
    let mut pair = Pair::new(Setup { paths: 1, interface_mtu: 9_000, ..Setup::default() });
    (0..10).for_each(|seed| drop(pair.deliver(message(93_000, seed))));
    assert_eq!(found(&pair), 9_000);
    pair.set_links(Side::A, None, &carries(1_400));
    let took = pair.deliver(message(93_000, 1)).completed_in;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[test]
fn loss_and_outages_shorten_no_packets() {
    for seed in 0..20 {
        for paths in [1, 4] {
            let setup = Setup { seed, paths, link: lossy(0.2), ..Setup::default() };
            let mut pair = Pair::new(setup);
            for number in 0..20 {
                pair.deliver(message([1_400, 20_000][number % 2], number as u64));
            }
            assert_eq!(found(&pair), 1_500, "{seed} {paths}");
        }
    }
    for away in [10, 100, 1_000] {
        let mut pair = Pair::new(Setup { paths: 1, ..Setup::default() });
        pair.deliver(message(1_000, 0));
        let id = pair.send(message(600_000, 1));
        pair.run_for(Duration::from_micros(100));
        pair.set_down(0, true);
        pair.run_for(Duration::from_millis(away));
        let sent = pair.link_stats(Side::A).sent;
        pair.set_down(0, false);
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(
            (found(&pair), pair.a.counters().sender.mtu_lowered),
            (1_500, 0),
            "{away} {sent}"
        );
    }
}

#[test]
fn an_error_names_the_mtu_of_a_path_that_is_narrower_than_supported() {
    let mut pair = Pair::new(one_path(1_000));
    let short = pair.send(message(500, 1));
    assert!(matches!(pair.outcome(short), Outcome::Delivered(_)));
    let long = pair.send(message(93_000, 2));
    assert_eq!(pair.outcome(long), Outcome::Unknown(Indeterminate::Mtu(1_280)));
    // As it says, a smaller setting helps.
    let a = Config { mtu: 1_000, ..Config::default() };
    let mut pair = Pair::new(Setup { a, ..one_path(1_000) });
    pair.deliver(message(93_000, 2));
}
