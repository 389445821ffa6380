//! The engine and the single-threaded `Transceiver`, given the same inputs at the same times, send the
//! same packets, byte for byte, and report the same events.

use bytes::Bytes;
use cloudburst_core::burst::{Datagrams, Engine, PacketIo};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{LocalError, Outcome};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Event, SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::{Seed, SplitMix64};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

const SELF: ([u8; 4], u16) = ([10, 0, 0, 1], 7000);
const PEER: ([u8; 4], u16) = ([10, 0, 0, 2], 7000);

type Packet = (Via, Vec<u8>);

/// A clock, and a gate at which the engine's sending thread waits until the end, because it sleeps
/// by another clock.
#[derive(Default)]
struct Stage {
    nanos: AtomicU64,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Stage {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(SeqCst))
    }

    fn set_open(&self, open: bool) {
        *self.is_open.lock().unwrap() = open;
        self.opened.notify_all();
    }

    fn pass_gate(&self) {
        let open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

struct Wire {
    stage: Arc<Stage>,
    inbox: Receiver<Packet>,
    outbox: Sender<Packet>,
    ends: Receiver<()>,
}

impl PacketIo for Wire {
    type Ready = ();

    fn now(&self) -> Instant {
        if std::thread::current().name() == Some("cbrst-send") {
            self.stage.pass_gate();
        }
        self.stage.now()
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let _ = self.outbox.send((transmit.via, packet.to_vec()));
        }
        Ok(())
    }

    fn wait(&self, _: Duration) {
        if std::thread::current().name() == Some("cbrst-recv") {
            let _ = self.ends.recv();
        }
    }

    fn take(&self, (): (), deliver: &mut dyn FnMut(Datagrams<'_>)) {
        for (via, mut packet) in self.inbox.try_iter() {
            deliver(Datagrams::one(via, &mut packet));
        }
    }

    fn wake(&self) {}
}

fn endpoint(seed: u8) -> Transceiver {
    let config = Config { capacity: 20_000_000_000.into(), ..Config::default() };
    let security = Security::pre_shared([7; 32]);
    let seed = Seed::new([seed; 32]);
    Transceiver::new(
        Instant::ZERO,
        config,
        ListenPorts::one(7000),
        &security,
        seed,
        Box::new(Egresses(4)),
    )
    .unwrap()
}

/// The events that either application has seen.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Message(Bytes),
    Request(Bytes),
    Answer(String),
    Ended(Outcome),
}

/// An endpoint, an engine with the same configuration, and a peer of both.
struct Twins {
    /// Ends the receiving thread's wait, before the engine ends.
    _end: Sender<()>,
    stage: Arc<Stage>,
    endpoint: Transceiver,
    engine: Engine<Wire>,
    to_engine: Sender<Packet>,
    from_engine: Receiver<Packet>,
    engine_saw: Receiver<Seen>,
    engine_sees: Sender<Seen>,
    saw: Vec<Seen>,
    peer: Transceiver,
    to_peer: Vec<Packet>,
    to_self: Vec<Packet>,
}

impl Twins {
    fn new() -> Self {
        let stage = Arc::new(Stage { nanos: AtomicU64::new(1_000_000_000), ..Stage::default() });
        let (to_engine, inbox) = unbounded();
        let (outbox, from_engine) = unbounded();
        let (end, ends) = unbounded();
        let wire = Wire { stage: stage.clone(), inbox, outbox, ends };
        let (engine_sees, engine_saw) = unbounded();
        Self {
            engine: Engine::start(endpoint(1), wire, |_| {}).unwrap(),
            endpoint: endpoint(1),
            stage,
            to_engine,
            from_engine,
            engine_saw,
            engine_sees,
            saw: Vec::new(),
            peer: endpoint(2),
            to_peer: Vec::new(),
            to_self: Vec::new(),
            _end: end,
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let now = self.stage.now();
        let options = SendOptions::default();
        self.endpoint.send(now, PEER.into(), bytes.clone().into(), &options).unwrap();
        let sees = self.engine_sees.clone();
        let on_end = Box::new(move |outcome| drop(sees.send(Seen::Ended(outcome))));
        self.engine.send(PEER.into(), Role::Plain, bytes.into(), &options, on_end).unwrap();
        self.compare(false);
    }

    fn call(&mut self, bytes: &[u8]) {
        let now = self.stage.now();
        let options = SendOptions::default();
        let request = self.endpoint.prepare(None, bytes);
        self.endpoint.call(now, PEER.into(), &request, &options).unwrap();
        let request = self.engine.calls(|calls| calls.prepare(None, bytes));
        let sees = self.engine_sees.clone();
        let on_answer =
            Box::new(move |answer| drop(sees.send(Seen::Answer(format!("{answer:?}")))));
        self.engine.call(PEER.into(), &request, &options, on_answer).unwrap();
        self.compare(false);
    }

    /// Packets arrive, and both applications respond to them.
    fn take(&mut self, packets: &[Packet]) {
        for (via, packet) in packets {
            self.to_engine.send((*via, packet.clone())).unwrap();
            self.endpoint.handle_datagram(self.stage.now(), *via, &mut packet.clone());
        }
        self.engine.take();
        let readable = self.events();
        self.compare(readable);
        if readable {
            self.respond();
            self.engine.flush();
            self.compare(false);
        }
    }

    /// Both applications take messages, and reply to requests.
    fn respond(&mut self) {
        let now = self.stage.now();
        let options = SendOptions::default();
        while let Some(message) = self.endpoint.recv() {
            self.saw.push(Seen::Message(message.bytes));
        }
        while let Some(message) = self.engine.recv() {
            self.engine_sees.send(Seen::Message(message.bytes)).unwrap();
        }
        while let Some(request) = self.endpoint.recv_request(now) {
            self.saw.push(Seen::Request(request.bytes.clone()));
            self.endpoint.reply(now, &request, Some(&request.bytes), &options).unwrap();
            let same = self.engine.recv_request(|_| Box::new(|| {})).unwrap();
            self.engine_sees.send(Seen::Request(same.bytes.clone())).unwrap();
            let frame = cloudburst_core::proto::response(same.call, Some(&same.bytes));
            let role = Role::Response;
            let sees = self.engine_sees.clone();
            let on_end = Box::new(move |outcome| drop(sees.send(Seen::Ended(outcome))));
            self.engine.send(same.peer, role, frame, &options, on_end).unwrap();
            self.engine.release(same.id());
            self.compare(false);
        }
    }

    /// Advances to the next timer of either end, or by `step`.
    fn advance(&mut self, step: Duration) {
        let own = self.endpoint.poll_timeout();
        let next = [own, self.peer.poll_timeout()].into_iter().flatten().min();
        let to = next.unwrap_or(Instant::from_nanos(u64::MAX)).min(self.stage.now() + step);
        self.stage.nanos.fetch_max(to.as_nanos(), SeqCst);
        let now = self.stage.now();
        self.peer.handle_timeout(now);
        if own.is_none_or(|at| at > now) {
            return;
        }
        self.endpoint.handle_timeout(now);
        self.events();
        self.engine.take();
        self.engine.run_sender();
        self.compare(false);
    }

    /// Whether a message is waiting to be received.
    fn events(&mut self) -> bool {
        let mut readable = false;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Readable(_) => readable = true,
                Event::Answered(_, answer) => {
                    readable = true;
                    self.saw.push(Seen::Answer(format!("{answer:?}")));
                }
                // The engine does not report how requests are delivered.
                Event::Ended(_, outcome) => self.saw.push(Seen::Ended(outcome)),
                other => panic!("unexpected event {other:?}"),
            }
        }
        readable
    }

    /// The engine sends all packets of the endpoint too, in the same order.
    fn compare(&mut self, symbols_alone: bool) {
        let now = self.stage.now();
        let mut buffer = Vec::new();
        loop {
            let transmit = if symbols_alone {
                self.endpoint.poll_symbols(now, &mut buffer)
            } else {
                self.endpoint.poll_transmit(now, &mut buffer)
            };
            let Some(transmit) = transmit else { break };
            for packet in buffer.chunks(transmit.segment_size) {
                let same = self.from_engine.try_recv().unwrap_or_else(|_| {
                    // The caller has sent its share, and leaves the rest to the sending thread.
                    self.engine.run_sender();
                    self.from_engine.try_recv().expect("the engine sends it")
                });
                assert_eq!(same, (transmit.via, packet.to_vec()));
                let via = Via { egress: 0, local: None, remote: SocketAddr::from(SELF) };
                self.to_peer.push((via, packet.to_vec()));
            }
            buffer.clear();
        }
        assert_eq!(self.from_engine.try_recv().ok(), None, "the engine sends nothing else");
        self.endpoint.check_invariants();
        self.engine.check_invariants();
    }

    /// The peer receives packets, answers them, and echoes requests.
    fn serve(&mut self, packets: &[Packet]) {
        let now = self.stage.now();
        let options = SendOptions::default();
        for (via, packet) in packets {
            self.peer.handle_datagram(now, *via, &mut packet.clone());
        }
        while self.peer.poll_event().is_some() {}
        while self.peer.recv().is_some() {}
        while let Some(request) = self.peer.recv_request(now) {
            self.peer.reply(now, &request, Some(&request.bytes), &options).unwrap();
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = self.peer.poll_transmit(now, &mut buffer) {
            for packet in buffer.chunks(transmit.segment_size) {
                let via = Via { egress: 0, local: None, remote: SocketAddr::from(PEER) };
                self.to_self.push((via, packet.to_vec()));
            }
            buffer.clear();
        }
    }

    fn unfinished(&self) -> usize {
        self.endpoint.unfinished() + self.peer.unfinished()
    }
}

impl Drop for Twins {
    fn drop(&mut self) {
        // Dropping the engine waits for its threads.
        self.stage.set_open(true);
    }
}

#[test]
fn the_same_inputs_at_the_same_times_make_the_same_packets_and_events() {
    for seed in 0..20 {
        let mut rng = SplitMix64::new(seed);
        let mut twins = Twins::new();
        for step in 0..400 {
            let busy = step < 200;
            match rng.below(10) {
                0 if busy => twins.send(vec![step as u8; rng.below(20_000) as usize]),
                1 if busy => twins.call(&vec![step as u8; rng.below(5_000) as usize]),
                2 if busy => {
                    let bytes = vec![step as u8; rng.below(5_000) as usize];
                    let now = twins.stage.now();
                    let options = SendOptions::default();
                    if rng.below(2) == 0 {
                        let call = twins.peer.prepare(None, &bytes);
                        twins.peer.call(now, SELF.into(), &call, &options).unwrap();
                    } else {
                        twins.peer.send(now, SELF.into(), bytes.into(), &options).unwrap();
                    }
                }
                3 | 4 => twins.advance(Duration::from_micros(1 + rng.below(2_000))),
                5..=7 => {
                    let mut packets = core::mem::take(&mut twins.to_peer);
                    packets.retain(|_| rng.below(8) > 0);
                    twins.serve(&packets);
                }
                _ => {
                    let mut packets = core::mem::take(&mut twins.to_self);
                    packets.retain(|_| rng.below(8) > 0);
                    twins.take(&packets);
                }
            }
        }
        while twins.unfinished() > 0 {
            let packets = core::mem::take(&mut twins.to_peer);
            twins.serve(&packets);
            let packets = core::mem::take(&mut twins.to_self);
            twins.take(&packets);
            twins.advance(Duration::from_millis(1));
        }
        twins.stage.set_open(true);
        let engine_saw: Vec<Seen> = twins.engine_saw.try_iter().collect();
        let saw = |seen: &[Seen], what: fn(&&Seen) -> bool| {
            seen.iter().filter(what).cloned().collect::<Vec<_>>()
        };
        for what in [
            |seen: &&Seen| matches!(seen, Seen::Message(_)),
            |seen: &&Seen| matches!(seen, Seen::Request(_)),
            |seen: &&Seen| matches!(seen, Seen::Answer(_)),
        ] {
            assert_eq!(saw(&engine_saw, what), saw(&twins.saw, what), "seed {seed}");
        }
        assert!(twins.saw.len() > 20, "seed {seed}: {}", twins.saw.len());
        assert_eq!(twins.engine.counters(), twins.endpoint.counters(), "seed {seed}");
    }
}
