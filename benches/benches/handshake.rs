//! The cost of handshake packets at each end, without sockets:
//! `cargo bench -p cloudburst-benches --bench handshake`.
//!
//! | benchmark | what is timed |
//! |---|---|
//! | `initiator/hello` | from the application's call to HELLO |
//! | `initiator/open` | from RETRY to OPEN |
//! | `initiator/accept` | from ACCEPT to the session's keys |
//! | `responder/hello` | from HELLO to RETRY; a replayed one that names no live session is the same |
//! | `responder/open` | from OPEN to ACCEPT |
//! | `responder/junk` | dropping a packet that has the length and the first byte of a HELLO |
//! | `responder/querying-hello-replayed` | dropping a replayed HELLO that queries a live session |
//! | `responder/open-replayed-elsewhere` | from OPEN with another address's token to RETRY |
//! | `responder/open-repeated` | from a copy of an OPEN to its ACCEPT |
//!
//! All packets go through [`Transceiver`], so that the measurements include its tables as well as the
//! cryptography. An initiator has no other peer; the responder holds the maximum number of half-open
//! sessions. It accepts one key: each further key adds a hash to every packet under a later key. Packets
//! are made outside the timing.

use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::id::{Incarnation, PathId, SessionId};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::handshake::{
    AcceptFields, HELLO_LEN, Hello, HelloKey, Initiation, OpenFields, Retry, answer_by_hand,
    shake_hands,
};
use cloudburst_core::wire::seal::Sealer;
use cloudburst_core::wire::{Capabilities, Kind};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{self, Duration};

const KEY: [u8; 32] = [7; 32];
/// The time between two packets; at the rate of these endpoints, pacing delays none.
const STEP: Duration = Duration::from_nanos(100);
const INITIATOR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7000);
const RESPONDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 7000);
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 3)), 7000);

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
        .configure_from_args();
    initiator(&mut criterion);
    responder(&mut criterion);
    criterion.final_summary();
}

fn initiator(criterion: &mut Criterion) {
    let connecting = || {
        let mut initiator = End::new(1);
        initiator.connect();
        let retry = answer(&initiator.sent, Kind::Retry);
        (initiator, retry)
    };
    let opening = || {
        let (mut initiator, mut retry) = connecting();
        initiator.exchange(RESPONDER, &mut retry);
        let accept = answer(&initiator.sent, Kind::Accept);
        (initiator, accept)
    };
    let (mut initiator, mut accept) = opening();
    initiator.take(RESPONDER, &mut accept);
    assert_eq!(initiator.endpoint.counters().sender.sessions_opened, 1);

    let mut group = criterion.benchmark_group("initiator");
    bench(&mut group, "hello", || (End::new(1), Vec::new()), |end, _| end.connect());
    bench(&mut group, "open", connecting, |end, retry| end.exchange(RESPONDER, retry));
    bench(&mut group, "accept", opening, |end, accept| end.take(RESPONDER, accept));
    group.finish();
}

/// Times `routine` on fresh endpoints, which `setup` makes together with their input packet.
fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    setup: impl Fn() -> (End, Vec<u8>),
    routine: impl Fn(&mut End, &mut Vec<u8>),
) {
    group.bench_function(name, |bencher| {
        let routine = |(end, packet): &mut (End, Vec<u8>)| routine(end, packet);
        bencher.iter_batched_ref(&setup, routine, BatchSize::NumIterations(64));
    });
}

fn responder(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("responder");
    let mut responder = End::new(2);
    let mut nonce = 0;
    let mut new_open = |responder: &mut End| {
        nonce += 1;
        fresh_open(responder, nonce)
    };

    let mut hello = fresh_hello(0);
    responder.expect(STRANGER, &mut hello, Kind::Retry);
    group.bench_function("hello", |bencher| {
        bencher.iter(|| responder.exchange(STRANGER, &mut hello));
    });

    let mut open = new_open(&mut responder);
    responder.expect(INITIATOR, &mut open, Kind::Accept);
    group.bench_function("open", |bencher| {
        bencher.iter_custom(|iterations| {
            let opens: Vec<_> = (0..iterations).map(|_| new_open(&mut responder)).collect();
            let start = time::Instant::now();
            for mut open in opens {
                responder.exchange(INITIATOR, &mut open);
            }
            start.elapsed()
        });
    });

    let mut open = new_open(&mut responder);
    for _ in 0..2 {
        responder.expect(INITIATOR, &mut open, Kind::Accept);
    }
    group.bench_function("open-repeated", |bencher| {
        bencher.iter(|| responder.exchange(INITIATOR, &mut open));
    });

    responder.expect(STRANGER, &mut open, Kind::Retry);
    group.bench_function("open-replayed-elsewhere", |bencher| {
        bencher.iter(|| responder.exchange(STRANGER, &mut open));
    });

    let mut querying = querying_hello(&mut responder);
    // ALIVE.
    responder.expect(INITIATOR, &mut querying, Kind::Answer);
    responder.take(STRANGER, &mut querying);
    assert_eq!(responder.endpoint.counters().receiver.replayed, 1);
    group.bench_function("querying-hello-replayed", |bencher| {
        bencher.iter(|| responder.take(STRANGER, &mut querying));
    });

    // No key makes this MAC.
    let mut junk = [0x31; HELLO_LEN];
    responder.take(STRANGER, &mut junk);
    assert_eq!(responder.endpoint.counters().receiver.refused_handshakes, 1);
    group.bench_function("junk", |bencher| {
        bencher.iter(|| responder.take(STRANGER, &mut junk));
    });
    group.finish();
}

/// An endpoint with one path, and the last packet that it sent.
struct End {
    endpoint: Transceiver,
    now: Instant,
    sent: Vec<u8>,
}

impl End {
    fn new(seed: u8) -> Self {
        let config = Config { capacity: 1_000_000_000_000.into(), ..Config::default() };
        let now = Instant::from_nanos(1_000_000_000);
        let security = Security::pre_shared(KEY);
        let seed = Seed::new([seed; 32]);
        let endpoint = Transceiver::new(
            config,
            ListenPorts::one(7000),
            &security,
            seed,
            Box::new(Egresses(1)),
        )
        .expect("the configuration is in range");
        Self { endpoint, now, sent: Vec::new() }
    }

    /// Starts a handshake.
    fn connect(&mut self) {
        self.endpoint
            .connect(self.now, RESPONDER, &SendOptions::default())
            .expect("there is capacity for one peer");
        self.transmit();
    }

    fn take(&mut self, from: SocketAddr, packet: &mut [u8]) {
        let via = Via { egress: 0, local: None, remote: from };
        self.endpoint.handle_datagram(self.now, via, packet);
    }

    fn exchange(&mut self, from: SocketAddr, packet: &mut [u8]) {
        self.now += STEP;
        self.take(from, packet);
        self.transmit();
    }

    /// Handles a packet, whose answer must be of this kind.
    fn expect(&mut self, from: SocketAddr, packet: &mut [u8], kind: Kind) {
        self.exchange(from, packet);
        assert_eq!(Kind::of(&self.sent), Ok(kind));
    }

    fn transmit(&mut self) {
        self.sent.clear();
        let sent = self.endpoint.poll_transmit(self.now, &mut self.sent);
        assert!(sent.is_some(), "each packet that is exchanged has an answer");
    }
}

/// Returns the answer to an initiator's packet of this kind.
fn answer(packet: &[u8], kind: Kind) -> Vec<u8> {
    let fields = AcceptFields {
        incarnation: Incarnation([2; 16]),
        session: SessionId(1),
        capabilities: Capabilities::default(),
        port: 0,
        more_ports: 0,
    };
    let (answer, _) = answer_by_hand(&KEY, packet, INITIATOR, PathId(0), &fields)
        .expect("initiators send HELLOs and OPENs");
    assert_eq!(Kind::of(&answer), Ok(kind));
    answer
}

fn fields() -> OpenFields {
    OpenFields {
        incarnation: Incarnation([1; 16]),
        addressed: RESPONDER,
        session: SessionId(2),
        capabilities: Capabilities::default(),
        port: 7000,
        more_ports: 0,
        translated: false,
    }
}

fn fresh_hello(nonce: u64) -> Vec<u8> {
    let mut hello = Vec::new();
    Hello::write(PathId(0), 0, nonce, None, &HelloKey::new(&KEY), &mut hello);
    hello
}

/// Returns an OPEN with a token of this responder.
fn fresh_open(responder: &mut End, nonce: u64) -> Vec<u8> {
    let key = HelloKey::new(&KEY);
    responder.exchange(INITIATOR, &mut fresh_hello(nonce));
    let retry = Retry::parse(&key, &responder.sent).expect("a RETRY").expect("under this key");
    let mut ephemeral = [1; 32];
    ephemeral[..8].copy_from_slice(&nonce.to_be_bytes());
    let initiation = Initiation::new(&KEY, nonce, ephemeral, &fields());
    let mut open = Vec::new();
    initiation.open(PathId(0), retry.return_path, retry.token).write(&key, &mut open);
    open
}

/// Returns a HELLO that queries a newly opened session.
fn querying_hello(responder: &mut End) -> Vec<u8> {
    // Differs from the nonces of the other handshakes.
    let nonce = u64::MAX;
    let (_, keys) = shake_hands(&KEY, nonce, &fields(), |mut packet| {
        responder.exchange(INITIATOR, &mut packet);
        responder.sent.clone()
    });
    let mut sealer = Sealer::new(keys.forward.symbols);
    let mut hello = Vec::new();
    Hello::write(PathId(0), 0, nonce, Some(&mut sealer), &HelloKey::new(&KEY), &mut hello);
    hello
}
