//! The two threads, over channels instead of sockets: messages that are reported as delivered are
//! in the application's queue, whichever thread sends the STOP, and every send ends.

use cloudburst_core::burst::{Datagrams, Engine, EngineEvent, PacketIo};
use cloudburst_core::config::{BurstPolicy, Config, ListenPorts, Security, Tuning};
use cloudburst_core::error::{LocalError, Outcome};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::time::Duration;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::net::SocketAddr;
use std::sync::Arc;

type Packet = (Via, Vec<u8>);

enum Arrival {
    Packet(Packet),
    Wake,
}

/// One end of a wire.
struct Wire {
    epoch: std::time::Instant,
    address: SocketAddr,
    inbox: Receiver<Arrival>,
    own: Sender<Arrival>,
    peer: Sender<Arrival>,
}

impl PacketIo for Wire {
    type Ready = Option<Arrival>;

    fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let via = Via { egress: 0, local: None, remote: self.address };
            // An end that is gone loses packets, like a network.
            let _ = self.peer.send(Arrival::Packet((via, packet.to_vec())));
        }
        Ok(())
    }

    fn wait(&self, timeout: Duration) -> Self::Ready {
        let arrival = self.inbox.recv_timeout(timeout).ok();
        if matches!(arrival, Some(Arrival::Wake)) && timeout.is_zero() {
            // For threads that wait.
            self.wake();
            return None;
        }
        arrival
    }

    fn take(&self, ready: Self::Ready, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        if let Some(Arrival::Packet((via, mut packet))) = ready {
            deliver(Datagrams::one(via, &mut packet));
        }
        for arrival in self.inbox.try_iter().take(1_000) {
            match arrival {
                Arrival::Packet((via, mut packet)) => deliver(Datagrams::one(via, &mut packet)),
                Arrival::Wake => return self.wake(),
            }
        }
    }

    fn wake(&self) {
        let _ = self.own.send(Arrival::Wake);
    }
}

struct End {
    engine: Arc<Engine<Wire>>,
    readable: Receiver<()>,
}

#[expect(clippy::disallowed_methods, reason = "threads are driven by a real clock")]
fn pair() -> (End, End) {
    let epoch = std::time::Instant::now();
    let addresses = [SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 1))];
    let channels = [unbounded(), unbounded()];
    let end = |own: usize| {
        let wire = Wire {
            epoch,
            address: addresses[own],
            inbox: channels[own].1.clone(),
            own: channels[own].0.clone(),
            peer: channels[1 - own].0.clone(),
        };
        // A short queue: most messages wait, and the thread that takes others frees capacity for
        // them while the receiving thread answers late symbols.
        let config = Config {
            capacity: 20_000_000_000.into(),
            tuning: Tuning { receive_messages: Some(2), ..Tuning::default() },
            ..Config::default()
        };
        let security = Security::pre_shared(crate::common::KEY);
        let seed = Seed::new([own as u8 + 1; 32]);
        let endpoint = Transceiver::new(
            Instant::ZERO,
            config,
            ListenPorts::one(1),
            &security,
            seed,
            Box::new(Egresses(1)),
        )
        .unwrap();
        let (notify, readable) = unbounded();
        let engine = Engine::start(endpoint, wire, move |event| {
            if event == EngineEvent::Readable(Role::Plain) {
                notify.send(()).unwrap();
            }
        });
        End { engine: Arc::new(engine.unwrap()), readable }
    };
    (end(0), end(1))
}

#[test]
fn a_message_reported_as_delivered_is_in_the_applications_queue() {
    let (a, b) = pair();
    let taking = {
        let engine = b.engine.clone();
        let readable = b.readable.clone();
        std::thread::spawn(move || {
            (0..2_000).for_each(|_| {
                readable.recv_timeout(Duration::from_secs(30)).unwrap();
                engine.recv().unwrap();
            });
        })
    };
    let (ended, outcomes) = unbounded();
    // Bursts that continue until STOP cause late symbols, and so further STOPs.
    let options = SendOptions::default().policy(BurstPolicy::Oblivious);
    // All are taken at once, and a busy machine is slow to deliver the last one.
    let options = options.deadline(Duration::from_secs(60));
    for seed in 0..2_000 {
        let ended = ended.clone();
        let bytes = crate::common::message(seed as usize % 3_000, seed);
        let to = SocketAddr::from(([10, 0, 0, 2], 1));
        let on_end = Box::new(move |outcome| ended.send(outcome).unwrap());
        a.engine.send(to, Role::Plain, bytes, &options, on_end).unwrap();
    }
    for _ in 0..2_000 {
        let outcome = outcomes.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    }
    taking.join().unwrap();
    assert_eq!(b.engine.readable(Role::Plain), 0);
    let counters = b.engine.counters().receiver;
    assert!(counters.stops_sent > 2_000, "late symbols were answered again");
    assert!(a.engine.shutdown(Duration::from_secs(5), || {}));
}

#[test]
fn stopping_an_engine_drops_pending_callbacks() {
    let (a, b) = pair();
    drop(b);
    let (ended, outcomes) = unbounded::<Outcome>();
    let to = SocketAddr::from(([10, 0, 0, 2], 1));
    let on_end = Box::new(move |outcome| ended.send(outcome).unwrap());
    let bytes = crate::common::message(93_000, 1);
    a.engine.send(to, Role::Plain, bytes, &SendOptions::default(), on_end).unwrap();
    assert!(!a.engine.shutdown(Duration::ZERO, || {}), "the peer does not answer");
    let outcome = outcomes.recv_timeout(Duration::from_secs(5));
    assert!(matches!(outcome, Err(RecvTimeoutError::Disconnected)), "{outcome:?}");
}
