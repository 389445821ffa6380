//! The threads of an engine, without sockets: messages that are reported as delivered are in the
//! application's queue, whichever thread sends the STOP, and every send ends.

use cloudburst_core::burst::{Datagrams, Engine, Flush, PacketIo};
use cloudburst_core::config::{BurstPolicy, Config, ListenPorts, Security, Tuning};
use cloudburst_core::error::{LocalError, Outcome};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::time::Duration;
use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

/// What ends the waits of one end.
#[derive(Default)]
struct Arrivals {
    packets: VecDeque<Vec<u8>>,
    is_woken: bool,
    timer: Option<Instant>,
}

#[derive(Default)]
struct Inbox {
    arrivals: Mutex<Arrivals>,
    changed: Condvar,
}

impl Inbox {
    fn change(&self, change: impl FnOnce(&mut Arrivals)) {
        change(&mut self.arrivals.lock().unwrap());
        self.changed.notify_all();
    }
}

/// One end of a wire.
struct Wire {
    epoch: std::time::Instant,
    peer_address: SocketAddr,
    own: Arc<Inbox>,
    peer: Arc<Inbox>,
}

impl Wire {
    /// Waits until `is_ready`, which is told whether the timer has expired, for at most `timeout`.
    /// Returns whether it was.
    fn until(&self, timeout: Duration, is_ready: impl Fn(&Arrivals, bool) -> bool) -> bool {
        let end = self.now() + timeout;
        let mut arrivals = self.own.arrivals.lock().unwrap();
        loop {
            let now = self.now();
            let expired = arrivals.timer.is_some_and(|at| at <= now);
            if is_ready(&arrivals, expired) {
                return true;
            }
            if now >= end {
                return false;
            }
            let next = arrivals.timer.filter(|_| !expired).map_or(end, |at| at.min(end));
            let left = next.saturating_since(now);
            arrivals = self.own.changed.wait_timeout(arrivals, left).unwrap().0;
        }
    }
}

fn anything(arrivals: &Arrivals, expired: bool) -> bool {
    expired || arrivals.is_woken || !arrivals.packets.is_empty()
}

const LONG: Duration = Duration::from_secs(60);

impl PacketIo for Wire {
    type Ready = ();

    fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            self.peer.change(|arrivals| arrivals.packets.push_back(packet.to_vec()));
        }
        Ok(())
    }

    fn wait(&self, timeout: Duration) {
        self.until(timeout, anything);
        self.own.arrivals.lock().unwrap().is_woken = false;
    }

    fn take(&self, (): (), all: bool, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        let via = Via { egress: 0, local: None, remote: self.peer_address };
        for _ in 0..if all { 1_000 } else { 10 } {
            let packet = self.own.arrivals.lock().unwrap().packets.pop_front();
            let Some(mut packet) = packet else { return };
            deliver(Datagrams::one(via, &mut packet));
        }
    }

    fn wake(&self) {
        self.own.change(|arrivals| arrivals.is_woken = true);
    }

    fn set_timer(&self, at: Option<Instant>) {
        self.own.change(|arrivals| arrivals.timer = at);
    }

    fn is_ready(&self) -> bool {
        self.until(Duration::ZERO, anything)
    }

    fn watch(&self) {
        self.until(LONG, anything);
    }

    fn watch_timer(&self) {
        self.until(LONG, |_, expired| expired);
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
    let inboxes = [Arc::<Inbox>::default(), Arc::<Inbox>::default()];
    let end = |own: usize| {
        let wire = Wire {
            epoch,
            peer_address: addresses[1 - own],
            own: inboxes[own].clone(),
            peer: inboxes[1 - own].clone(),
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
        let endpoint =
            Transceiver::new(config, ListenPorts::one(1), &security, seed, Box::new(Egresses(1)))
                .unwrap();
        let (notify, readable) = unbounded();
        let engine = Engine::start(endpoint, wire, move |role| {
            if role == Role::Plain {
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
        a.engine.send(to, Role::Plain, bytes, &options, Flush::ByDriver, on_end).unwrap();
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
    a.engine
        .send(to, Role::Plain, bytes, &SendOptions::default(), Flush::ByDriver, on_end)
        .unwrap();
    assert!(!a.engine.shutdown(Duration::ZERO, || {}), "the peer does not answer");
    let outcome = outcomes.recv_timeout(Duration::from_secs(5));
    assert!(matches!(outcome, Err(RecvTimeoutError::Disconnected)), "{outcome:?}");
}
