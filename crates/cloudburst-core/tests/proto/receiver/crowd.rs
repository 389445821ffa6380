//! A receiving endpoint, and any number of peers whose packets a test writes.

use crate::common::KEY;
use crate::common::peer::{open_fields, payload};
use cloudburst_core::code::Code;
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::id::{Incarnation, MessageId, PathId, SessionId};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Contents, Event, ReceiverCounters, Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::handshake::{Hello, HelloKey, OpenFields, shake_hands};
use cloudburst_core::wire::keys::FlowKeys;
use cloudburst_core::wire::seal::{Opener, Sealer, TAG_LEN};
use cloudburst_core::wire::{Answer, Kind, Prefix, Report, Role, SymbolHeader, Verdict, answer};
use core::time::Duration;
use std::net::SocketAddr;

pub(super) struct Crowd {
    pub(super) receiver: Transceiver,
    pub(super) now: Instant,
    steps: u64,
}

/// One session of one peer.
pub(super) struct Voice {
    pub(super) address: SocketAddr,
    pub(super) role: Role,
    flow: FlowKeys,
    sealer: Sealer,
    opener: Opener,
}

/// The fields of a symbol.
#[derive(Clone, Copy)]
pub(super) struct Says {
    pub(super) id: u64,
    pub(super) len: usize,
    pub(super) symbol: u32,
    pub(super) symbol_size: u16,
    pub(super) age: u32,
    pub(super) ack_request: bool,
    pub(super) path: u16,
}

impl Says {
    /// The only symbol of a message.
    pub(super) fn whole(id: u64, len: usize) -> Self {
        let symbol_size = len as u16 + 16;
        Self { id, len, symbol: 0, symbol_size, age: 0, ack_request: false, path: 0 }
    }

    /// The first of `len / 1,000` symbols of a message.
    pub(super) fn part(id: u64, len: usize) -> Self {
        let len = len.saturating_sub(16);
        Self { id, len, symbol: 0, symbol_size: 1_000, age: 0, ack_request: false, path: 0 }
    }
}

impl Crowd {
    /// On an idle link.
    pub(super) fn unpaced(config: Config) -> Self {
        Self::new(Config { capacity: 1_000_000_000_000.into(), ..config })
    }

    pub(super) fn new(config: Config) -> Self {
        let security = Security::pre_shared(KEY);
        let receiver = Transceiver::new(
            config,
            ListenPorts::one(7000),
            &security,
            Seed::new([3; 32]),
            Box::new(Egresses(1)),
        )
        .unwrap();
        Self { receiver, now: Instant::from_nanos(1_000_000_000), steps: 0 }
    }

    /// A HELLO of the handshake `nonce`, from a peer without a session.
    pub(super) fn hello(nonce: u64) -> Vec<u8> {
        let mut packet = Vec::new();
        Hello::write(PathId(0), 0, nonce, None, &HelloKey::new(&KEY), &mut packet);
        packet
    }

    /// Delivers a handshake packet of the peer `who`. Returns the answer.
    pub(super) fn greet(&mut self, who: u32, packet: Vec<u8>) -> Option<Vec<u8>> {
        self.greet_at(address(who), packet)
    }

    fn greet_at(&mut self, remote: SocketAddr, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        let via = Via { egress: 0, local: None, remote };
        self.receiver.handle_datagram(self.now, via, &mut packet);
        packet.clear();
        while self.poll_transmit(&mut packet).is_none() {
            // The link may be busy.
            let soon = self.now + Duration::from_millis(10);
            self.now = self.receiver.poll_timeout().filter(|at| *at > self.now && *at < soon)?;
        }
        Some(packet)
    }

    /// Checks a session. Returns whether the receiver says that it is alive.
    pub(super) fn asks(&mut self, who: u32, voice: &mut Voice) -> bool {
        let hello = voice.hello(9);
        let Some(mut answer) = self.greet(who, hello) else { return false };
        Kind::of(&answer) == Ok(Kind::Answer)
            && voice.reports(&mut answer) == [Report::Alive { nonce: 9 }]
    }

    /// Opens a session of the peer `who` by the handshake `nonce`. It is half-open.
    pub(super) fn meet_again(&mut self, who: u32, nonce: u64) -> Voice {
        self.meet_as(who, who, nonce)
    }

    /// The same with the incarnation of `claimed`.
    pub(super) fn meet_as(&mut self, who: u32, claimed: u32, nonce: u64) -> Voice {
        self.meet_at(address(who), claimed, nonce)
    }

    /// The same at any address.
    pub(super) fn meet_at(&mut self, address: SocketAddr, claimed: u32, nonce: u64) -> Voice {
        let fields = OpenFields { port: address.port(), ..open_fields(incarnation(claimed)) };
        let (_, keys) =
            shake_hands(&KEY, nonce, &fields, |packet| self.greet_at(address, packet).unwrap());
        let flow = keys.forward;
        let sealer = Sealer::new(flow.symbols.clone());
        let opener = Opener::new(flow.answers.clone());
        Voice { address, role: Role::Plain, flow, sealer, opener }
    }

    pub(super) fn meet(&mut self, who: u32) -> Voice {
        self.meet_again(who, 1)
    }

    /// Delivers a copy of a packet of the peer `who`.
    pub(super) fn replay(&mut self, who: u32, packet: &[u8]) {
        let via = Via { egress: 0, local: None, remote: address(who) };
        self.receiver.handle_datagram(self.now, via, &mut packet.to_vec());
        self.check_often();
    }

    /// Delivers a symbol of zeros. The answers stay in the receiver.
    pub(super) fn hear(&mut self, voice: &mut Voice, says: Says) {
        let mut packet = voice.symbol(says);
        let via = Via { egress: 0, local: None, remote: voice.address };
        self.receiver.handle_datagram(self.now, via, &mut packet);
        self.check_often();
    }

    /// Checks invariants after each of the first steps, and then ever more rarely, because a check
    /// examines the whole state.
    fn check_often(&mut self) {
        self.steps += 1;
        if self.steps < 256 || self.steps.is_power_of_two() {
            self.receiver.check_invariants();
        }
    }

    /// Delivers a symbol of zeros. Returns the verdict on its message.
    pub(super) fn say(&mut self, voice: &mut Voice, says: Says) -> Option<Verdict> {
        self.hear(voice, says);
        let mut packet = Vec::new();
        self.poll_transmit(&mut packet)?;
        voice.open(&mut packet).pop().map(|answer| answer.verdict)
    }

    /// Whether the receiver says that the message is delivered.
    pub(super) fn delivers(&mut self, voice: &mut Voice, says: Says) -> bool {
        matches!(self.say(voice, says), Some(Verdict::Delivered { .. }))
    }

    /// Sends the messages `ids` of `len` bytes, one symbol each, and discards the answers.
    pub(super) fn fill(&mut self, voice: &mut Voice, ids: core::ops::Range<u64>, len: usize) {
        for id in ids {
            self.hear(voice, Says::whole(id, len));
            self.discard_answers();
        }
    }

    pub(super) fn poll_transmit(&mut self, packet: &mut Vec<u8>) -> Option<Via> {
        self.poll_answers(packet).map(|transmit| transmit.via)
    }

    /// The lengths of the datagrams in the next batch of answers.
    pub(super) fn poll_batch(&mut self, batch: &mut Vec<u8>) -> Option<usize> {
        self.poll_answers(batch).map(|transmit| transmit.segment_size)
    }

    fn poll_answers(&mut self, batch: &mut Vec<u8>) -> Option<Transmit> {
        self.check_often();
        loop {
            let transmit = self.receiver.poll_transmit(self.now, batch)?;
            if !matches!(transmit.contents, Contents::Handshake(_)) {
                return Some(transmit);
            }
            batch.clear();
        }
    }

    pub(super) fn counters(&self) -> ReceiverCounters {
        self.receiver.counters().receiver
    }

    pub(super) fn discard_answers(&mut self) {
        while self.poll_transmit(&mut Vec::new()).is_some() {}
    }

    /// The roles of the messages that were delivered, in order. The application has not taken them.
    pub(super) fn messages(&mut self) -> Vec<Role> {
        let events = core::iter::from_fn(|| self.receiver.poll_event());
        events
            .filter_map(|event| match event {
                Event::Readable(role) => Some(role),
                _ => None,
            })
            .collect()
    }

    /// The application takes the delivered messages. Requests of zeros are invalid.
    pub(super) fn take_all(&mut self) {
        self.messages();
        while self.receiver.recv().is_some() {}
        assert_eq!(self.receiver.recv_request(self.now), None);
    }

    /// Advances the clock by `after`, and handles timers on the way. Answers that were not polled
    /// stay in the receiver.
    pub(super) fn wait(&mut self, after: Duration) {
        let until = self.now + after;
        while let Some(at) = self.receiver.poll_timeout().filter(|at| *at <= until) {
            if at <= self.now {
                break;
            }
            self.now = at;
            self.receiver.handle_timeout(self.now);
        }
        self.now = until;
        self.receiver.handle_timeout(self.now);
        self.check_often();
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.receiver.check_invariants();
        }
    }
}

impl Voice {
    pub(super) fn session(&self) -> SessionId {
        self.sealer.session()
    }

    pub(super) fn symbol(&mut self, says: Says) -> Vec<u8> {
        let Says { id, len, symbol, symbol_size, age, ack_request, path } = says;
        let message = MessageId(id);
        let header = SymbolHeader {
            message,
            path_number: 0,
            length: len as u32,
            age,
            block: 0,
            symbol,
            symbol_size,
            code: Code::Rlf256.to_wire(),
            unscheduled: 0,
        };
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
            is_final: false,
            role: self.role,
            class: 1,
            path: PathId(path),
            session: self.sealer.session(),
            number: self.sealer.next_number(),
        };
        let mut packet = Vec::new();
        header.write(&prefix, None, &[], &mut packet);
        let payload_at = packet.len();
        packet.extend(payload(&self.flow.digest, &header, &vec![0; len]));
        self.sealer.seal(&mut packet, 0, payload_at);
        packet
    }

    /// A HELLO that checks the session.
    pub(super) fn hello(&mut self, nonce: u64) -> Vec<u8> {
        let mut packet = Vec::new();
        let key = HelloKey::new(&KEY);
        Hello::write(PathId(0), 0, nonce, Some(&mut self.sealer), &key, &mut packet);
        packet
    }

    pub(super) fn open(&mut self, packet: &mut [u8]) -> Vec<Answer> {
        let answers = self.reports(packet).into_iter().map(|report| match report {
            Report::Message(answer) => answer,
            other => panic!("{other:?}"),
        });
        answers.collect()
    }

    fn reports(&mut self, packet: &mut [u8]) -> Vec<Report> {
        let (prefix, reports) = answer::parse(packet).unwrap();
        assert_eq!(prefix.session, self.opener.session(), "an answer in another session");
        let at = packet.len() - TAG_LEN;
        self.opener.open(prefix.number, packet, at).unwrap();
        reports
    }
}

pub(super) fn address(who: u32) -> SocketAddr {
    let [_, a, b, c] = who.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 7000))
}

fn incarnation(who: u32) -> Incarnation {
    let mut name = [1; 16];
    name[..4].copy_from_slice(&who.to_be_bytes());
    Incarnation(name)
}
