//! Invariants that hold after every step.

use crate::world::World;
use cloudburst_core::code::{BlockShape, Code, Decoder, MAX_SOURCE_SYMBOLS};
use cloudburst_core::config::Config;

/// Maximum number of bytes in an IP packet besides the symbol, for a long message.
const LONGEST_HEADER: usize = 160;

/// Checks all hosts.
///
/// # Panics
///
/// If an endpoint exceeds a limit, miscounts its unfinished sends, or ends one too late.
pub(crate) fn check(world: &World) {
    (0..world.hosts.len()).for_each(|host| check_host(world, host));
}

fn check_host(world: &World, number: usize) {
    let host = &world.hosts[number];
    let now = host.clock.read(world.now);
    let configs = &world.setup.configs;
    let config = &configs[number];
    let life = host.life();
    let limits = config.limits();
    host.endpoint.check_invariants();

    // One message always fits, however much memory it takes.
    let of_peer = |peer: &Config| memory_of_one(config.max_message, peer.mtu);
    let one = configs.iter().map(of_peer).max().unwrap_or_default();
    let memory = host.endpoint.receive_memory();
    assert!(memory <= limits.decode_bytes.max(one), "{memory} bytes: {config:?}");

    let (messages, bytes) = host.untaken();
    let one = if messages == 1 { config.max_message } else { 0 };
    assert!(messages <= limits.receive_messages, "{messages} messages: {config:?}");
    assert!(bytes <= limits.receive_bytes.max(one), "{bytes} bytes: {config:?}");

    let open = world.log.messages.open(number, life);
    assert_eq!(host.endpoint.unfinished(), open.count());
    if host.is_running() {
        let late = world.log.messages.open(number, life).find(|sent| sent.deadline < now);
        assert!(late.is_none(), "past its deadline: {late:?}");
    }

    let counters = host.counters();
    let smallest = config.mtu - LONGEST_HEADER;
    if let Some(cap) = world.log.messages.packet_cap(number, life, smallest, now) {
        let cap = cap as u64 + path_probes(cap as u64, world.setup.egresses.into());
        assert!(counters.sender.symbols_sent <= cap, "more than {cap} symbols: {counters:?}");
    }
    assert_eq!((counters.receiver.corrupt_blocks, counters.receiver.nonsense), (0, 0));
}

/// Maximum number of probes of degraded paths among `symbols`. The cap does not count them.
const fn path_probes(symbols: u64, paths: u64) -> u64 {
    /// Visits to a degraded path for each probe.
    const PROBE_EVERY: u64 = 16;
    (symbols / PROBE_EVERY + 1) * (paths - 1)
}

/// Maximum memory that a receiver may account for one message.
fn memory_of_one(max_message: usize, mtu: usize) -> usize {
    /// Blocks of a message that are decoded at a time.
    const MAX_DECODING: usize = 8;
    /// Memory besides the bytes and the decoders.
    const BOOKKEEPING: usize = 8_192;
    let symbols = max_message / (mtu - LONGEST_HEADER) + 1;
    let shape = BlockShape::new(symbols.min(MAX_SOURCE_SYMBOLS), mtu)
        .expect("no block of a datagram's size is too large");
    let blocks = symbols.div_ceil(MAX_SOURCE_SYMBOLS).min(MAX_DECODING);
    max_message + blocks * Decoder::memory(Code::Rlf256, shape) + BOOKKEEPING
}
