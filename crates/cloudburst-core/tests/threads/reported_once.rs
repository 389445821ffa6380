//! A thread that takes packets leaves others alone.

use cloudburst_core::burst::{Datagrams, Driven, Engine, PacketIo};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::Egresses;
use cloudburst_core::proto::{Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// No packets arrive, and a thread that sleeps does so until the test lets it run.
struct Asleep {
    sleeps: Sender<()>,
    runs: Receiver<()>,
    wakes: Arc<AtomicUsize>,
}

impl PacketIo for Asleep {
    type Ready = ();

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn transmit(&self, _: &Transmit, _: &[u8]) -> Result<(), LocalError> {
        Ok(())
    }

    fn wait(&self, timeout: Duration) {
        if !timeout.is_zero() {
            let _ = self.sleeps.send(());
            let _ = self.runs.recv();
        }
    }

    fn take(&self, (): (), _: bool, _: &mut dyn FnMut(Datagrams<'_>)) {}

    fn wake(&self) {
        self.wakes.fetch_add(1, SeqCst);
    }

    fn set_timer(&self, _: Option<Instant>) {}

    fn is_ready(&self) -> bool {
        false
    }

    fn watch(&self) {
        std::thread::yield_now();
    }

    fn watch_timer(&self) {}
}

#[test]
fn threads_that_take_packets_wake_none_and_a_caller_that_sleeps_is_woken_by_its_waker() {
    let (sleeps, sleeping) = bounded(1);
    let (run, runs) = bounded(1);
    let wakes = Arc::new(AtomicUsize::new(0));
    let io = Asleep { sleeps, runs, wakes: wakes.clone() };
    let security = Security::pre_shared(crate::common::KEY);
    let seed = Seed::new([1; 32]);
    let endpoint = Transceiver::new(
        Config::default(),
        ListenPorts::one(1),
        &security,
        seed,
        Box::new(Egresses(1)),
    )
    .unwrap();
    let engine = Arc::new(Engine::start(endpoint, io, |_| {}).unwrap());
    let take = || (0..100).filter(|_| engine.take()).count();
    engine.wake();
    let before = (take(), wakes.load(SeqCst));
    let is_done = Arc::new(AtomicBool::new(false));
    let caller = {
        let engine = engine.clone();
        let is_done = is_done.clone();
        std::thread::spawn(move || engine.drive(None, || is_done.load(SeqCst)))
    };
    sleeping.recv().unwrap();
    let beside = (take(), wakes.load(SeqCst));
    is_done.store(true, SeqCst);
    engine.wake();
    let after = wakes.load(SeqCst);
    run.send(()).unwrap();
    let driven = caller.join().unwrap();
    drop((run, sleeping));
    assert_eq!((before, beside, after), ((0, 0), (0, 0), 1));
    assert_eq!(driven, Driven::Done);
}
