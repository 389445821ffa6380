//! Packets taken by callers that wait for them, with a clock that the test sets. The threads of the
//! engine take none unless a test lets them.

use crate::packets;
use cloudburst_core::burst::{Datagrams, Driven, Engine, Flush, PacketIo};
use cloudburst_core::config::{Config, ListenPorts, Security, Tuning};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 7000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7000);
/// How long one poll of the sockets takes.
const POLL_TIME: Duration = Duration::from_millis(1);

#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }
}

struct Wire {
    clock: Clock,
    inbox: Receiver<Vec<u8>>,
    outbox: Sender<Vec<u8>>,
    /// The receiving thread waits here until the test ends. If the test lets it through, it takes
    /// the packets, and waits here again before it can report them.
    gate: Receiver<()>,
    is_open: AtomicBool,
    timer_sets: Arc<AtomicUsize>,
}

impl PacketIo for Wire {
    type Ready = ();

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let _ = self.outbox.send(packet.to_vec());
        }
        Ok(())
    }

    fn wait(&self, timeout: Duration) {
        if self.inbox.is_empty() && !is_receiving_thread() {
            self.clock.advance(if timeout.is_zero() { POLL_TIME } else { timeout });
        }
    }

    fn take(&self, (): (), _: bool, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        for mut packet in self.inbox.try_iter() {
            let via = Via { egress: 0, local: None, remote: CLIENT.into() };
            deliver(Datagrams::one(via, &mut packet));
        }
        if is_receiving_thread() {
            self.is_open.store(false, Ordering::SeqCst);
            let _ = self.gate.recv();
        }
    }

    fn wake(&self) {}

    fn set_timer(&self, _: Option<Instant>) {
        self.timer_sets.fetch_add(1, Ordering::SeqCst);
    }

    fn is_ready(&self) -> bool {
        let open = self.is_open.load(Ordering::SeqCst) || self.gate.recv().is_ok();
        self.is_open.store(open, Ordering::SeqCst);
        open
    }

    fn watch(&self) {
        self.is_ready();
    }

    fn watch_timer(&self) {}
}

fn is_receiving_thread() -> bool {
    std::thread::current().name() == Some("cbrst-recv")
}

struct Server {
    clock: Clock,
    inbox: Sender<Vec<u8>>,
    outbox: Receiver<Vec<u8>>,
    /// Dropped before the engine, which waits for its threads.
    gate: Sender<()>,
    timer_sets: Arc<AtomicUsize>,
    engine: Arc<Engine<Wire>>,
}

impl Server {
    /// Delivers the client's HELLO and OPEN, and their answers.
    fn meet(&self, client: &mut Transceiver) {
        for _ in 0..2 {
            let packet = packets(client, self.clock.now()).swap_remove(0);
            self.inbox.send(packet).unwrap();
            assert!(self.engine.take());
            self.answer(client);
        }
    }

    /// Delivers the server's packets.
    fn answer(&self, client: &mut Transceiver) {
        let via = Via { egress: 0, local: None, remote: SERVER.into() };
        for mut packet in self.outbox.try_iter() {
            client.handle_datagram(self.clock.now(), via, &mut packet);
        }
    }
}

fn endpoint(seed: u8, config: Config) -> Transceiver {
    let security = Security::pre_shared([7; 32]);
    let seed = Seed::new([seed; 32]);
    Transceiver::new(config, ListenPorts::one(SERVER.1), &security, seed, Box::new(Egresses(1)))
        .unwrap()
}

fn server(config: Config, on_readable: impl Fn(Role) + Send + Sync + 'static) -> Server {
    let clock = Clock(Arc::new(AtomicU64::new(1_000_000_000)));
    let (inbox, taken) = unbounded();
    let (sent, outbox) = unbounded();
    let (gate, waits) = unbounded();
    let timer_sets = Arc::new(AtomicUsize::new(0));
    let wire = Wire {
        clock: clock.clone(),
        inbox: taken,
        outbox: sent,
        gate: waits,
        is_open: AtomicBool::new(false),
        timer_sets: timer_sets.clone(),
    };
    let engine = Engine::start(endpoint(2, config), wire, on_readable).unwrap();
    Server { clock, inbox, outbox, gate, timer_sets, engine: Arc::new(engine) }
}

#[test]
fn a_thread_that_takes_packets_serves_expired_timers() {
    let config = Config::default();
    let server = server(config.clone(), drop);
    let mut client = endpoint(1, config.clone());
    let to = SocketAddr::from(SERVER);
    let options = SendOptions::default();
    client.send(server.clock.now(), to, vec![7; 93_000].into(), &options).unwrap();
    server.meet(&mut client);
    // One symbol, and no other.
    let symbol = packets(&mut client, server.clock.now()).swap_remove(0);
    server.inbox.send(symbol).unwrap();
    assert!(server.engine.take());
    let counters = server.engine.counters().receiver;
    assert_eq!((counters.symbols_received, counters.decoders_expired), (1, 0));
    server.clock.advance(config.tuning.decode_timeout + Duration::from_secs(1));
    server.engine.take();
    assert_eq!(server.engine.counters().receiver.decoders_expired, 1);
}

#[test]
fn busy_polling_is_part_of_the_time_to_wait() {
    let busy_poll = Duration::from_millis(20);
    let server = server(Config { busy_poll, ..Config::default() }, drop);
    server.inbox.send(vec![0; 100]).unwrap();
    let mut checks = 0;
    let taken = server.engine.drive(None, || {
        checks += 1;
        checks > 1
    });
    assert_eq!(taken, Driven::Done, "it came at once, so the next may come at once too");
    let until = server.clock.now() + busy_poll;
    assert_eq!(server.engine.drive(Some(until), || false), Driven::TimedOut);
    let late = server.clock.now().saturating_since(until);
    assert!(late <= 2 * POLL_TIME, "{late:?}");
}

#[test]
fn any_time_to_busy_poll_is_fine() {
    for busy_poll in [Duration::ZERO, Duration::MAX] {
        let server = server(Config { busy_poll, ..Config::default() }, drop);
        let until = server.clock.now() + POLL_TIME;
        assert_eq!(server.engine.drive(Some(until), || false), Driven::TimedOut);
    }
}

#[test]
fn a_busy_polling_caller_notices_at_once_that_another_thread_finished_its_send() {
    let busy_poll = Duration::from_secs(3);
    let server = server(Config { busy_poll, ..Config::default() }, drop);
    server.inbox.send(vec![0; 100]).unwrap();
    let mut checks = 0;
    let begun = server.clock.now();
    // The first packet comes at once, so the thread busy-polls for the next ones.
    let driven = server.engine.drive(None, || {
        checks += 1;
        checks >= 6
    });
    assert_eq!(driven, Driven::Done);
    let took = server.clock.now().saturating_since(begun);
    assert!(took <= 6 * POLL_TIME, "{took:?}");
}

#[test]
fn packets_taken_by_another_thread_are_noticed_before_a_caller_sleeps() {
    for deferred in [true, false] {
        let busy_poll = Duration::from_millis(20);
        let config = Config { busy_poll, ..Config::default() };
        let server = server(config.clone(), drop);
        let mut client = endpoint(1, config);
        let to = SocketAddr::from(SERVER);
        let mut send = |bytes: &'static str| {
            let options = SendOptions::default();
            client.send(server.clock.now(), to, bytes.into(), &options).unwrap();
            if bytes == "one" {
                server.meet(&mut client);
            }
            server.inbox.send(packets(&mut client, server.clock.now()).swap_remove(0)).unwrap();
        };
        send("one");
        let readable = || server.engine.readable(Role::Plain);
        assert_eq!(server.engine.drive(None, || readable() == 1), Driven::Done);
        if !deferred {
            server.engine.flush();
        }
        send("two");
        server.gate.send(()).unwrap();
        while readable() < 2 {
            std::thread::yield_now();
        }
        let begun = server.clock.now();
        assert_eq!(server.engine.drive(None, || readable() == 2), Driven::Done);
        assert_eq!(server.clock.now(), begun);
    }
}

#[test]
fn a_callback_for_a_message_may_take_it_and_reply() {
    let engine = Arc::new(OnceLock::<Weak<Engine<Wire>>>::new());
    let (delivered, messages) = unbounded();
    // Of two messages that arrive at once, one must wait until the other is taken.
    let config = Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let woken = engine.clone();
    let server = server(config.clone(), move |_| {
        let engine = woken.get().unwrap().upgrade().unwrap();
        let message = engine.recv().unwrap();
        let role = Role::Plain;
        let options = SendOptions::default();
        let flush = Flush::ByDriver;
        engine.send(message.peer, role, "a reply".into(), &options, flush, Box::new(drop)).unwrap();
        delivered.send(message.bytes).unwrap();
    });
    engine.set(Arc::downgrade(&server.engine)).unwrap();
    let mut client = endpoint(1, config);
    let to = SocketAddr::from(SERVER);
    for bytes in ["one", "two"] {
        let options = SendOptions::default();
        client.send(server.clock.now(), to, bytes.into(), &options).unwrap();
    }
    server.meet(&mut client);
    for symbol in packets(&mut client, server.clock.now()) {
        server.inbox.send(symbol).unwrap();
    }
    let taking = server.engine.clone();
    let taken = unbounded();
    let thread = std::thread::spawn(move || taken.0.send(taking.take()).unwrap());
    assert_eq!(taken.1.recv_timeout(Duration::from_secs(20)), Ok(true), "it does not hang");
    thread.join().unwrap();
    let mut all: Vec<_> = messages.try_iter().collect();
    // Another thread may report the second one.
    all.sort();
    assert_eq!(all, ["one", "two"]);
    server.engine.flush();
    server.answer(&mut client);
    assert_eq!(client.counters().sender.delivered, 2);
}

#[test]
fn a_callback_for_a_message_may_stop_the_engine() {
    let engine = Arc::new(OnceLock::<Weak<Engine<Wire>>>::new());
    let gate = Arc::new(Mutex::new(None));
    let woken = engine.clone();
    let opens = gate.clone();
    let config = Config::default();
    let Server { clock, inbox, outbox, gate: closed, engine: server, .. } =
        server(config.clone(), move |_| {
            // The receiving thread no longer waits at the gate, so that `stop` can join it.
            drop(opens.lock().unwrap().take());
            woken.get().unwrap().upgrade().unwrap().stop();
        });
    *gate.lock().unwrap() = Some(closed);
    engine.set(Arc::downgrade(&server)).unwrap();
    let mut client = endpoint(1, config);
    let now = clock.now();
    client.send(now, SERVER.into(), "the last one".into(), &SendOptions::default()).unwrap();
    let taking = server.clone();
    let taken = unbounded();
    let thread = std::thread::spawn(move || {
        let via = Via { egress: 0, local: None, remote: SERVER.into() };
        for _ in 0..2 {
            inbox.send(packets(&mut client, now).swap_remove(0)).unwrap();
            taking.take();
            let mut answer = outbox.try_recv().unwrap();
            client.handle_datagram(now, via, &mut answer);
        }
        inbox.send(packets(&mut client, now).swap_remove(0)).unwrap();
        taken.0.send(taking.take()).unwrap();
    });
    assert_eq!(taken.1.recv_timeout(Duration::from_secs(20)), Ok(true), "it does not hang");
    thread.join().unwrap();
}

#[test]
fn two_that_end_the_endpoint_at_once_do_not_wait_for_each_other() {
    let engine = Arc::new(OnceLock::<Weak<Engine<Wire>>>::new());
    let (reported, reports) = unbounded();
    let woken = engine.clone();
    let config = Config::default();
    let server = server(config.clone(), move |_| {
        reported.send(()).unwrap();
        let engine = woken.get().unwrap().upgrade().unwrap();
        while engine.drive(Some(Instant::ZERO), || false) != Driven::Stopped {
            std::thread::yield_now();
        }
        engine.stop();
    });
    engine.set(Arc::downgrade(&server.engine)).unwrap();
    let mut client = endpoint(1, config);
    let now = server.clock.now();
    client.send(now, SERVER.into(), "a message".into(), &SendOptions::default()).unwrap();
    server.meet(&mut client);
    let symbol = packets(&mut client, now).swap_remove(0);
    let Server { inbox, gate, engine, .. } = server;
    inbox.send(symbol).unwrap();
    // The receiving thread takes the message, reports it, and then waits there until the end.
    gate.send(()).unwrap();
    drop(gate);
    reports.recv_timeout(Duration::from_secs(20)).unwrap();
    let (ended, ends) = unbounded();
    std::thread::spawn(move || {
        engine.stop();
        ended.send(()).unwrap();
    });
    ends.recv_timeout(Duration::from_secs(20)).expect("it does not hang");
}

#[test]
fn answers_wait_for_the_application_and_the_timer_is_not_set_for_each_message() {
    let config = Config::default();
    let server = server(config.clone(), drop);
    let mut client = endpoint(1, config);
    let now = server.clock.now();
    let mut sets = Vec::new();
    for number in 0..20 {
        client.send(now, SERVER.into(), "a message".into(), &SendOptions::default()).unwrap();
        if number == 0 {
            server.meet(&mut client);
        }
        for packet in packets(&mut client, now) {
            server.inbox.send(packet).unwrap();
        }
        assert!(server.engine.take());
        assert!(server.outbox.is_empty(), "the application has not flushed yet");
        server.engine.flush();
        server.answer(&mut client);
        sets.push(server.timer_sets.load(Ordering::SeqCst));
    }
    assert_eq!(client.counters().sender.delivered, 20);
    assert_ne!(sets[0], 0, "it is set for the first message");
    assert_eq!(sets.first(), sets.last());
}

#[test]
fn a_call_that_has_ended_sends_nothing_when_it_is_cancelled() {
    let caller = server(Config::default(), drop);
    let now = caller.clock.now();
    let mut callee = endpoint(1, Config::default());
    let (answered, answers) = unbounded();
    let options = SendOptions::default();
    let call = caller.engine.calls(|calls| calls.prepare(None, b"a request"));
    let on_answer = Box::new(move |result| answered.send(result).unwrap());
    caller.engine.call(CLIENT.into(), &call, &options, Flush::ByDriver, on_answer).unwrap();
    let deliver = |callee: &mut Transceiver| {
        for packet in packets(callee, now) {
            caller.inbox.send(packet).unwrap();
        }
        caller.engine.take();
    };
    let request = loop {
        caller.answer(&mut callee);
        if let Some(request) = callee.recv_request(now) {
            break request;
        }
        deliver(&mut callee);
    };
    callee.reply(now, &request, Some(b"a response"), &options).unwrap();
    deliver(&mut callee);
    let answer = answers.try_recv().unwrap().unwrap();
    caller.engine.cancel_call(call.id());
    let deferred = caller.outbox.is_empty();
    caller.engine.flush();
    let sent = caller.outbox.len();
    assert_eq!(answer, "a response");
    assert!(deferred, "the STOP waits for the next request");
    assert_eq!(sent, 1, "or for a flush");
}
