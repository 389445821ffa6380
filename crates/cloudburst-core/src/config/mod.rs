//! Settings of an endpoint, with their defaults and trade-offs.
//!
//! [`Config`] is what a user sets, and [`Config::check`] the one place that validates it. The endpoint works with
//! a `Parameters`, in which everything that follows from the settings is computed.

mod capacity;
mod check;
mod classes;
mod error;
mod fabric;
mod limits;
mod parameters;
mod policy;
mod ports;
mod rate;
mod security;
mod tuning;

pub use self::capacity::Capacity;
pub(crate) use self::check::check_code;
pub use self::classes::{Classes, Thresholds};
pub use self::error::ConfigError;
pub use self::fabric::{DEFAULT_DSCP, EcnMode, Fabric};
pub use self::limits::Limits;
pub(crate) use self::parameters::Parameters;
pub use self::policy::{BurstPolicy, PullOrder};
pub use self::ports::ListenPorts;
pub(crate) use self::ports::MAX_PORTS;
pub use self::rate::Rate;
pub use self::security::Security;
#[doc(hidden)]
pub use self::tuning::Tuning;
pub use crate::wire::keys::{KeyError, PresharedKey};

use crate::code::{Code, MAX_SOURCE_SYMBOLS};
use crate::path::Order;
use crate::wire::keys::HEADER_TAG_LEN;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use core::time::Duration;

/// Blocks of one message that may be in flight at a time; a receiver decodes no more at once.
pub(crate) const MAX_BLOCKS_IN_FLIGHT: usize = 8;
/// Bytes of UDP payload that every path carries: the smallest MTU less 100 bytes for headers.
const MIN_PAYLOAD: usize = 476;
/// Bytes of a packet as long as nothing is known of its path: those of Ethernet.
pub(crate) const USUAL_MTU: usize = 1_500;

/// All settings of an endpoint. Every limit is mandatory: no value means "no limit".
///
/// Write it with `..Config::default()`, as below: a version that is otherwise compatible may add fields. For
/// this syntax, it is not `#[non_exhaustive]`.
///
/// # Example
///
/// ```
/// use cloudburst_core::config::Config;
/// use core::time::Duration;
///
/// let config = Config {
///     capacity: 25_000_000_000.into(), // bits per second
///     rate: 0.5.into(),                // links above the host's are over-subscribed 2:1
///     deadline: Duration::from_millis(100),
///     max_message: 1 << 20,
///     ..Config::default()
/// };
/// config.check()?;
/// # Ok::<(), cloudburst_core::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Bytes of the longest IP packet to send, 576 to 65,535. An upper bound, 9,000 by default: the MTU
    /// of the path to each peer is discovered, without ICMP and without fragments, between 1,280 and
    /// what the interface allows. Packets have up to 1,500 bytes at first, fewer as soon as the path
    /// proves to carry less, and more once 256 KiB were delivered and a longer one has arrived. Lower
    /// it where packets must stay short: those of a path that carries less than 1,280 bytes, or in
    /// switches whose queues hold bytes.
    pub mtu: usize,
    /// The link's capacity in bits per second (LINK_CAP of Algorithm 1). Default [`Capacity::Auto`]: an
    /// endpoint with sockets uses the speed that its interface reports, if it is hardware, and 10 Gb/s for
    /// loopback. The capacity of virtual interfaces, and in virtual machines, is unknown: what they report, at
    /// least 1 Gb/s, is the highest rate. Too high a value overflows queues and receive buffers, unless the
    /// rate adapts; too low a value leaves the link idle.
    pub capacity: Capacity,
    /// The share of the capacity that all messages together may use, and whether it adapts to what the network
    /// carries. At least 8,000 bits per second. Default [`Rate::Auto`]: all of it, adaptive where the capacity
    /// is unknown or the fabric is shared ([`Fabric::cloud`]); in an oversubscribed fabric, set the inverse of
    /// the ratio, such as 0.5 at 2:1.
    pub rate: Rate,
    /// The order in which packets visit the paths to a peer, from a random start for each peer.
    /// Default round robin. Digit reversal keeps queues shorter where paths share links below the
    /// spines. It must fit the path map, or every send is refused; endpoints with sockets check this as they
    /// are built.
    pub order: Order,
    /// The code of messages that do not set one. Default [`Code::default`], which needs the fewest symbols; the
    /// others are there to be compared with it. Packets name their code, so the two ends need not agree.
    pub code: Code,
    /// The burst policy of messages that do not set one: how much is sent before the receiver answers. Default
    /// [`BurstPolicy::default`]. A policy that sends more at once saves round trips where packets are lost, and
    /// loads the network where they are not. See [`Fabric::pull_above`] for long messages.
    pub policy: BurstPolicy,
    /// How long a message may take if it sets no deadline, above zero. Default 10 s. Until then, a message to a
    /// peer that does not answer is probed for and counts against `memory`; a short deadline fails messages to
    /// peers that restart or that are cut off for a moment.
    pub deadline: Duration,
    /// The longest message to send or to accept, in bytes. Default 16 MiB; below 4 GiB, and at most a
    /// twentieth of `memory`: while it is being received, a message may take twice its length.
    pub max_message: usize,
    /// The bytes of messages that the endpoint holds at a time, at least 1 MiB. Default 640 MiB. All
    /// [`limits`](Self::limits) follow from it:
    ///
    /// | limit | value | default |
    /// |---|---|---|
    /// | `send_bytes`: messages in flight, to all peers | 2/5 | 256 MiB |
    /// | `decode_bytes`: messages being received, from all peers | 2/5 | 256 MiB |
    /// | `decode_bytes_per_peer`: of these, from one peer | 1/10 | 64 MiB |
    /// | `receive_bytes`: messages that the application has not taken | 1/10 | 64 MiB |
    /// | the same of requests | 1/10 | 64 MiB |
    /// | `send_messages`: messages, connects and calls in flight | one per 10 KiB | 65,536 |
    /// | `waiting`: those that wait in line for these limits | one per 5 KiB | 131,072 |
    /// | `receive_messages`: in each of the queues of the application | one per 640 KiB | 1,024 |
    /// | `max_peers`: remembered by each half | one per 160 KiB | 4,096 |
    ///
    /// Nothing is allocated beforehand. Too low a value slows senders down: they wait for capacity at both ends.
    /// Peers, sessions and buffers of sockets take memory besides.
    pub memory: usize,
    /// What the switches of the network do. Default: one shallow queue for packets of one DSCP. Settings that the
    /// switches do not match gain nothing, and may cost packets.
    pub fabric: Fabric,
    /// How long a thread that waits for packets busy-polls before it sleeps. It busy-polls only if
    /// its previous wait was no longer than this, or no longer than twice this if it slept. Default
    /// 100 us, which saves the wake-up in successive round trips. The thread yields to others that
    /// want the processor, and sleeps for a while if they hold it for long. A service with cores to
    /// spare may busy-poll for longer; calls then notice their deadlines later by as much. 0: always
    /// sleep.
    pub busy_poll: Duration,
    /// Settings for experiments and tests, which may change or vanish in any version.
    #[doc(hidden)]
    pub tuning: Tuning,
}

impl Default for Config {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            mtu: 9_000,
            capacity: Capacity::Auto,
            rate: Rate::default(),
            order: Order::default(),
            code: Code::default(),
            policy: BurstPolicy::default(),
            deadline: Duration::from_secs(10),
            max_message: 16 * MIB,
            memory: 640 * MIB,
            fabric: Fabric::default(),
            busy_poll: Duration::from_micros(100),
            tuning: Tuning::default(),
        }
    }
}

impl Config {
    /// Returns the limits that follow from `memory`.
    pub fn limits(&self) -> Limits {
        let of_memory = Limits::of_memory(self.memory);
        let tuning = &self.tuning;
        Limits {
            send_messages: tuning.send_messages.unwrap_or(of_memory.send_messages),
            send_bytes: tuning.send_bytes.unwrap_or(of_memory.send_bytes),
            waiting: of_memory.waiting,
            receive_messages: tuning.receive_messages.unwrap_or(of_memory.receive_messages),
            receive_bytes: tuning.receive_bytes.unwrap_or(of_memory.receive_bytes),
            decode_bytes: tuning.decode_bytes.unwrap_or(of_memory.decode_bytes),
            decode_bytes_per_peer: tuning
                .decode_bytes_per_peer
                .unwrap_or(of_memory.decode_bytes_per_peer),
            max_peers: tuning.max_peers.unwrap_or(of_memory.max_peers),
        }
    }

    /// Returns the largest symbol under `code`, in bytes, that a new peer is sent, in a packet with
    /// `headers` bytes of IP, UDP and outer headers. Without an outer header, `headers` is 28 over IPv4
    /// and 48 over IPv6.
    pub fn max_symbol(&self, code: Code, headers: usize) -> usize {
        max_symbol(self.mtu.min(USUAL_MTU), self.fabric.trim_dscp.is_some(), code, headers)
    }
}

/// Bytes of UDP payload in a packet with `headers` bytes of IP, UDP and outer headers.
pub(crate) const fn max_payload(mtu: usize, headers: usize) -> usize {
    let payload = mtu.saturating_sub(headers);
    // Whatever size of headers a path map reports, there is room for a symbol.
    if payload < MIN_PAYLOAD { MIN_PAYLOAD } else { payload }
}

fn max_symbol(mtu: usize, trimmable: bool, code: Code, headers: usize) -> usize {
    // Bytes for a header tag are reserved before it is known whether the peer wants tags.
    let header_tag = if trimmable { HEADER_TAG_LEN } else { 0 };
    let index_set = code.index_set_len(MAX_SOURCE_SYMBOLS);
    max_payload(mtu, headers) - SYMBOL_OVERHEAD - header_tag - index_set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_memory_gives_the_documented_limits() {
        const MIB: usize = 1 << 20;
        let limits = Limits {
            send_messages: 65_536,
            send_bytes: 256 * MIB,
            waiting: 131_072,
            receive_messages: 1_024,
            receive_bytes: 64 * MIB,
            decode_bytes: 256 * MIB,
            decode_bytes_per_peer: 64 * MIB,
            max_peers: 4_096,
        };
        assert_eq!(Config::default().limits(), limits);
    }

    #[test]
    fn the_least_memory_leaves_every_limit_above_zero() {
        let config = Config { memory: 1 << 20, max_message: 50_000, ..Config::default() };
        assert_eq!(config.check(), Ok(()));
        let limits = config.limits();
        assert!(limits.send_messages.min(limits.receive_messages).min(limits.max_peers) > 0);
    }
}
