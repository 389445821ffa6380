//! Outages of 0.1 to 150 s: every message whose deadline is later is delivered soon after the end of the
//! outage, and meanwhile the rate of what is sent is bounded. A row for each is printed.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::{LinkConfig, Loss};
use core::fmt;
use core::time::Duration;

const MILLIS: [u64; 7] = [100, 1_000, 5_000, 15_000, 25_000, 60_000, 590_000];
const SOME_MILLIS: [u64; 3] = [100, 1_000, 25_000];
const SIZES: [usize; 4] = [100, 5_000, 93_000, 1_000_000];
const PATHS: [u16; 3] = [1, 4, 16];
const POLICIES: [BurstPolicy; 4] = [
    BurstPolicy::Budgeted { margin: 1.0 / 16.0 },
    BurstPolicy::Budgeted { margin: 0.0 },
    BurstPolicy::Oblivious,
    BurstPolicy::Pulled { window: None },
];
/// The longest wait between two retries is 100 ms, that between two attempts at a handshake 200 ms.
const SOON: Duration = Duration::from_millis(250);
/// Packets a second to a peer that does not answer, from the second second on: 16 HELLOs every 200 ms, and
/// eight symbols every 100 ms, by 16 paths.
const MAX_RATE: u64 = 165;

/// What is lost in an outage, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    All,
    /// From 20 us after the message has begun to be sent.
    Rest,
    /// Packets to the receiver, whose answers would arrive.
    Symbols,
    /// Packets to the sender.
    Answers,
}

struct Case {
    policy: BurstPolicy,
    paths: u16,
    size: usize,
    lost: Lost,
    outages: u32,
    each: Duration,
}

/// What the outages have cost.
struct Cost {
    /// From the end of the last one to the outcome.
    took: Duration,
    /// Symbols, probes and HELLOs until then.
    packets: u64,
    /// The most of them in one second of an outage but its first, which has the burst.
    rate: u64,
}

const HEADER: &str = "policy                 paths   bytes lost     outages    each  delivered after  packets  per s";

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, paths, size, lost, outages, each } = self;
        let policy = policy.to_string();
        let lost = format!("{lost:?}");
        let each = format!("{each:?}");
        write!(f, "{policy:<22} {paths:>5} {size:>7} {lost:<8} {outages:>7} {each:>7}")
    }
}

/// A pair with a session. If only a STOP ends bursts, the sender may send 20 Mb/s, so that an outage takes
/// no billions of packets.
fn met(policy: BurstPolicy, paths: u16) -> Pair {
    let mut setup = Setup { paths, ..Setup::default() };
    if policy == BurstPolicy::UntilStop {
        setup.a.capacity = 20_000_000.into();
    }
    let mut pair = Pair::new(setup);
    pair.deliver(message(1, 0));
    pair
}

fn lose(pair: &mut Pair, lost: Option<Lost>) {
    for (side, other) in [(Side::A, Lost::Answers), (Side::B, Lost::Symbols)] {
        let share = if lost.is_none_or(|lost| lost == other) { 0.0 } else { 1.0 };
        let loss = Loss::Independent(share);
        pair.set_links(side, None, &LinkConfig { loss, ..Setup::default().link });
    }
}

fn sent(pair: &Pair) -> u64 {
    let sent = pair.a.counters().sender;
    sent.symbols_sent + sent.probes_sent + sent.handshakes_sent
}

/// The time that the message takes without an outage.
fn transfer(case: &Case) -> Duration {
    let mut pair = met(case.policy, case.paths);
    let start = pair.now;
    let options = SendOptions::default().policy(case.policy);
    let id = pair.send_from(Side::A, message(case.size, 1), options);
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    pair.now.saturating_since(start)
}

fn run(case: &Case) -> (Outcome, Cost, Pair) {
    let mut pair = met(case.policy, case.paths);
    let before = sent(&pair);
    if case.lost != Lost::Rest {
        lose(&mut pair, Some(case.lost));
    }
    let deadline = case.outages * case.each + Duration::from_secs(5);
    let options = SendOptions::default().policy(case.policy).deadline(deadline);
    let id = pair.send_from(Side::A, message(case.size, 1), options);
    if case.lost == Lost::Rest {
        pair.run_for(Duration::from_micros(20));
    }
    let mut rate = 0;
    for number in 0..case.outages {
        if number > 0 {
            // Too short for a whole message, long enough for an answer.
            lose(&mut pair, None);
            pair.run_for(Duration::from_micros(300));
        }
        lose(&mut pair, Some(case.lost));
        let ends = pair.now + case.each;
        pair.run_for(case.each.min(Duration::from_secs(1)));
        while pair.now < ends {
            let before = sent(&pair);
            pair.run_for(ends.saturating_since(pair.now).min(Duration::from_secs(1)));
            rate = rate.max(sent(&pair) - before);
        }
    }
    lose(&mut pair, None);
    let back = pair.now;
    let outcome = pair.outcome(id);
    let took = pair.now.saturating_since(back);
    let packets = sent(&pair) - before;
    (outcome, Cost { took, packets, rate }, pair)
}

/// Runs each outage with each policy, size and number of paths, prints a row for each, and asserts that the
/// message was delivered `soon` after, once.
fn table(policies: &[BurstPolicy], lost: Lost, outages: u32, millis: &[u64], soon: Duration) {
    println!("{HEADER}");
    let mut wrong = Vec::new();
    for &policy in policies {
        for (paths, size) in PATHS.into_iter().flat_map(|paths| SIZES.map(|size| (paths, size))) {
            for &millis in millis {
                let each = Duration::from_millis(millis);
                let case = Case { policy, paths, size, lost, outages, each };
                let (outcome, Cost { took, packets, rate }, pair) = run(&case);
                let shown = format!("{took:.1?}");
                println!("{case} {shown:>16} {packets:>8} {rate:>6}");
                let delivered = matches!(outcome, Outcome::Delivered(_));
                let bounded = policy == BurstPolicy::UntilStop || rate <= MAX_RATE;
                let is_soon = took <= soon + 2 * transfer(&case);
                if !delivered || !bounded || !is_soon || pair.b.inbox.len() != 2 {
                    wrong.push(format!("{case} {outcome:?}, {took:?}, {rate} a second"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{HEADER}\n{}", wrong.join("\n"));
}

#[test]
fn any_outage_is_survived_by_every_policy_size_and_number_of_paths() {
    table(&POLICIES, Lost::All, 1, &MILLIS, SOON);
}

#[test]
fn any_outage_in_the_middle_of_a_message_is_survived() {
    table(&POLICIES, Lost::Rest, 1, &SOME_MILLIS, SOON);
}

#[test]
fn any_outage_of_symbols_alone_is_survived() {
    table(&POLICIES, Lost::Symbols, 1, &SOME_MILLIS, SOON);
}

#[test]
fn any_outage_of_answers_alone_is_survived() {
    table(&POLICIES, Lost::Answers, 1, &SOME_MILLIS, SOON);
}

#[test]
fn many_outages_are_survived() {
    table(&POLICIES, Lost::All, 20, &[100, 1_000, 5_000], SOON);
}

#[test]
fn a_burst_until_stop_lasts_as_long_as_an_outage_and_ends_after_it() {
    // Not bounded in rate: it is for experiments that compare with the paper, which does the same.
    table(&[BurstPolicy::UntilStop], Lost::All, 1, &[100, 1_000, 5_000], SOON);
}

#[test]
fn an_outage_for_which_no_session_is_remembered_ends_truthfully() {
    // The receiver has forgotten the session after ten minutes, and with it how its messages ended.
    for policy in POLICIES {
        for (lost, taken) in [(Lost::All, false), (Lost::Answers, true)] {
            let each = Duration::from_secs(700);
            let case = Case { policy, paths: 4, size: 5_000, lost, outages: 1, each };
            let (outcome, Cost { took, .. }, pair) = run(&case);
            assert!(took < SOON, "{case} {took:?}");
            assert_eq!(pair.b.inbox.len() == 2, taken, "{case}");
            match outcome {
                Outcome::Delivered(_) => assert!(taken, "{case}"),
                Outcome::Unknown(Indeterminate::PeerRestarted) => {}
                outcome => panic!("{case} {outcome:?}"),
            }
        }
    }
}
