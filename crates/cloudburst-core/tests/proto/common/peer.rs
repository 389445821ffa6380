//! A hand-made peer, which holds the key and sends whatever packets a test wants.

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Encoder, Kernel, MAX_SOURCE_SYMBOLS};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::id::{Digest, Incarnation, MessageId, PathId, SessionId};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Message, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::handshake::{AcceptFields, OpenFields, answer_by_hand, shake_hands};
use cloudburst_core::wire::keys::{DigestKey, FlowKeys, SessionKeys};
use cloudburst_core::wire::seal::{Opener, Sealer, TAG_LEN};
use cloudburst_core::wire::{
    Answer, Capabilities, Kind, Prefix, Report, Role, SymbolHeader, answer,
};

pub const KEY: [u8; 32] = [7; 32];

/// An endpoint, and a peer whose packets the test writes.
pub struct Liar {
    pub endpoint: Transceiver,
    pub now: Instant,
    pub flow: FlowKeys,
    pub sealer: Sealer,
    pub opener: Opener,
    pub via: Via,
    /// The role of the messages that it sends.
    pub role: Role,
    /// Whether its symbols say that it knows which blocks are decoded.
    pub partial: bool,
    /// Whether its messages are pulled.
    pub pulled: bool,
}

impl Liar {
    /// Shakes hands with an endpoint with configuration `config`.
    pub fn meet(config: Config) -> Self {
        Self::join(endpoint(config), 1)
    }

    /// Shakes hands with `endpoint` as the incarnation `who`.
    pub fn join(endpoint: Transceiver, who: u8) -> Self {
        Self::join_with_ports(endpoint, who, 0)
    }

    /// Shakes hands as a peer that has `more_ports` ports beyond the first.
    pub fn join_with_ports(endpoint: Transceiver, who: u8, more_ports: u8) -> Self {
        let fields = OpenFields { more_ports, ..open_fields(Incarnation([who; 16])) };
        Self::join_as(endpoint, who, &fields)
    }

    /// Shakes hands from address `who` and with these fields.
    pub fn join_as(mut endpoint: Transceiver, who: u8, fields: &OpenFields) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let via = Via { egress: 0, local: None, remote: ([10, 0, 0, who], 7000).into() };
        let (_, keys) = shake_hands(&KEY, who.into(), fields, |mut packet| {
            endpoint.handle_datagram(now, via, &mut packet);
            packet.clear();
            endpoint.poll_transmit(now, &mut packet).unwrap();
            packet
        });
        let flow = keys.forward;
        let sealer = Sealer::new(flow.symbols.clone());
        let opener = Opener::new(flow.answers.clone());
        let role = Role::Plain;
        let partial = false;
        let pulled = false;
        Self { endpoint, now, flow, sealer, opener, via, role, partial, pulled }
    }

    /// A truthful header of symbol `symbol` of a one-block message.
    pub fn header(&self, id: u64, bytes: &[u8], symbol_size: u16, symbol: u32) -> SymbolHeader {
        SymbolHeader {
            message: MessageId(id),
            path_number: 0,
            length: bytes.len() as u32,
            age: 0,
            block: 0,
            symbol,
            symbol_size,
            code: Code::Rlf256.to_wire(),
            unscheduled: 0,
        }
    }

    /// Seals and delivers one symbol, or a probe if there is no payload. Returns the answers.
    pub fn say(&mut self, header: &SymbolHeader, ack_request: bool, payload: &[u8]) -> Vec<Answer> {
        self.say_with(header, ack_request, &[], payload)
    }

    pub fn say_with(
        &mut self,
        header: &SymbolHeader,
        ack_request: bool,
        index_set: &[u8],
        payload: &[u8],
    ) -> Vec<Answer> {
        let mut prefix = symbol_prefix(&self.sealer);
        prefix.ack_request = ack_request;
        prefix.partial = self.partial;
        prefix.pulled = self.pulled;
        prefix.probe = payload.is_empty();
        prefix.role = self.role;
        let mut packet = seal(&mut self.sealer, &prefix, header, index_set, payload);
        let caused_by = packet.len();
        self.endpoint.handle_datagram(self.now, self.via, &mut packet);
        self.endpoint.check_invariants();
        let answers = self.answers();
        self.endpoint.check_invariants();
        // Pulls are paced, and answer earlier symbols.
        let fits = |(len, _): &(usize, Answer)| self.pulled || *len <= caused_by;
        assert!(answers.iter().all(fits), "no answer is larger");
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The payload of a symbol of a one-block message.
    pub fn payload(&self, header: &SymbolHeader, bytes: &[u8]) -> Vec<u8> {
        payload(&self.flow.digest, header, bytes)
    }

    /// Sends a whole message truthfully. Returns the answers.
    pub fn say_message(&mut self, id: u64, bytes: &[u8], symbol_size: u16) -> Vec<Answer> {
        let symbols = (bytes.len() + 16).div_ceil(usize::from(symbol_size));
        let mut answers = Vec::new();
        for symbol in 0..symbols as u32 {
            let header = self.header(id, bytes, symbol_size, symbol);
            let payload = self.payload(&header, bytes);
            answers.extend(self.say(&header, false, &payload));
        }
        answers
    }

    pub fn answers(&mut self) -> Vec<(usize, Answer)> {
        let mut answers = Vec::new();
        let mut packet = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut packet).is_some() {
            if Kind::of(&packet) == Ok(Kind::Hello) {
                packet.clear();
                continue;
            }
            let (prefix, reports) = answer::parse(&packet).unwrap();
            let at = packet.len() - TAG_LEN;
            self.opener.open(prefix.number, &mut packet, at).unwrap();
            for report in reports {
                let Report::Message(answer) = report else { panic!("{report:?}") };
                answers.push((packet.len(), answer));
            }
            packet.clear();
        }
        answers
    }

    pub fn messages(&mut self) -> Vec<Message> {
        core::iter::from_fn(|| self.endpoint.recv()).collect()
    }

    pub fn block_digest(&self, id: u64, block: u32, bytes: &[u8]) -> Digest {
        self.flow.digest.block(MessageId(id), block, bytes)
    }
}

/// The prefix of the next symbol that `sealer` seals, of a plain message.
pub fn symbol_prefix(sealer: &Sealer) -> Prefix {
    Prefix {
        kind: Kind::Symbol,
        ack_request: false,
        partial: false,
        again: false,
        pulled: false,
        probe: false,
        is_final: false,
        role: Role::Plain,
        class: 1,
        path: PathId(0),
        session: sealer.session(),
        number: sealer.next_number(),
    }
}

fn seal(
    sealer: &mut Sealer,
    prefix: &Prefix,
    header: &SymbolHeader,
    index_set: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = Vec::new();
    header.write(prefix, None, index_set, &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(payload);
    sealer.seal(&mut packet, 0, payload_at);
    packet
}

/// A probe of pulled message `id`, of 93,000 bytes, which claims that `unscheduled` symbols of
/// `symbol_size` bytes were sent unscheduled before it.
pub fn lying_probe(sealer: &mut Sealer, id: u64, symbol_size: u16, unscheduled: u16) -> Vec<u8> {
    let header =
        SymbolHeader { symbol: unscheduled.into(), ..lying_header(id, symbol_size, unscheduled) };
    let prefix = Prefix { ack_request: true, pulled: true, probe: true, ..symbol_prefix(sealer) };
    seal(sealer, &prefix, &header, &[], &[])
}

/// Symbol 0 of such a message, as one of 65,535 that are sent unscheduled.
pub fn lying_symbol(sealer: &mut Sealer, id: u64) -> Vec<u8> {
    let header = lying_header(id, 1_400, u16::MAX);
    let prefix = Prefix { pulled: true, ..symbol_prefix(sealer) };
    seal(sealer, &prefix, &header, &[], &[0; 1_400])
}

fn lying_header(id: u64, symbol_size: u16, unscheduled: u16) -> SymbolHeader {
    SymbolHeader {
        message: MessageId(id),
        path_number: 0,
        length: 93_000,
        // It has not finished with the messages before.
        age: id as u32,
        block: 0,
        symbol: 0,
        symbol_size,
        code: Code::Rlf256.to_wire(),
        unscheduled,
    }
}

/// The fields of an initiator at port 7000.
pub fn open_fields(incarnation: Incarnation) -> OpenFields {
    OpenFields {
        incarnation,
        addressed: ([10, 0, 0, 1], 7000).into(),
        session: SessionId(2),
        capabilities: Capabilities::default(),
        port: 7000,
        more_ports: 0,
        translated: false,
    }
}

/// The fields of a responder at the port by which it is known.
pub fn accept_fields(incarnation: Incarnation) -> AcceptFields {
    AcceptFields {
        incarnation,
        session: SessionId(u32::from(incarnation.0[0])),
        capabilities: Capabilities::default(),
        port: 0,
        more_ports: 0,
    }
}

/// Answers the handshake of `client`, on the paths that its packets took, until it has a session.
pub fn accept_by_hand(
    client: &mut Transceiver,
    now: Instant,
    path: PathId,
    fields: &AcceptFields,
) -> SessionKeys {
    loop {
        let mut packet = Vec::new();
        let transmit = client.poll_transmit(now, &mut packet).expect("the handshake continues");
        let observed = ([10, 0, 0, 1], 7000).into();
        let answer = answer_by_hand(&KEY, &packet, observed, path, fields);
        let Some((mut answer, keys)) = answer else { continue };
        client.handle_datagram(now, transmit.via, &mut answer);
        if let Some(keys) = keys {
            return keys;
        }
    }
}

/// The payload of a symbol of a message of one block, which ends in its digest; zeros if it has more
/// blocks.
pub fn payload(key: &DigestKey, header: &SymbolHeader, bytes: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; usize::from(header.symbol_size)];
    let symbols = (bytes.len() + 16).div_ceil(payload.len());
    if symbols > MAX_SOURCE_SYMBOLS {
        return payload;
    }
    let shape = BlockShape::new(symbols, payload.len()).unwrap();
    let data = Bytes::copy_from_slice(bytes);
    let digest = key.block(header.message, 0, bytes);
    let kernel = Kernel::fastest();
    let code = Code::Rlf256;
    let encoder = Encoder::with_trailer(kernel, code, shape, data, &digest.0).unwrap();
    encoder.encode(header.symbol, &mut [], &mut payload);
    payload
}

pub fn endpoint(config: Config) -> Transceiver {
    let security = Security::pre_shared(KEY);
    Transceiver::new(
        config,
        ListenPorts::one(7000),
        &security,
        Seed::new([3; 32]),
        Box::new(Egresses(1)),
    )
    .unwrap()
}
