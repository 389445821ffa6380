//! Peers that hold the key and lie about pulls: they harm only their own messages.

use crate::common::peer::{Liar, accept_by_hand, accept_fields};
use crate::common::{KEY, Pair, Setup, Side, message};
use bytes::Bytes;
use cloudburst_core::config::{BurstPolicy, Config, ListenPorts, Security};
use cloudburst_core::error::{Outcome, Rejection};
use cloudburst_core::id::{Incarnation, MessageId, PathId};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Event, SendOptions, Transceiver};
use cloudburst_core::rng::{Seed, SplitMix64};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::answer::NONE_ACKNOWLEDGED;
use cloudburst_core::wire::handshake::{Hello, HelloKey};
use cloudburst_core::wire::seal::Sealer;
use cloudburst_core::wire::{Answer, Certificate, Kind, Prefix, Report, Verdict};
use core::time::Duration;
use std::collections::BTreeMap;

fn options() -> SendOptions {
    let policy = BurstPolicy::Pulled { window: Some(4) };
    SendOptions::default().deadline(Duration::from_secs(1)).policy(policy)
}

/// An endpoint with a message of 500 KB, in three blocks, to a receiver whose packets the test
/// writes.
struct Victim {
    sender: Transceiver,
    now: Instant,
    sealer: Sealer,
    via: Via,
    message: MessageId,
}

impl Victim {
    fn new(options: &SendOptions) -> Self {
        let config = Config::default();
        let security = Security::pre_shared(KEY);
        let map = Box::new(Egresses(1));
        let mut sender =
            Transceiver::new(config, ListenPorts::one(7000), &security, Seed::new([3; 32]), map)
                .unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        let via = Via { egress: 0, local: None, remote: ([10, 0, 0, 2], 7000).into() };
        let bytes = Bytes::from(vec![1; 500_000]);
        let message = sender.send(now, via.remote, bytes, options).unwrap();
        let fields = accept_fields(Incarnation([9; 16]));
        let flow = accept_by_hand(&mut sender, now, PathId(0), &fields).forward;
        Self { sender, now, sealer: Sealer::new(flow.answers), via, message }
    }

    /// The symbols that leave within `time`.
    fn symbols(&mut self, time: Duration) -> usize {
        let until = self.now + time;
        let mut symbols = 0;
        loop {
            let mut packet = Vec::new();
            while let Some(transmit) = self.sender.poll_transmit(self.now, &mut packet) {
                let is_symbol = Kind::of(&packet) == Ok(Kind::Symbol) && transmit.segment_size > 58;
                symbols += if is_symbol { transmit.len / transmit.segment_size } else { 0 };
                packet.clear();
            }
            self.sender.check_invariants();
            let next = self.sender.poll_timeout().unwrap_or(until).max(self.now);
            if next >= until {
                self.now = until;
                return symbols;
            }
            self.now = next;
            self.sender.handle_timeout(self.now);
        }
    }

    fn pull(&mut self, block: u32, credit: u32, fin: bool) {
        let verdict = Verdict::Pull { credit, fin, arrivals: Vec::new() };
        let message = self.message;
        self.report(Report::Message(Answer {
            message,
            block,
            acknowledged: NONE_ACKNOWLEDGED,
            verdict,
        }));
    }

    fn report(&mut self, report: Report) {
        let session = self.sealer.session();
        let number = self.sealer.next_number();
        let mut packet = Vec::new();
        Prefix::answer(0, PathId(0), session, number).write(&mut packet);
        report.write(&mut packet);
        let payload_at = packet.len();
        self.sealer.seal(&mut packet, 0, payload_at);
        self.sender.handle_datagram(self.now, self.via, &mut packet);
        self.sender.check_invariants();
    }
}

const FEW: Duration = Duration::from_micros(400);

#[test]
fn credit_without_end_is_bounded_by_the_cap_of_a_block() {
    let mut victim = Victim::new(&options());
    assert_eq!(victim.symbols(FEW), 4);
    victim.pull(0, u32::MAX, false);
    let sent = victim.symbols(Duration::from_millis(100));
    // Of 118 symbols: 32 times as many, and 256, of which 4 were the opening.
    assert_eq!(sent, 118 * 32 + 256 - 4);
    for _ in 0..8 {
        victim.pull(0, u32::MAX, false);
        let sent = victim.symbols(Duration::from_millis(100));
        assert!(sent <= 8, "{sent} in 100 ms");
    }
}

#[test]
fn credit_for_blocks_that_are_far_off_or_are_none_begins_nothing() {
    let mut victim = Victim::new(&options());
    assert_eq!(victim.symbols(FEW), 4);
    for block in [2, 3, u32::MAX >> 8] {
        victim.pull(block, 5, true);
    }
    assert_eq!(victim.symbols(FEW), 0);
    victim.pull(1, 5, true);
    assert_eq!(victim.symbols(FEW), 5);
}

#[test]
fn a_receiver_that_gives_no_credit_is_asked_ten_times_a_second() {
    let mut victim = Victim::new(&options());
    assert_eq!(victim.symbols(FEW), 4);
    for _ in 0..9 {
        victim.pull(0, 0, false);
        let sent = victim.symbols(Duration::from_millis(100));
        assert!(sent <= 8, "{sent} in 100 ms");
    }
    victim.symbols(Duration::from_millis(200));
    let ended = core::iter::from_fn(|| victim.sender.poll_event());
    let outcomes: Vec<_> = ended
        .filter_map(|event| match event {
            Event::Ended(_, outcome) => Some(outcome),
            _ => None,
        })
        .collect();
    assert!(matches!(outcomes[..], [Outcome::Unknown(_)]), "{outcomes:?}");
}

#[test]
fn credit_for_messages_that_are_not_pulled_changes_nothing() {
    let mut victim = Victim::new(&options().policy(BurstPolicy::default()));
    victim.symbols(Duration::from_millis(5));
    let before = victim.symbols(Duration::from_millis(1));
    victim.pull(0, 1_000, false);
    assert!(victim.symbols(Duration::from_millis(1)) <= before.max(8));
}

/// A receiver that pulls, and a sender that ignores its window.
#[test]
fn a_sender_that_ignores_windows_delays_nobody_else() {
    let mut liar = Liar::meet(Config::default());
    liar.pulled = true;
    let mut rng = SplitMix64::new(7);
    for id in 0..50 {
        let bytes = vec![7; 100_000];
        for _ in 0..40 {
            let mut header = liar.header(id, &bytes, 1_400, rng.below(200) as u32);
            header.symbol = match rng.below(8) {
                0 => u32::MAX - rng.below(2) as u32,
                _ => header.symbol.wrapping_mul(1 << rng.below(30)),
            };
            header.unscheduled = rng.next_u64() as u16 >> rng.below(16);
            let payload = if rng.below(4) == 0 { Vec::new() } else { vec![0; 1_400] };
            liar.say(&header, rng.below(2) == 0, &payload);
            liar.now += Duration::from_micros(rng.below(300));
            liar.endpoint.handle_timeout(liar.now);
            liar.endpoint.check_invariants();
        }
    }
    // Pulls are at most as fast as the link, and end with the messages.
    let pulls = liar.endpoint.counters().receiver.pulls_sent;
    assert!(pulls < 3_000, "{pulls} for 2,000 symbols");
    liar.now += Duration::from_secs(20);
    liar.endpoint.handle_timeout(liar.now);
    liar.endpoint.check_invariants();
    assert_eq!(liar.endpoint.receive_memory(), 0);
}

#[test]
fn a_claim_of_symbols_that_never_arrive_has_few_pulled_in_vain() {
    let mut liar = Liar::meet(Config::default());
    liar.pulled = true;
    let mut header = liar.header(0, &[7; 1_000_000], 1_400, 1_024);
    header.unscheduled = 1_024;
    liar.say(&header, true, &[]);
    let until = liar.now + Duration::from_millis(9);
    let mut credits = BTreeMap::new();
    while let Some(at) = liar.endpoint.poll_timeout().filter(|&at| at < until) {
        liar.now = liar.now.max(at);
        liar.endpoint.handle_timeout(liar.now);
        for (_, answer) in liar.answers() {
            if let Verdict::Pull { credit, .. } = answer.verdict {
                credits.insert(answer.block, credit);
            }
        }
        liar.endpoint.check_invariants();
    }
    assert_eq!(credits.values().sum::<u32>(), 32, "{credits:?}");
}

#[test]
fn a_probe_of_a_block_that_is_none_begins_no_message() {
    for pulled in [false, true] {
        let mut liar = Liar::meet(Config::default());
        liar.pulled = pulled;
        let mut header = liar.header(0, &[7; 100_000], 1_400, 5);
        header.block = 9;
        assert_eq!(liar.say(&header, false, &[]), []);
        assert_eq!(liar.endpoint.receive_memory(), 0);
        assert_eq!(liar.endpoint.counters().receiver.nonsense, 1);
    }
}

#[test]
fn pulled_messages_both_ways_do_not_delay_each_other() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(5_000, 1));
    let options = options().policy(BurstPolicy::Pulled { window: None });
    for seed in 0..4 {
        pair.send_from(Side::A, message(256_000, seed), options);
        pair.send_from(Side::B, message(256_000, seed), options);
    }
    let began = pair.now;
    pair.settle();
    // A link takes 2.3 ms for each.
    let took = pair.now.saturating_since(began);
    assert!(took < Duration::from_millis(11), "{took:?}");
    assert_eq!((pair.a.delivered(), pair.b.delivered()), (5, 4));
}

#[test]
fn a_session_that_has_ended_is_not_alive_again_whatever_its_peer_says() {
    let mut victim = Victim::new(&options());
    victim.symbols(FEW);
    victim.report(Report::Ended(Certificate::new(MessageId(0), 0, [])));
    let options = SendOptions::default().deadline(Duration::from_secs(1));
    let late = victim.sender.send(victim.now, victim.via.remote, Bytes::new(), &options).unwrap();
    let mut packet = Vec::new();
    victim.sender.poll_transmit(victim.now, &mut packet).unwrap();
    let (_, hello) = Hello::parse(&[HelloKey::new(&KEY)], &packet).unwrap().unwrap();
    victim.report(Report::Alive { nonce: hello.nonce });
    assert_eq!(victim.symbols(Duration::from_secs(2)), 0);
    let ended: Vec<_> = core::iter::from_fn(|| victim.sender.poll_event()).collect();
    let no_answer = Outcome::Rejected(Rejection::NoAnswer);
    assert!(ended.contains(&Event::Ended(late, no_answer)), "{ended:?}");
}
