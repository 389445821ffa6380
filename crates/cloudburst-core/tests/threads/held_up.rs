//! A process that was held up: what came in meanwhile is read before a deadline is believed, also
//! what another thread had taken from the sockets when it was held up.

use cloudburst_core::burst::{Engine, PacketIo};
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::{LocalError, Outcome};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Endpoint, SendOptions, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::{Kind, Role};
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 7000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7000);
const DEADLINE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Clock {
    nanos: AtomicU64,
    /// The thread that takes packets is held up with the next one in hand.
    holds: AtomicBool,
    /// How often the sending thread has looked for packets.
    looks: AtomicU64,
}

struct Wire {
    clock: Arc<Clock>,
    inbox: Receiver<Vec<u8>>,
    outbox: Sender<Vec<u8>>,
    ends: Receiver<()>,
}

impl PacketIo for Wire {
    type Ready = ();

    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.nanos.load(SeqCst))
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let _ = self.outbox.send(packet.to_vec());
        }
        Ok(())
    }

    fn wait(&self, _: Duration) {
        match std::thread::current().name() {
            Some("cbrst-recv") => drop(self.ends.recv()),
            Some("cbrst-send") => drop(self.clock.looks.fetch_add(1, SeqCst)),
            _ => {}
        }
    }

    fn take(&self, (): (), deliver: &mut dyn FnMut(Via, &mut [u8])) {
        for mut packet in self.inbox.try_iter() {
            // Time passes for everybody, and the sending thread wakes first.
            if self.clock.holds.load(SeqCst) {
                self.clock.nanos.fetch_add(10 * DEADLINE.as_nanos() as u64, SeqCst);
                while self.clock.looks.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
            }
            deliver(Via { egress: 0, remote: SERVER.into() }, &mut packet);
        }
    }

    fn wake(&self) {}
}

fn endpoint(seed: u8) -> Endpoint {
    let config = Config { port: 7000, ..Config::default() };
    let (security, seed) = (Security::pre_shared([7; 32]), Seed::new([seed; 32]));
    Endpoint::new(config, &security, seed, Box::new(Egresses(1))).unwrap()
}

#[test]
fn a_stop_that_another_thread_has_in_hand_is_believed_before_the_deadline() {
    let clock = Arc::new(Clock { nanos: AtomicU64::new(1_000_000_000), ..Clock::default() });
    let (to_client, inbox) = unbounded();
    let (outbox, from_client) = unbounded();
    let (end, ends) = unbounded::<()>();
    let wire = Wire { clock: clock.clone(), inbox, outbox, ends };
    let engine = Engine::start(endpoint(1), wire, drop).unwrap();
    let (ended, outcomes) = unbounded();
    let options = SendOptions { deadline: Some(DEADLINE), ..SendOptions::default() };
    let on_end = Box::new(move |outcome| ended.send(outcome).unwrap());
    engine.send(SERVER.into(), Role::Plain, "a message".into(), &options, on_end).unwrap();

    let (mut server, now) = (endpoint(2), Instant::from_nanos(1_000_000_000));
    let via = Via { egress: 0, remote: SocketAddr::from(CLIENT) };
    // HELLO and its answer, then the symbol and its STOP.
    while clock.looks.load(SeqCst) == 0 && outcomes.is_empty() {
        for mut packet in from_client.try_iter() {
            server.handle_datagram(now, via, &mut packet);
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
            for packet in buffer.chunks(transmit.segment_size) {
                clock.holds.store(Kind::of(packet) == Ok(Kind::Stop), SeqCst);
                to_client.send(packet.to_vec()).unwrap();
            }
            buffer.clear();
            engine.take();
        }
    }
    let outcome = outcomes.recv_timeout(Duration::from_secs(20)).unwrap();
    // Before anything may fail: the engine's end waits for its threads.
    drop(end);
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}
