//! Symbols that switches have trimmed (NDP; SCDP, section IV-B): their authentication and effects.

use crate::common::peer::{Liar, endpoint, open_fields};
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::code::Code;
use cloudburst_core::config::{BurstPolicy, Config, Fabric};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::{Incarnation, MessageId, PathId};
use cloudburst_core::path::Via;
use cloudburst_core::proto::{ReceiverCounters, SendOptions, Transceiver};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::handshake::OpenFields;
use cloudburst_core::wire::keys::FlowKeys;
use cloudburst_core::wire::seal::{Opener, Sealer, TAG_LEN};
use cloudburst_core::wire::{
    Answer, Arrivals, Capabilities, Kind, Prefix, Report, Role, SymbolHeader, Verdict, answer,
};
use cloudburst_netem::{LinkConfig, Trim};
use core::time::Duration;

/// The bytes of UDP payload that remain of a frame of 128 bytes over IPv4.
const LEFT: usize = 128 - 14 - 28;

fn trimmable() -> Config {
    Config { fabric: Fabric { trim_dscp: Some(44), ..Fabric::default() }, ..Config::default() }
}

/// A link slower than the sender, which trims.
fn narrow() -> LinkConfig {
    let trim = Some(Trim { header: LEFT, queue: 1_000 });
    let delay = Duration::from_micros(50);
    LinkConfig { rate: Some(300_000_000), queue: 3, trim, delay, ..LinkConfig::default() }
}

fn pair(a: Config, b: Config) -> Pair {
    let mut pair = Pair::new(Setup { a, b, paths: 4, ..Setup::default() });
    pair.deliver(message(5_000, 1));
    pair
}

fn deliver(pair: &mut Pair, length: usize, policy: BurstPolicy) -> Receipt {
    let options = SendOptions::default().policy(policy);
    let id = pair.send_from(Side::A, message(length, 7), options);
    match pair.outcome(id) {
        Outcome::Delivered(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

const PULLED: BurstPolicy = BurstPolicy::Pulled { window: Some(32) };

#[test]
fn a_pulled_message_sends_one_more_symbol_for_each_trimmed_one() {
    let mut pair = pair(trimmable(), trimmable());
    pair.set_links(Side::A, None, &narrow());
    for length in [256_000, 1_000_000] {
        let before = pair.link_stats(Side::A).trimmed as usize;
        let receipt = deliver(&mut pair, length, PULLED);
        let trimmed = pair.link_stats(Side::A).trimmed as usize - before;
        assert!(
            trimmed > 0 && receipt.packets == receipt.source_symbols + trimmed,
            "{trimmed} {receipt:?}"
        );
    }
    let counters = pair.b.endpoint.counters().receiver;
    assert_eq!(counters.symbols_trimmed, pair.link_stats(Side::A).trimmed);
    assert_eq!(counters.symbols_lost, counters.symbols_trimmed);
    assert_eq!((counters.malformed, counters.forged, counters.replayed), (0, 0, 0));
}

#[test]
fn a_path_on_which_symbols_are_trimmed_has_no_losses_in_reports_to_the_sender() {
    let mut pair = pair(trimmable(), trimmable());
    let slow = LinkConfig { rate: Some(50_000_000), queue: 1, ..narrow() };
    pair.set_links(Side::A, Some(1), &slow);
    for _ in 0..5 {
        deliver(&mut pair, 256_000, BurstPolicy::default());
    }
    assert!(pair.link_stats(Side::A).trimmed > 20, "{:?}", pair.link_stats(Side::A));
    let paths = pair.a.endpoint.paths(Side::B.address(0));
    assert!(paths.iter().all(|path| !path.degraded && path.loss_permille == 0), "{paths:?}");
}

#[test]
fn without_both_ends_symbols_carry_no_header_tags() {
    let plain = || Config::default();
    let lengths = |a, b| {
        let mut pair = pair(a, b);
        pair.tap = Some(Vec::new());
        deliver(&mut pair, 100, PULLED);
        let tap = pair.tap.take().unwrap();
        let symbols = tap.iter().filter(|(.., packet)| Kind::of(packet) == Ok(Kind::Symbol));
        symbols.map(|(.., packet)| packet.len()).max().unwrap()
    };
    let without = lengths(plain(), plain());
    assert_eq!(lengths(trimmable(), plain()), without);
    assert_eq!(lengths(plain(), trimmable()), without);
    assert_eq!(lengths(trimmable(), trimmable()), without + 8);
}

/// A peer whose packets a test writes, in a session with header tags.
struct Peer {
    endpoint: Transceiver,
    now: Instant,
    flow: FlowKeys,
    sealer: Sealer,
    opener: Opener,
    via: Via,
    pulled: bool,
}

impl Peer {
    fn meet() -> Self {
        let capabilities = Capabilities::TRIM;
        let fields = OpenFields { capabilities, ..open_fields(Incarnation([9; 16])) };
        let Liar { endpoint, now, flow, sealer, opener, via, .. } =
            Liar::join_as(endpoint(trimmable()), 9, &fields);
        Self { endpoint, now, flow, sealer, opener, via, pulled: true }
    }

    /// The next packet: a symbol of a message of ten.
    fn symbol(&mut self, symbol: u32, ack_request: bool) -> Vec<u8> {
        let header = SymbolHeader {
            message: MessageId(0),
            path_number: symbol as u16,
            length: 984,
            age: 0,
            block: 0,
            symbol,
            symbol_size: 100,
            code: Code::Rlf256.to_wire(),
            unscheduled: if self.pulled { 4 } else { 0 },
        };
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request,
            partial: false,
            again: false,
            pulled: self.pulled,
            probe: false,
            is_final: false,
            role: Role::Plain,
            class: 1,
            path: PathId(0),
            session: self.sealer.session(),
            number: self.sealer.next_number(),
        };
        let mut packet = Vec::new();
        header.write(&prefix, Some(&self.flow.symbols.header_key()), &[], &mut packet);
        let payload_at = packet.len();
        packet.resize(payload_at + 100, symbol as u8);
        self.sealer.seal(&mut packet, 0, payload_at);
        packet
    }

    /// Delivers a packet. Returns the verdicts in the answers.
    fn hand_in(&mut self, packet: &[u8]) -> Vec<Verdict> {
        let mut packet = packet.to_vec();
        self.endpoint.handle_datagram(self.now, self.via, &mut packet);
        self.endpoint.check_invariants();
        self.verdicts()
    }

    fn verdicts(&mut self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut packet = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut packet).is_some() {
            let (prefix, reports) = answer::parse(&packet).unwrap();
            let at = packet.len() - TAG_LEN;
            self.opener.open(prefix.number, &mut packet, at).unwrap();
            verdicts.extend(reports.into_iter().map(|report| match report {
                Report::Message(Answer { verdict, .. }) => verdict,
                other => panic!("{other:?}"),
            }));
            packet.clear();
        }
        verdicts
    }

    /// The arrivals of the message so far, which an ACK request of it brings and adds one to.
    fn arrivals(&mut self) -> Vec<Arrivals> {
        let packet = self.symbol(1, true);
        let Some(Verdict::Pull { mut arrivals, .. }) = self.hand_in(&packet).pop() else {
            panic!()
        };
        arrivals[0].count -= 1;
        arrivals
    }

    fn counters(&self) -> ReceiverCounters {
        self.endpoint.counters().receiver
    }
}

fn credits(verdicts: &[Verdict]) -> Vec<u32> {
    let credit = |verdict: &Verdict| match verdict {
        Verdict::Pull { credit, .. } => *credit,
        other => panic!("{other:?}"),
    };
    verdicts.iter().map(credit).collect()
}

#[test]
fn a_trimmed_symbol_may_be_the_first_of_its_session_and_is_pulled_anew_at_once() {
    let mut peer = Peer::meet();
    let packet = peer.symbol(3, false);
    assert_eq!(credits(&peer.hand_in(&packet[..LEFT])), [1], "the others may be on their way");
    let counters = peer.counters();
    assert_eq!((counters.sessions_confirmed, counters.symbols_trimmed), (1, 1));
    assert_eq!((counters.symbols_lost, counters.useful_symbols), (1, 0));
}

#[test]
fn a_replayed_header_counts_once_and_burns_no_number() {
    let mut peer = Peer::meet();
    let packet = peer.symbol(0, false);
    assert_eq!(credits(&peer.hand_in(&packet[..LEFT])), [1]);
    // The remaining payload may be anything.
    for len in [50, LEFT, packet.len() - 1] {
        let mut again = packet[..len].to_vec();
        again[50..].fill(0xee);
        assert_eq!(peer.hand_in(&again), []);
    }
    assert_eq!((peer.counters().symbols_lost, peer.counters().replayed), (1, 3));
    // A copy on another path arrives whole.
    peer.hand_in(&packet);
    assert_eq!(peer.counters().useful_symbols, 1);
    let arrivals = peer.arrivals();
    assert_eq!(
        arrivals,
        [Arrivals { path: PathId(0), count: 1, marked: 0 }],
        "it has counted already"
    );
    assert_eq!(peer.hand_in(&packet[..LEFT]), []);
    assert_eq!((peer.counters().symbols_trimmed, peer.counters().replayed), (1, 4));
}

#[test]
fn a_forged_header_does_nothing() {
    let mut peer = Peer::meet();
    let first = peer.symbol(0, false);
    peer.hand_in(&first);
    let packet = peer.symbol(1, true);
    let before = peer.counters();
    // All fields except kind, session and symbol size, which determine the type of packet; and the
    // tag.
    let fields = (2..4).chain(8..36).chain(38..50);
    for (count, at) in fields.enumerate() {
        let mut forged = packet[..LEFT].to_vec();
        forged[at] ^= 4;
        assert_eq!(peer.hand_in(&forged), [], "byte {at}");
        let mut expected = before;
        expected.forged += 1 + count as u64;
        assert_eq!(peer.counters(), expected, "byte {at}");
    }
    assert_eq!(peer.hand_in(&packet[..49]), []);
    assert_eq!(peer.counters().malformed, before.malformed + 1, "the tag is cut off");
    assert_ne!(peer.hand_in(&packet[..50]), [], "the least that will do");
}

#[test]
fn headers_of_other_sessions_say_nothing() {
    let mut peer = Peer::meet();
    let mut packet = peer.symbol(0, false);
    packet[4] ^= 1;
    assert_eq!(peer.hand_in(&packet[..LEFT]), []);
    assert_eq!((peer.counters().symbols_trimmed, peer.counters().malformed), (0, 1));
}

#[test]
fn a_trimmed_ack_request_of_a_burst_is_answered_when_others_have_had_time_to_arrive() {
    let mut peer = Peer::meet();
    peer.pulled = false;
    let [first, second] = [(0, false), (1, true)].map(|(at, asks)| peer.symbol(at, asks));
    assert_eq!(peer.hand_in(&second[..LEFT]), [], "it has overtaken the first");
    assert_eq!(peer.hand_in(&first), []);
    peer.now = peer.endpoint.poll_timeout().unwrap();
    peer.endpoint.handle_timeout(peer.now);
    let Verdict::Nack { needed, arrivals } = peer.verdicts().remove(0) else { panic!() };
    assert_eq!((needed, arrivals.len()), (9, 0));
}
