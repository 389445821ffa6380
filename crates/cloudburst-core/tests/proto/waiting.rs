//! Messages, calls and connects for which there is no capacity wait in one line.

use crate::common::peer::endpoint;
use crate::common::{Pair, Setup, Side, message};
use bytes::Bytes;
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::{CallFailure, Outcome, Rejection, StartError};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::{CallId, Event, SendOptions, Transceiver};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::symbol::MAX_MESSAGE_ID;
use core::time::Duration;
use std::net::SocketAddr;

const START: Instant = Instant::from_nanos(1_000_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn of_messages(send_messages: usize) -> Config {
    let tuning = Tuning { send_messages: Some(send_messages), ..Tuning::default() };
    Config { tuning, ..Config::default() }
}

fn of_bytes(send_bytes: usize) -> Config {
    let tuning = Tuning { send_bytes: Some(send_bytes), ..Tuning::default() };
    Config { tuning, ..Config::default() }
}

fn pair(a: Config) -> Pair {
    Pair::new(Setup { a, ..Setup::default() })
}

fn peer(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, number], 7000))
}

/// An endpoint whose peers do not answer.
struct Alone {
    endpoint: Transceiver,
    now: Instant,
}

impl Alone {
    fn new(config: Config) -> Self {
        Self { endpoint: endpoint(config), now: START }
    }

    fn send(&mut self, to: u8, len: usize) -> MessageId {
        let options = SendOptions::default().deadline(10 * SECOND);
        self.endpoint.send(self.now, peer(to), vec![to; len].into(), &options).unwrap()
    }

    fn cancel(&mut self, id: MessageId) {
        self.endpoint.cancel(id);
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut buffer = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut buffer).is_some() {
            buffer.clear();
        }
        self.endpoint.check_invariants();
    }

    /// The messages under way to each peer that has any.
    fn under_way(&self) -> Vec<(SocketAddr, usize)> {
        let peers = self.endpoint.peers().into_iter();
        let under_way = peers.map(|stats| (stats.peer, stats.sent.unfinished));
        under_way.filter(|&(_, messages)| messages > 0).collect()
    }
}

fn waits(id: MessageId) -> bool {
    id.0 >= MAX_MESSAGE_ID
}

#[test]
fn what_waits_starts_by_itself_in_order_of_arrival() {
    let mut pair = pair(of_messages(1));
    let ids: Vec<MessageId> = (0..20).map(|seed| pair.send(message(3_000, seed))).collect();
    assert!(!waits(ids[0]) && ids[1..].iter().all(|id| waits(*id)));
    assert_eq!(pair.a.endpoint.unfinished(), 20);
    pair.settle();
    pair.a.endpoint.check_invariants();
    for (seed, arrived) in (0..20).zip(&pair.b.inbox) {
        assert_eq!(arrived.bytes, message(3_000, seed));
        assert!(!waits(arrived.id), "that is no id on the wire");
    }
    let totals = ids.iter().map(|id| match &pair.a.outcomes[id] {
        Outcome::Delivered(receipt) => (receipt.total(), receipt.completed_in),
        other => panic!("{other:?}"),
    });
    let totals: Vec<_> = totals.collect();
    assert!(totals.is_sorted_by_key(|(total, _)| *total), "the wait counts: {totals:?}");
    assert!(totals[19].1 < totals[19].0 / 10, "and is told apart: {totals:?}");
}

#[test]
fn peers_take_turns() {
    let mut alone = Alone::new(of_messages(1));
    let mut next = alone.send(0, 10);
    let mut of_one: Vec<_> = (0..3).map(|_| alone.send(1, 10)).collect();
    let others = [alone.send(2, 10), alone.send(3, 10)];
    of_one.reverse();
    let order = [of_one.pop().unwrap(), others[0], others[1]];
    let order = order.into_iter().chain(of_one.into_iter().rev());
    for (id, to) in order.zip([1, 2, 3, 1, 1]) {
        alone.cancel(next);
        assert_eq!(alone.under_way(), [(peer(to), 1)]);
        next = id;
    }
    alone.cancel(next);
    assert_eq!(alone.endpoint.unfinished(), 0);
}

#[test]
fn a_peer_whose_window_is_full_holds_nobody_up() {
    const WINDOW: usize = 65_536;
    let mut alone = Alone::new(of_messages(2 * WINDOW));
    let oldest = alone.send(1, 1);
    for _ in 1..WINDOW {
        alone.send(1, 1);
    }
    let late = alone.send(1, 1);
    assert!(waits(late));
    assert!(!waits(alone.send(2, 1)), "another peer's");
    alone.transmit();
    assert_eq!(alone.under_way(), [(peer(1), WINDOW), (peer(2), 1)]);
    alone.cancel(oldest);
    assert_eq!(alone.under_way(), [(peer(1), WINDOW), (peer(2), 1)], "the late one has started");
    alone.cancel(late);
    assert_eq!(alone.under_way(), [(peer(1), WINDOW - 1), (peer(2), 1)]);
}

#[test]
fn a_message_that_fits_passes_one_that_does_not_and_never_one_to_the_same_peer() {
    let mut alone = Alone::new(of_bytes(1_000));
    let first = alone.send(1, 900);
    let long = alone.send(2, 500);
    let behind = alone.send(2, 10);
    assert!(waits(long) && waits(behind));
    let at_once = SendOptions::default().wait(false);
    let refused = alone.endpoint.send(START, peer(2), Bytes::from_static(b"10"), &at_once);
    assert_eq!(refused, Err(StartError::Full { messages: 1, bytes: 900 }), "its turn is not yet");
    assert!(!waits(alone.send(3, 50)));
    alone.transmit();
    assert_eq!(alone.under_way(), [(peer(1), 1), (peer(3), 1)]);
    alone.cancel(first);
    assert_eq!(alone.under_way(), [(peer(2), 2), (peer(3), 1)]);
}

#[test]
fn however_many_messages_do_not_fit_one_that_does_starts() {
    let mut alone = Alone::new(of_bytes(1_000));
    let first = alone.send(1, 500);
    let second = alone.send(2, 450);
    let long: Vec<_> = (3..33).map(|to| alone.send(to, 900)).collect();
    let short = alone.send(40, 300);
    assert!(long.iter().all(|id| waits(*id)) && waits(short));
    alone.cancel(second);
    assert_eq!(alone.under_way(), [(peer(1), 1), (peer(40), 1)]);
    alone.cancel(short);
    alone.cancel(first);
    assert_eq!(alone.under_way(), [(peer(3), 1)], "the first of the long ones");
}

#[test]
fn a_message_longer_than_all_capacity_waits_until_nothing_else_is_under_way() {
    let mut alone = Alone::new(of_bytes(1));
    let first = alone.send(1, 10_000);
    let second = alone.send(2, 10_000);
    assert!(!waits(first) && waits(second));
    alone.cancel(first);
    assert_eq!(alone.under_way(), [(peer(2), 1)]);
    let max = Config::default().max_message;
    let huge = Bytes::from(vec![0; max + 1]);
    let refused = alone.endpoint.send(START, peer(3), huge, &SendOptions::default());
    assert_eq!(refused, Err(StartError::TooLarge { len: max + 1, max }));
}

#[test]
fn what_waits_ends_at_its_deadline_and_was_not_sent() {
    let mut alone = Alone::new(of_messages(1));
    alone.send(1, 10);
    let options = SendOptions::default().deadline(SECOND);
    let id = alone.endpoint.send(START, peer(1), Bytes::new(), &options).unwrap();
    let connect = alone.endpoint.connect(START, peer(2), &options).unwrap();
    let call = alone.endpoint.prepare(Some(SECOND), b"a request");
    alone.endpoint.call(START, peer(1), &call, &options).unwrap();
    let sleep = |alone: &mut Alone, until| {
        while let Some(next) = alone.endpoint.poll_timeout().filter(|at| *at <= until) {
            alone.now = next.max(alone.now);
            alone.endpoint.handle_timeout(alone.now);
            alone.transmit();
        }
    };
    sleep(&mut alone, START + SECOND - Duration::from_nanos(1));
    assert_eq!(alone.endpoint.poll_event(), None);
    sleep(&mut alone, START + SECOND);
    assert_eq!(alone.now, START + SECOND);
    let late = Rejection::NotStarted;
    let mut events = Vec::new();
    events.extend(core::iter::from_fn(|| alone.endpoint.poll_event()));
    assert!(events.contains(&Event::Ended(id, Outcome::Rejected(late))), "{events:?}");
    assert!(events.contains(&Event::Connected(connect, Err(late))), "{events:?}");
    let failed = Event::Answered(call.id(), Err(CallFailure::Rejected(late)));
    assert!(events.contains(&failed), "{events:?}");
    assert_eq!((alone.endpoint.unfinished(), events.len()), (1, 4), "the request's end, too");
}

#[test]
fn what_waits_can_be_cancelled_before_and_after_it_starts() {
    let mut pair = pair(of_messages(1));
    let first = pair.send(message(900_000, 1));
    let [early, late, last] = [2, 3, 4].map(|seed| pair.send(message(900_000, seed)));
    pair.a.endpoint.cancel(early);
    assert_eq!(pair.outcome(early), Outcome::Rejected(Rejection::Cancelled));
    assert!(matches!(pair.outcome(first), Outcome::Delivered(_)));
    pair.run_for(Duration::from_millis(1));
    pair.a.endpoint.cancel(late);
    assert!(matches!(pair.outcome(late), Outcome::Unknown(_)), "some of it was sent");
    assert!(matches!(pair.outcome(last), Outcome::Delivered(_)));
    assert_eq!(pair.b.inbox.len(), 2);
}

#[test]
fn a_close_ends_what_waits_except_responses() {
    let mut pair = Pair::new(Setup { b: of_messages(1), ..Setup::default() });
    let call = call(&mut pair, Side::A, SECOND);
    pair.run(|pair| pair.b.requests.len() == 1);
    let options = SendOptions::default().deadline(SECOND / 10);
    let now = pair.now;
    let nobody = peer(9);
    let busy = pair.b.endpoint.send(now, nobody, Bytes::new(), &options).unwrap();
    let plain = pair.send_from(Side::B, message(10, 1), SendOptions::default());
    let connect = pair.b.endpoint.connect(now, peer(8), &SendOptions::default()).unwrap();
    let request = pair.b.requests[0].clone();
    let reply = pair.b.endpoint.reply(now, &request, Some(b"yes"), &SendOptions::default());
    let reply = reply.unwrap();
    assert!(waits(plain) && waits(reply));
    pair.b.endpoint.close(now);
    pair.drain();
    assert_eq!(pair.b.outcomes[&plain], Outcome::Rejected(Rejection::Closing));
    assert_eq!(pair.b.connects[&connect], Err(Rejection::Closing));
    pair.settle();
    assert!(matches!(pair.b.outcomes[&busy], Outcome::Rejected(_)));
    assert!(matches!(pair.b.outcomes[&reply], Outcome::Delivered(_)));
    assert_eq!(pair.a.answers[&call].as_deref(), Ok(&b"yes"[..]));
}

#[test]
fn callers_learn_at_once_of_responses_that_wait_when_their_callee_stops() {
    let mut pair = Pair::new(Setup { b: of_messages(1), ..Setup::default() });
    let call = call(&mut pair, Side::A, 10 * SECOND);
    pair.run(|pair| pair.b.requests.len() == 1);
    let now = pair.now;
    let options = SendOptions::default();
    pair.b.endpoint.send(now, peer(9), Bytes::new(), &options).unwrap();
    let request = pair.b.requests[0].clone();
    let reply = pair.b.endpoint.reply(now, &request, Some(b"yes"), &options).unwrap();
    pair.b.endpoint.stop(now);
    pair.run(|pair| pair.a.answers.contains_key(&call));
    assert_eq!(pair.a.answers[&call], Err(CallFailure::Unanswered));
    assert_eq!(pair.b.outcomes[&reply], Outcome::Rejected(Rejection::Closing));
    assert!(pair.now.saturating_since(now) < Duration::from_millis(10), "at once");
}

fn call(pair: &mut Pair, from: Side, timeout: Duration) -> CallId {
    let now = pair.now;
    let to = if from == Side::A { Side::B } else { Side::A }.address(0);
    let endpoint = &mut pair.host(from).endpoint;
    let call = endpoint.prepare(Some(timeout), b"a request");
    endpoint.call(now, to, &call, &SendOptions::default()).unwrap();
    call.id()
}

#[test]
fn calls_beyond_the_limit_wait_and_messages_pass_them() {
    let mut pair = pair(of_messages(2));
    let calls: Vec<CallId> = (0..3).map(|_| call(&mut pair, Side::A, 10 * SECOND)).collect();
    pair.run_for(SECOND);
    assert_eq!(pair.b.requests.len(), 2);
    let now = pair.now;
    let to = Side::B.address(0);
    let refused = pair.a.endpoint.prepare(None, b"now");
    let at_once = SendOptions::default().wait(false);
    let refused = pair.a.endpoint.call(now, to, &refused, &at_once);
    assert_eq!(refused, Err(StartError::TooManyCalls { calls: 2 }));
    pair.deliver(message(10, 1));
    assert_eq!(pair.b.requests.len(), 2);

    let answered = pair.b.requests[0].clone();
    let now = pair.now;
    let options = SendOptions::default();
    pair.b.endpoint.reply(now, &answered, Some(b"yes"), &options).unwrap();
    pair.run(|pair| pair.b.requests.len() == 3);
    assert_eq!(pair.a.answers.len(), 1);
    let late = pair.b.requests[2].deadline.saturating_since(pair.now);
    assert!(late > 8 * SECOND && late < 9 * SECOND + SECOND / 10, "its wait counts: {late:?}");

    let [_, second, third] = calls[..] else { panic!("{calls:?}") };
    [second, third].into_iter().for_each(|call| pair.a.endpoint.cancel_call(pair.now, call));
    pair.settle();
    pair.a.endpoint.check_invariants();
}

#[test]
fn a_connect_that_waits_ends_once_its_peer_is_connected() {
    let mut pair = pair(of_messages(1));
    let message = pair.send(message(900_000, 1));
    let now = pair.now;
    let waiting = pair.a.endpoint.connect(now, Side::B.address(0), &SendOptions::default());
    let waiting = waiting.unwrap();
    pair.run(|pair| pair.a.connects.contains_key(&waiting));
    assert_eq!(pair.a.connects[&waiting], Ok(()));
    assert!(!pair.a.outcomes.contains_key(&message), "while the message is under way");
    pair.settle();
}

#[test]
fn a_message_to_one_more_peer_than_are_remembered_waits_for_a_place() {
    let tuning = Tuning { max_peers: Some(2), ..Tuning::default() };
    let mut alone = Alone::new(Config { tuning, ..Config::default() });
    let first = alone.send(1, 10);
    alone.send(2, 10);
    let ids = [alone.send(3, 10), alone.send(4, 10), alone.send(3, 10)];
    assert!(ids.into_iter().all(waits));
    assert!(!waits(alone.send(2, 10)), "it needs no place");
    alone.cancel(first);
    assert_eq!(alone.under_way(), [(peer(2), 2), (peer(3), 2)]);
    [ids[0], ids[2]].into_iter().for_each(|id| alone.cancel(id));
    assert_eq!(alone.under_way(), [(peer(2), 2), (peer(4), 1)]);
}

#[test]
fn the_line_is_bounded_and_one_peer_leaves_others_a_share() {
    let config = Config { memory: 1 << 20, max_message: 50_000, ..of_messages(1) };
    let waiting = config.limits().waiting;
    let mut alone = Alone::new(config);
    let share = waiting - waiting / 8;
    for _ in 0..=share {
        alone.send(1, 10);
    }
    let full = Err(StartError::Full { messages: 1, bytes: 10 });
    let send = |alone: &mut Alone, to| {
        alone.endpoint.send(START, peer(to), Bytes::new(), &SendOptions::default())
    };
    assert_eq!(send(&mut alone, 1), full);
    let others = (2..).take_while(|to| *to < 250 && send(&mut alone, *to).is_ok()).count();
    assert_eq!(others, waiting - share, "one of each");
    assert_eq!(alone.endpoint.unfinished(), 1 + waiting);
    alone.transmit();
}

#[test]
fn a_peer_that_does_not_answer_leaves_slots_and_bytes_to_others() {
    for config in [of_messages(80), of_bytes(8_000)] {
        let mut alone = Alone::new(config);
        let mut of_one: Vec<_> = (0..200).map(|_| alone.send(1, 100)).collect();
        let started = of_one.iter().filter(|id| !waits(**id)).count();
        assert_eq!(started, 70, "seven eighths");
        assert!(!waits(alone.send(2, 100)) && !waits(alone.send(3, 100)));
        alone.cancel(of_one.remove(0));
        assert_eq!(alone.under_way()[0], (peer(1), 69), "it has more than its share");
        of_one.drain(..10).for_each(|id| alone.cancel(id));
        let (_, under_way) = alone.under_way()[0];
        assert!((68..=69).contains(&under_way), "as many as it may: {under_way}");
    }
}
