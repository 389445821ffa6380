//! Clocks that stand still and jump while peers restart, and two incarnations that read one socket:
//! whatever happens, no message is delivered twice, and no outcome says what is not so.

use crate::common::{KEY, Pair, Setup, Side, lossy, message};
use cloudburst_core::config::{BurstPolicy, Config, ListenPorts, Security};
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use cloudburst_netem::LinkConfig;
use cloudburst_world::drive::{self, Watch};
use cloudburst_world::{Departure, Hop, Host, Network, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

/// Panics unless `outcome` is true of a message that was delivered `deliveries` times.
fn assert_true(outcome: &Outcome, deliveries: usize, what: &str) {
    let expected = match outcome {
        Outcome::Delivered(_) => 1..=1,
        Outcome::Rejected(_) => 0..=0,
        Outcome::Unknown(_) => 0..=1,
    };
    assert!(expected.contains(&deliveries), "{what}: {outcome:?}, delivered {deliveries} times");
}

/// A pair whose B has taken a message of A, and whose STOPs are lost. Returns the message, too.
fn taken_without_stop(length: usize, policy: BurstPolicy) -> (Pair, MessageId) {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::B, None, &lossy(1.0));
    let options = SendOptions::default().deadline(Duration::from_secs(20)).policy(policy);
    let id = pair.send_from(Side::A, message(length, 1), options);
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.b.inbox.len(), 2);
    (pair, id)
}

#[test]
fn a_message_is_not_delivered_again_when_its_senders_clock_stood_still() {
    for away in [10, 60, 200, 600] {
        for runs in [false, true] {
            for policy in [BurstPolicy::default(), BurstPolicy::UntilStop] {
                let (mut pair, id) = taken_without_stop(5_000, policy);
                // The machine is suspended; or its hypervisor stops only its clock.
                let now = pair.now;
                pair.a.clock.stop(now);
                if !runs {
                    pair.a.pause();
                }
                pair.restart(Side::B);
                pair.set_links(Side::B, None, &Setup::default().link);
                pair.run_for(Duration::from_secs(away));
                let now = pair.now;
                pair.a.clock.start(now);
                for (via, packet) in pair.a.resume() {
                    pair.a.handle(now, via, packet, &mut |_, _| {});
                }
                let outcome = pair.outcome(id);
                let what = format!("{away} s, {policy:?}, the process runs: {runs}");
                assert_true(&outcome, 1 + pair.b.inbox.len(), &what);
                assert_eq!(outcome, Outcome::Unknown(Indeterminate::PeerRestarted), "{what}");
                pair.deliver(message(10, 2));
            }
        }
    }
}

#[test]
fn a_message_is_delivered_once_when_its_receivers_clock_stood_still() {
    for away in [10, 60, 200, 600] {
        for restarts in [false, true] {
            let (mut pair, id) = taken_without_stop(5_000, BurstPolicy::default());
            let now = pair.now;
            pair.b.clock.stop(now);
            let before = core::mem::take(&mut pair.b.inbox).len() - 1;
            if restarts {
                pair.restart(Side::B);
            }
            pair.run_for(Duration::from_millis(100));
            pair.set_links(Side::B, None, &Setup::default().link);
            pair.run_for(Duration::from_secs(away));
            let now = pair.now;
            pair.b.clock.start(now);
            let outcome = pair.outcome(id);
            let what = format!("{away} s, it restarts: {restarts}");
            assert_true(&outcome, before + pair.b.inbox.len(), &what);
            pair.deliver(message(10, 2));
        }
    }
}

#[test]
fn a_clock_that_jumps_between_two_handshakes_delivers_nothing_twice() {
    let seconds = 1_000_000_000;
    for jump in [-3_600, -31, -1, 1, 31, 160, 3_600].map(|jump: i128| jump * seconds) {
        for jumps in [Side::A, Side::B] {
            for restarts in [Side::A, Side::B] {
                let mut pair = Pair::new(Setup::default());
                // So that the clock can go back.
                pair.a.clock.jump(7_200 * seconds);
                pair.b.clock.jump(7_200 * seconds);
                pair.deliver(message(1, 0));
                pair.set_links(Side::B, None, &lossy(1.0));
                let now = pair.a.clock.read(pair.now);
                let options = SendOptions::default().deadline(Duration::from_secs(2));
                let to = Side::B.address(0);
                let sent = pair.a.endpoint.send(now, to, message(3_000, 1), &options).unwrap();
                pair.run_for(Duration::from_millis(20));
                pair.host(jumps).clock.jump(jump);
                let before = core::mem::take(&mut pair.b.inbox).len() - 1;
                let outcomes = core::mem::take(&mut pair.a.outcomes);
                pair.restart(restarts);
                pair.set_links(Side::B, None, &Setup::default().link);
                pair.run_for(Duration::from_secs(4_000));
                let outcome = outcomes.get(&sent).or_else(|| pair.a.outcomes.get(&sent));
                let what = format!("{jump} ns at {jumps:?}, {restarts:?} restarts");
                let deliveries = before + pair.b.inbox.len();
                match outcome {
                    Some(outcome) => assert_true(outcome, deliveries, &what),
                    // The sender is gone before it learns anything.
                    None => {
                        assert_eq!(restarts, Side::A, "{what}: its deadline has passed");
                        assert!(deliveries <= 1, "{what}: delivered {deliveries} times");
                    }
                }
                let now = pair.a.clock.read(pair.now);
                let next = pair.a.endpoint.send(now, to, message(10, 2), &options).unwrap();
                pair.outcome(next);
                assert!(matches!(pair.a.outcomes[&next], Outcome::Delivered(_)), "{what}");
            }
        }
    }
}

/// Two processes, the second of which takes over the socket of the first, and a client.
struct HandOver<F> {
    /// Whether a packet to the socket, by the number of those before it, goes to the second process.
    to_new: F,
    /// Packets that the socket has received.
    received: usize,
    /// Whether what the first process says of messages is lost.
    loses_stops: bool,
}

impl<F: Fn(usize) -> bool> Watch for HandOver<F> {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        let is_answer = Kind::of(&departure.packet) == Ok(Kind::Answer);
        if departure.from == 1 && self.loses_stops && is_answer {
            return None;
        }
        let hop = hop?;
        if departure.from != 0 {
            return Some(Hop { to: 0, ..hop });
        }
        let to = if (self.to_new)(self.received) { 2 } else { 1 };
        self.received += 1;
        Some(Hop { to, ..hop })
    }
}

/// A message of `length` bytes, in the middle of which the socket changes hands. Returns how often it
/// was delivered, its outcome, and the packets that the socket received.
fn hand_over(
    length: usize,
    loses_stops: bool,
    to_new: impl Fn(usize) -> bool,
) -> (usize, Outcome, usize) {
    let mut now = Instant::from_nanos(1_000_000_000);
    let address = |host: u8| SocketAddr::from(([10, 0, 0, host], 7000));
    let host = |secret: u8, host: u8| {
        Host::new(Recipe {
            config: Config { deadline: Duration::from_secs(1), ..Config::default() },
            listen: ListenPorts::one(7000),
            security: Security::pre_shared(KEY),
            secret: [secret; 32],
            egresses: 1,
            addr: address(host),
            ports: 1,
            shared: None,
            interface_mtu: 1_500,
        })
    };
    let mut hosts = [host(1, 1), host(2, 2), host(3, 2)];
    let link = LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() };
    let mut network = Network::new(1, link);
    let mut watch = HandOver { to_new, received: 0, loses_stops };
    let options = SendOptions::default();
    let bytes = message(length, 1);
    let id = hosts[0].endpoint.send(now, address(2), bytes, &options).unwrap();
    drive::drain(&mut hosts, &mut network, now, 0, &mut watch);
    while !hosts[0].outcomes.contains_key(&id) {
        now = drive::next_at(&hosts, &network).expect("a deadline").max(now);
        drive::run_moment(&mut hosts, &mut network, now, &mut watch);
        hosts.iter().for_each(|host| host.endpoint.check_invariants());
    }
    // What is still on the way must not deliver anything either.
    let until = now + Duration::from_secs(1);
    while let Some(next) = drive::next_at(&hosts, &network).filter(|at| *at < until) {
        now = next.max(now);
        drive::run_moment(&mut hosts, &mut network, now, &mut watch);
    }
    let deliveries = hosts[1].inbox.len() + hosts[2].inbox.len();
    (deliveries, hosts[0].outcomes[&id].clone(), watch.received)
}

#[test]
fn a_socket_that_changes_hands_at_any_packet_delivers_nothing_twice() {
    for length in [100, 3_000] {
        for loses_stops in [false, true] {
            let (.., packets) = hand_over(length, loses_stops, |_| false);
            for cut in 0..packets.min(60) {
                for (back, alternates) in [(0, false), (1, false), (3, false), (0, true)] {
                    let to_new = |at: usize| {
                        let after = at >= cut;
                        // Some packets go to the other one all the same; or each second one does.
                        let strays = after && at < cut + 2 * back && (at - cut) % 2 == 1;
                        (after && !strays) != (alternates && at % 2 == 1)
                    };
                    let (deliveries, outcome, _) = hand_over(length, loses_stops, to_new);
                    let what = format!(
                        "{length} bytes, cut at {cut}, back for {back}, alternates: {alternates}, \
                         STOPs are lost: {loses_stops}"
                    );
                    assert_true(&outcome, deliveries, &what);
                }
            }
        }
    }
}
