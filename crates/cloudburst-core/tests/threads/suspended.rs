//! A process that was suspended reads packets that arrived meanwhile before it honours a deadline,
//! including those that another thread had taken from the sockets when it was suspended.

use crate::packets;
use cloudburst_core::burst::{Datagrams, Engine, Flush, PacketIo};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{LocalError, Outcome};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver, Transmit};
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
    /// Whether the thread that takes packets is suspended with the next one in hand.
    suspends: AtomicBool,
}

struct Wire {
    clock: Arc<Clock>,
    inbox: Receiver<Vec<u8>>,
    outbox: Sender<Vec<u8>>,
    /// Says that the thread that takes packets was suspended, and waits for its end.
    suspended: Sender<()>,
    resumes: Receiver<()>,
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

    fn wait(&self, _: Duration) {}

    fn take(&self, (): (), _: bool, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        for mut packet in self.inbox.try_iter() {
            // Time passes for all threads, and another one wakes first.
            if self.clock.suspends.swap(false, SeqCst) {
                self.clock.nanos.fetch_add(10 * DEADLINE.as_nanos() as u64, SeqCst);
                let _ = self.suspended.send(());
                let _ = self.resumes.recv();
            }
            let via = Via { egress: 0, local: None, remote: SERVER.into() };
            deliver(Datagrams::one(via, &mut packet));
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

    fn watch_timer(&self) {
        let _ = self.ends.recv();
    }
}

fn endpoint(seed: u8) -> Transceiver {
    let config = Config::default();
    let security = Security::pre_shared([7; 32]);
    let seed = Seed::new([seed; 32]);
    Transceiver::new(config, ListenPorts::one(7000), &security, seed, Box::new(Egresses(1)))
        .unwrap()
}

/// An engine, its clock and both ends of its wire. Its own thread does nothing until `end` is dropped.
struct Client {
    engine: Engine<Wire>,
    clock: Arc<Clock>,
    to_client: Sender<Vec<u8>>,
    from_client: Receiver<Vec<u8>>,
    suspended: Receiver<()>,
    resume: Sender<()>,
    end: Sender<()>,
}

fn client() -> Client {
    let clock = Arc::new(Clock { nanos: AtomicU64::new(1_000_000_000), ..Clock::default() });
    let (to_client, inbox) = unbounded();
    let (outbox, from_client) = unbounded();
    let (suspends, suspended) = unbounded();
    let (resume, resumes) = unbounded();
    let (end, ends) = unbounded();
    let wire = Wire { clock: clock.clone(), inbox, outbox, suspended: suspends, resumes, ends };
    let engine = Engine::start(endpoint(1), wire, drop).unwrap();
    Client { engine, clock, to_client, from_client, suspended, resume, end }
}

/// Delivers all packets of the client to `server`.
fn deliver_to(server: &mut Transceiver, now: Instant, from_client: &Receiver<Vec<u8>>) {
    let via = Via { egress: 0, local: None, remote: SocketAddr::from(CLIENT) };
    for mut packet in from_client.try_iter() {
        server.handle_datagram(now, via, &mut packet);
    }
}

#[test]
fn a_stop_that_another_thread_has_in_hand_is_believed_before_the_deadline() {
    let Client { engine, clock, to_client, from_client, suspended, resume, end } = client();
    let (ended, outcomes) = unbounded();
    let options = SendOptions::default().deadline(DEADLINE);
    let on_end = Box::new(move |outcome| ended.send(outcome).unwrap());
    engine
        .send(SERVER.into(), Role::Plain, "a message".into(), &options, Flush::ByDriver, on_end)
        .unwrap();

    let mut server = endpoint(2);
    let now = Instant::from_nanos(1_000_000_000);
    // HELLO and its answer, then the symbol and its STOP.
    let mut stopped = false;
    while !stopped {
        deliver_to(&mut server, now, &from_client);
        for packet in packets(&mut server, now) {
            stopped = Kind::of(&packet) == Ok(Kind::Answer);
            clock.suspends.store(stopped, SeqCst);
            to_client.send(packet).unwrap();
            if !stopped {
                engine.take();
                continue;
            }
            std::thread::scope(|scope| {
                scope.spawn(|| engine.take());
                suspended.recv().unwrap();
                engine.stand_in();
                resume.send(()).unwrap();
            });
        }
    }
    let outcome = outcomes.try_recv();
    // Before any assertion, because dropping the engine waits for its threads.
    drop(end);
    assert!(matches!(outcome, Ok(Outcome::Delivered(_))), "{outcome:?}");
}

#[test]
fn a_response_in_the_sockets_is_read_before_its_call_times_out() {
    let Client { engine, clock, to_client, from_client, end, .. } = client();
    let (answered, answers) = unbounded();
    let timeout = Duration::from_millis(400);
    let options = SendOptions::default().deadline(timeout);
    let call = engine.calls(|calls| calls.prepare(Some(timeout), b"a request"));
    let on_answer = Box::new(move |result| answered.send(result).unwrap());
    engine.call(SERVER.into(), &call, &options, Flush::ByDriver, on_answer).unwrap();

    let mut server = endpoint(2);
    let mut request = None;
    let now = Instant::from_nanos(1_000_000_000);
    while engine.counters().sender.delivered == 0 {
        deliver_to(&mut server, now, &from_client);
        request = request.or_else(|| server.recv_request(now));
        for packet in packets(&mut server, now) {
            to_client.send(packet).unwrap();
            engine.take();
        }
    }
    server.reply(now, &request.unwrap(), Some(b"a response"), &options).unwrap();
    packets(&mut server, now).into_iter().for_each(|packet| to_client.send(packet).unwrap());
    clock.nanos.fetch_add(10 * timeout.as_nanos() as u64, SeqCst);
    engine.stand_in();
    let result = answers.try_recv().unwrap();
    drop(end);
    assert_eq!(result.as_deref(), Ok(&b"a response"[..]));
}
