//! The threads of `cloudburst_core::burst`, given the inputs of a simulated host at the same times, send
//! the same datagrams as that host, byte for byte.

use super::*;
use cloudburst_core::burst::{Datagrams, Engine, Flush, PacketIo};
use cloudburst_core::error::LocalError;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{SendOptions, Transmit};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use cloudburst_sim::transport::cloudburst::{Cloudburst, Settings, Step};
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Stands in for sockets.
struct Wire {
    /// The simulated time, in nanoseconds.
    nanos: Arc<AtomicU64>,
    inbox: Receiver<(Via, bool, Vec<u8>)>,
    outbox: Sender<(Via, Vec<u8>)>,
    /// The engine's own thread waits here until the end.
    ends: Receiver<()>,
}

impl PacketIo for Wire {
    type Ready = ();

    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(SeqCst))
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        for packet in contents.chunks(transmit.segment_size) {
            let _ = self.outbox.send((transmit.via, packet.to_vec()));
        }
        Ok(())
    }

    fn wait(&self, _: Duration) {}

    fn take(&self, (): (), _: bool, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        for (via, ce, mut packet) in self.inbox.try_iter() {
            deliver(Datagrams { ce, ..Datagrams::one(via, &mut packet) });
        }
    }

    fn wake(&self) {}

    fn set_timer(&self, _: Option<Instant>) {}

    fn is_ready(&self) -> bool {
        let _ = self.ends.recv();
        false
    }

    fn watch(&self) {
        let _ = self.ends.recv();
    }

    fn watch_timer(&self) {}
}

/// Replays a recording to an engine, and compares the datagrams that it sends. Returns their number.
fn replay(recording: &cloudburst_sim::transport::cloudburst::Recording) -> usize {
    let nanos = Arc::new(AtomicU64::new(0));
    let (to_engine, inbox) = unbounded();
    let (outbox, from_engine) = unbounded();
    let (end, ends) = unbounded();
    let wire = Wire { nanos: nanos.clone(), inbox, outbox, ends };
    let endpoint = recording.endpoint().expect("the simulation has begun");
    let engine = Engine::start(endpoint, wire, |_| {}).unwrap();
    // Dropped before the engine, which joins its threads, also if this test fails.
    let _end = end;
    let mut compared = 0;
    for (at, step) in recording.steps() {
        nanos.store(at.as_nanos(), SeqCst);
        match step {
            Step::Connect(peer) => {
                engine.connect(peer, &SendOptions::default(), Box::new(|_| {})).unwrap();
            }
            Step::Send(peer, bytes) => {
                let options = SendOptions::default();
                engine
                    .send(peer, Role::Plain, bytes, &options, Flush::ByDriver, Box::new(|_| {}))
                    .unwrap();
            }
            Step::Datagram(via, ce, bytes) => {
                to_engine.send((via, ce, bytes)).unwrap();
                engine.take();
            }
            Step::Timeout => {
                engine.stand_in();
            }
            Step::Taken(bytes) => assert_eq!(engine.recv().map(|m| m.bytes), Some(bytes)),
            Step::Sent(via, packet) => {
                let same = from_engine.try_recv().unwrap_or_else(|_| {
                    // It may be an answer that waits for the application, or a packet that is left to
                    // whoever drives.
                    engine.stand_in();
                    from_engine.try_recv().expect("the engine sends the datagram")
                });
                assert!(same == (via, packet), "datagram {compared} at {at:?}");
                compared += 1;
            }
        }
    }
    assert!(from_engine.try_recv().is_err(), "the engine sends nothing else");
    compared
}

#[test]
fn the_engine_sends_what_the_simulated_host_sent() {
    for settings in [Settings::ours(10_000_000_000), Settings::paper(10_000_000_000)] {
        let shape = Shape::leaf_spine(2, 2, 4);
        let mut transport = Cloudburst::new(settings, &shape).unwrap();
        let recordings = [0, 3].map(|host| transport.record(host));
        let link = Link { rate: 10_000_000_000, delay: 2 * US };
        // So short that packets are lost.
        let queue = |_| DropTail::new(Depth::Packets(8)).into();
        let fabric = Clos::new(shape, link, link, unlimited, queue).unwrap();
        let mut list = Vec::new();
        for k in 0..40_u16 {
            let source = k % 4;
            let destination = (k + 1 + k / 4 % 3) % 4;
            list.push((source, destination, u64::from(k) * 2_500));
        }
        let mut simulation = common::simulation(fabric, transport, flows(&list));
        simulation.run(BEGIN + 20_000 * MS);
        let flows = simulation.network().flows().as_slice();
        assert!(flows.iter().all(|flow| flow.acknowledged.is_some()));
        let dropped: u64 =
            simulation.network().fabric().ports().iter().map(|port| port.stats().dropped).sum();
        assert!(dropped > 0);
        for recording in &recordings {
            let compared = replay(recording);
            assert!(compared > 100, "{compared}");
        }
    }
}
