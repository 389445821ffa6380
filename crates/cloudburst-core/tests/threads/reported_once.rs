//! Another thread takes packets while the receiving thread waits for them.

use cloudburst_core::burst::{Datagrams, Engine, PacketIo};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::Egresses;
use cloudburst_core::proto::{Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No packets arrive, and a waiting thread is not scheduled before the test lets it run.
struct Overslept {
    waits: Sender<()>,
    runs: Receiver<()>,
    wakes: Arc<AtomicUsize>,
}

impl PacketIo for Overslept {
    type Ready = ();

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn transmit(&self, _: &Transmit, _: &[u8]) -> Result<(), LocalError> {
        Ok(())
    }

    fn wait(&self, timeout: Duration) {
        if !timeout.is_zero() {
            let _ = self.waits.send(());
            let _ = self.runs.recv();
        }
    }

    fn take(&self, (): (), _: &mut dyn FnMut(Datagrams<'_>)) {}

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_receiving_thread_is_interrupted_once() {
    let (waits, waiting) = bounded(1);
    let (run, runs) = bounded(0);
    let wakes = Arc::new(AtomicUsize::new(0));
    let io = Overslept { waits, runs, wakes: wakes.clone() };
    let config = Config::default();
    let security = Security::pre_shared(crate::common::KEY);
    let seed = Seed::new([1; 32]);
    let endpoint = Transceiver::new(
        Instant::ZERO,
        config,
        ListenPorts::one(1),
        &security,
        seed,
        Box::new(Egresses(1)),
    )
    .unwrap();
    let engine = Engine::start(endpoint, io, |_| {}).unwrap();
    let mut counts = Vec::new();
    for _ in 0..3 {
        waiting.recv().unwrap();
        // A caller that takes packets is woken by the same wake-up as the receiving thread, and
        // takes again.
        let took = (0..100).filter(|_| engine.take()).count();
        counts.push((took, wakes.load(Ordering::SeqCst)));
        run.send(()).unwrap();
    }
    // Before any assertion, because dropping the engine waits for that thread.
    drop((run, waiting));
    assert_eq!(counts, [(0, 1), (0, 2), (0, 3)], "once for each wait");
}
