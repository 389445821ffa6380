//! Packets taken by whoever waits for them, with a clock that the test sets: no thread of the engine
//! ever takes any.

#![allow(clippy::unwrap_used, reason = "a test")]

use cloudburst_core::burst::{Driven, Engine, PacketIo};
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::{Lanes, Via};
use cloudburst_core::proto::{Endpoint, SendOptions, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 7000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7000);
/// What looking for packets without waiting takes.
const LOOK: Duration = Duration::from_millis(1);

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
    /// The receiving thread waits here, until the test ends.
    gate: Receiver<()>,
}

impl PacketIo for Wire {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let _ = self.outbox.send(packet.to_vec());
        }
        Ok(())
    }

    fn receive(&self, timeout: Duration, deliver: &mut dyn FnMut(Via, &mut [u8])) {
        if std::thread::current().name() == Some("cbrst-recv") {
            let _ = self.gate.recv();
            return;
        }
        let mut came = false;
        for mut packet in self.inbox.try_iter() {
            deliver(Via { lane: 0, remote: CLIENT.into() }, &mut packet);
            came = true;
        }
        if !came {
            self.clock.advance(if timeout.is_zero() { LOOK } else { timeout });
        }
    }

    fn wake(&self) {}
}

struct Server {
    clock: Clock,
    inbox: Sender<Vec<u8>>,
    outbox: Receiver<Vec<u8>>,
    /// Before the engine, whose end waits for its threads.
    _gate: Sender<()>,
    engine: Engine<Wire>,
}

fn endpoint(seed: u8, config: Config) -> Endpoint {
    let (security, seed) = (Security::pre_shared([7; 32]), Seed::new([seed; 32]));
    Endpoint::new(config, &security, seed, Box::new(Lanes(1))).unwrap()
}

fn server(config: Config) -> Server {
    let clock = Clock(Arc::new(AtomicU64::new(1_000_000_000)));
    let (inbox, taken) = unbounded();
    let (sent, outbox) = unbounded();
    let (gate, waits) = unbounded();
    let wire = Wire { clock: clock.clone(), inbox: taken, outbox: sent, gate: waits };
    let engine = Engine::start(endpoint(2, config), wire, drop).unwrap();
    Server { clock, inbox, outbox, _gate: gate, engine }
}

/// The packets that `client` has to send.
fn packets(client: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let (mut packets, mut buffer) = (Vec::new(), Vec::new());
    while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
        packets.extend(buffer.chunks(transmit.segment_size).map(<[u8]>::to_vec));
        buffer.clear();
    }
    packets
}

#[test]
fn whoever_takes_packets_forgets_what_has_expired() {
    let config = Config { port: SERVER.1, ..Config::default() };
    let server = server(config.clone());
    let (mut client, to) = (endpoint(1, config.clone()), SocketAddr::from(SERVER));
    let options = SendOptions::default();
    client.send(server.clock.now(), to, vec![7; 93_000].into(), &options).unwrap();
    let hello = packets(&mut client, server.clock.now()).swap_remove(0);
    server.inbox.send(hello).unwrap();
    assert!(server.engine.take());
    let mut ack = server.outbox.try_recv().unwrap();
    client.handle_datagram(server.clock.now(), Via { lane: 0, remote: to }, &mut ack);
    // One symbol, and no other.
    let symbol = packets(&mut client, server.clock.now()).swap_remove(0);
    server.inbox.send(symbol).unwrap();
    assert!(server.engine.take());
    let counters = server.engine.counters().receiver;
    assert_eq!((counters.symbols_received, counters.decoders_expired), (1, 0));
    server.clock.advance(config.decode_timeout + Duration::from_secs(1));
    server.engine.take();
    assert_eq!(server.engine.counters().receiver.decoders_expired, 1);
}

#[test]
fn looking_for_packets_is_part_of_the_time_to_wait() {
    let busy_poll = Duration::from_millis(20);
    let server = server(Config { port: SERVER.1, busy_poll, ..Config::default() });
    server.inbox.send(vec![0; 100]).unwrap();
    let mut asked = 0;
    let taken = server.engine.drive(None, || {
        asked += 1;
        asked > 1
    });
    assert_eq!(taken, Driven::Done, "it came at once, so the next may come as soon");
    let until = server.clock.now() + busy_poll;
    assert_eq!(server.engine.drive(Some(until), || false), Driven::TimedOut);
    let late = server.clock.now().saturating_since(until);
    assert!(late <= 2 * LOOK, "{late:?}");
}
