//! Both hosts, their clock, and what must hold after each step.

use super::ledger::{Facts, Ledger, Name};
use super::network::{Flight, Network, Side};
use super::setup::Setup;
use cloudburst_core::code::{BlockShape, Code, Decoder, MAX_SOURCE_SYMBOLS};
use cloudburst_core::config::Config;
use cloudburst_core::error::{Doubt, Outcome, Rejection};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::Lanes;
use cloudburst_core::proto::{Endpoint, Event, SendOptions};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;

/// How often an endpoint may want to be served again at one moment.
const MAX_SPINS: usize = 4;
/// Messages and bytes that one input may send.
const MAX_SENDS: usize = 40;
const MAX_BYTES: usize = 500_000;

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) network: Network,
    pub(super) ledger: Ledger,
    setup: Setup,
    hosts: [Host; 2],
    /// By side, whether its peer has had no room, or has forgotten what it had: what is sent
    /// because of that does not count towards a block's cap.
    capless: [bool; 2],
    bytes_sent: usize,
    buffer: Vec<u8>,
}

struct Host {
    endpoint: Endpoint,
    life: u8,
    closed: bool,
    /// A former life was closed: what it said may still be on its way.
    was_closed: bool,
    /// The application takes each message at once.
    takes: bool,
    /// Messages in its queue that the ledger knows of.
    known: usize,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            now: setup.start,
            network: Network::default(),
            ledger: Ledger::default(),
            hosts: Side::BOTH.map(|side| Host::new(&setup, side, 0)),
            setup,
            capless: [false; 2],
            bytes_sent: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, side: Side, len: usize, options: &SendOptions) -> Option<Name> {
        let spent = self.ledger.len() >= MAX_SENDS || self.bytes_sent + len > MAX_BYTES;
        if spent { None } else { self.send_anyway(side, len, options) }
    }

    /// As [`send`](Self::send), however much was sent before. `None` where it was refused.
    pub(super) fn send_anyway(
        &mut self,
        side: Side,
        len: usize,
        options: &SendOptions,
    ) -> Option<Name> {
        let (now, to) = (self.now, side.other().address(0));
        let life = self.host(side).life;
        let bytes = self.ledger.content(life, len);
        let endpoint = &mut self.host(side).endpoint;
        let id = endpoint.send(now, to, bytes.clone(), options).ok()?;
        self.bytes_sent += bytes.len();
        let name = (side, life, id);
        let config = self.config(side).clone();
        self.ledger.on_sent(name, bytes, now, options, &config);
        self.drain(side);
        Some(name)
    }

    /// Cancels one of the sends of `side` that are under way.
    pub(super) fn cancel(&mut self, side: Side, choice: u8) {
        let life = self.host(side).life;
        let open: Vec<Name> = self.ledger.open(side, life).map(|(name, _)| name).collect();
        let Some(at) = usize::from(choice).checked_rem(open.len()) else {
            return self.host(side).endpoint.cancel(MessageId(choice.into()));
        };
        self.host(side).endpoint.cancel(open[at].2);
        self.drain(side);
        let outcome = self.ledger.outcome(open[at]);
        let cancelled = matches!(
            outcome,
            Some(Outcome::Unknown(Doubt::Cancelled) | Outcome::Rejected(Rejection::Cancelled))
        );
        assert!(cancelled, "{outcome:?}");
    }

    /// Hands a packet to its receiver.
    pub(super) fn deliver(&mut self, flight: Flight) {
        let Flight { to, via, mut bytes, genuine } = flight;
        let now = self.now;
        self.host(to).endpoint.handle_datagram(now, via, &mut bytes);
        let answered = self.drain(to);
        let allowed = if genuine { bytes.len() } else { 0 };
        assert!(answered <= allowed, "{answered} bytes in answer to {}: {genuine}", bytes.len());
    }

    /// The application of `side` takes what was delivered, or lets it lie from now on.
    pub(super) fn take(&mut self, side: Side, all: bool, from_now_on: bool) {
        self.host(side).takes = from_now_on;
        let count = if all { usize::MAX } else { 1 };
        for _ in 0..count {
            let host = self.host(side);
            if host.endpoint.recv().is_none() {
                break;
            }
            host.known -= 1;
            self.drain(side);
        }
    }

    pub(super) fn close(&mut self, side: Side) {
        let host = self.host(side);
        (host.closed, host.was_closed) = (true, true);
        host.endpoint.close();
    }

    /// Kills a side and starts it again as a new incarnation.
    pub(super) fn restart(&mut self, side: Side) {
        let (life, was_closed) = (self.host(side).life, self.host(side).was_closed);
        // Beyond that many lives, it stays as it is.
        if let Some(next) = life.checked_add(1) {
            let host = Host { was_closed, ..Host::new(&self.setup, side, next) };
            *self.host(side) = host;
        }
    }

    /// Does what is due on `side`; it must then want nothing at this moment, and every send
    /// whose deadline has come must have ended.
    pub(super) fn serve(&mut self, side: Side) {
        let now = self.now;
        for _ in 0..MAX_SPINS {
            self.host(side).endpoint.handle_timeout(now);
            self.drain(side);
            if self.host(side).endpoint.poll_timeout().is_none_or(|at| at > now) {
                let life = self.host(side).life;
                let late = self.ledger.open(side, life).find(|(_, deadline)| *deadline <= now);
                assert_eq!(late, None, "past its deadline");
                return;
            }
        }
        panic!("{side:?} wants to be served again and again at {now:?}");
    }

    /// When either side wants to be served next.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout()).min()
    }

    /// Sends of living sides that have not ended.
    pub(super) fn unfinished(&self) -> usize {
        self.hosts.iter().map(|host| host.endpoint.unfinished()).sum()
    }

    /// Whether both sides take new messages.
    pub(super) fn is_open(&self) -> bool {
        self.hosts.iter().all(|host| !host.closed)
    }

    /// Whether `side` has room for the sessions of all lives that its peer has had.
    pub(super) fn is_roomy(&self, side: Side) -> bool {
        self.config(side).max_peers > 2 * (1 + usize::from(u8::MAX))
    }

    pub(super) fn receive_memory(&self) -> usize {
        self.hosts.iter().map(|host| host.endpoint.receive_memory()).sum()
    }

    /// What must hold after every step.
    pub(super) fn check(&self) {
        for (side, host) in Side::BOTH.into_iter().zip(&self.hosts) {
            let (config, peer) = (self.config(side), self.config(side.other()));
            // One message always fits, whatever it takes.
            let one = memory_of_one(config.max_message, peer.max_datagram);
            let memory = host.endpoint.receive_memory();
            assert!(memory <= config.decode_bytes.max(one), "{memory} bytes: {config:?}");

            let queued: usize = host.endpoint.queued().map(|message| message.bytes.len()).sum();
            let one = if host.known == 1 { config.max_message } else { 0 };
            assert!(host.known <= config.receive_messages);
            assert!(queued <= config.receive_bytes.max(one), "{queued} bytes: {config:?}");

            assert_eq!(host.endpoint.unfinished(), self.ledger.open(side, host.life).count());
            for path in host.endpoint.paths(side.other().address(0)) {
                assert!(path.arrived <= path.sent, "{path:?}");
            }
            let counters = host.endpoint.counters();
            let cap = self.ledger.packet_cap(side, host.life, smallest_symbol(config.max_datagram));
            let capped = counters.sender.symbols_sent <= cap as u64;
            assert!(capped || self.capless[side as usize], "{counters:?}");
            assert_eq!((counters.receiver.corrupt_blocks, counters.receiver.nonsense), (0, 0));
        }
    }

    fn config(&self, side: Side) -> &Config {
        config(&self.setup, side)
    }

    fn host(&mut self, side: Side) -> &mut Host {
        &mut self.hosts[side as usize]
    }

    /// Drains the outputs of a side. Returns the bytes of what it said in answer.
    fn drain(&mut self, side: Side) -> usize {
        let mut answered = 0;
        loop {
            let mut idle = true;
            while let Some(bytes) = self.drain_transmit(side) {
                answered += bytes;
                idle = false;
            }
            while let Some(event) = self.host(side).endpoint.poll_event() {
                self.on_event(side, event);
                idle = false;
            }
            if idle {
                return answered;
            }
        }
    }

    fn drain_transmit(&mut self, side: Side) -> Option<usize> {
        let mut buffer = core::mem::take(&mut self.buffer);
        buffer.clear();
        let now = self.now;
        let transmit = self.host(side).endpoint.poll_transmit(now, &mut buffer);
        let mut answered = 0;
        if let Some(transmit) = transmit {
            let max = self.config(side).max_datagram;
            assert_eq!(buffer.len(), transmit.len);
            assert!(transmit.segment_size <= max, "a packet of {} bytes", transmit.segment_size);
            for packet in buffer.chunks(transmit.segment_size) {
                let kind = Kind::of(packet).expect("an endpoint sends packets");
                self.capless[side.other() as usize] |= matches!(kind, Kind::Busy | Kind::Forgotten);
                answered +=
                    if matches!(kind, Kind::Hello | Kind::Symbol) { 0 } else { packet.len() };
                self.network.put(side, transmit.via, packet);
            }
        }
        self.buffer = buffer;
        transmit.map(|_| answered)
    }

    fn on_event(&mut self, side: Side, event: Event) {
        match event {
            Event::Readable(_) => {
                let host = self.host(side);
                let message = host.endpoint.queued().nth(host.known).cloned();
                let message = message.expect("it is in the queue");
                if host.takes {
                    host.endpoint.recv();
                } else {
                    host.known += 1;
                }
                self.ledger.on_message(side, &message);
            }
            Event::Answered(..) => panic!("nobody has called"),
            Event::Ended(id, outcome) => {
                let peer_max = self.config(side.other()).max_message;
                let (life, peer) = (self.host(side).life, self.host(side.other()));
                let (restarted, peer_closed) = (peer.life > 0, peer.was_closed);
                let peer_restarted = restarted || !self.is_roomy(side.other());
                let (start, now, capped) =
                    (self.setup.start, self.now, !self.capless[side as usize]);
                let facts = Facts { start, now, peer_restarted, peer_closed, peer_max, capped };
                self.ledger.on_ended((side, life, id), outcome, facts);
            }
        }
    }
}

impl Host {
    fn new(setup: &Setup, side: Side, life: u8) -> Self {
        let mut secret = [0x5e; 32];
        secret[..2].copy_from_slice(&[side as u8, life]);
        let (seed, map) = (Seed::new(secret), Box::new(Lanes(setup.lanes)));
        let endpoint = Endpoint::new(config(setup, side).clone(), &setup.security, seed, map)
            .expect("the configuration was checked");
        Self { endpoint, life, closed: false, was_closed: false, takes: true, known: 0 }
    }
}

/// What the accounts of a receiver may say of one message, at most.
fn memory_of_one(max_message: usize, max_datagram: usize) -> usize {
    /// Blocks of a message that are decoded at a time.
    const MAX_DECODING: usize = 8;
    /// What stands beside the bytes and the decoders.
    const BOOKKEEPING: usize = 8_192;
    let symbols = max_message / smallest_symbol(max_datagram) + 1;
    let shape = BlockShape::new(symbols.min(MAX_SOURCE_SYMBOLS), max_datagram)
        .expect("no block of a datagram's size is too large");
    let blocks = symbols.div_ceil(MAX_SOURCE_SYMBOLS).min(MAX_DECODING);
    max_message + blocks * Decoder::memory(Code::Rlf256, shape) + BOOKKEEPING
}

/// A symbol of a long message is at least so large.
const fn smallest_symbol(max_datagram: usize) -> usize {
    max_datagram - 120
}

fn config(setup: &Setup, side: Side) -> &Config {
    match side {
        Side::A => &setup.a,
        Side::B => &setup.b,
    }
}
