//! Settings of an endpoint, with their defaults and trade-offs.

mod capacity;
mod check;
mod classes;
mod policy;
mod security;

pub use self::capacity::Capacity;
pub use self::check::ConfigError;
pub(crate) use self::check::check_code;
pub use self::classes::{Classes, Thresholds};
pub use self::security::Security;
pub use crate::wire::keys::{KeyError, PresharedKey};

use crate::code::{Code, MAX_SOURCE_SYMBOLS};
use crate::path::{MAX_TRAIN, Order};
use crate::rate::Downlink;
use crate::wire::Capabilities;
use crate::wire::keys::HEADER_TAG_LEN;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use core::time::Duration;

/// Blocks of one message that may be in flight at a time; a receiver decodes no more at once.
pub(crate) const MAX_BLOCKS_IN_FLIGHT: usize = 8;
/// Bytes of UDP payload that every path carries: the smallest MTU less 100 bytes for headers.
const MIN_PAYLOAD: usize = 476;
/// The maximum number of ports at which one endpoint accepts messages.
pub(crate) const MAX_PORTS: u16 = 64;

/// How much a sender sends before it hears from the receiver.
///
/// Its text form is `oblivious`, `budgeted` or `budgeted:margin=0.25`, `pulled` or `pulled:window=24`.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::{BurstPolicy, Config};
/// // Sends repair symbols for 25 % loss at once.
/// let policy = BurstPolicy::Budgeted { margin: 0.25 };
/// assert_eq!("budgeted:margin=0.25".parse(), Ok(policy));
/// let config = Config { policy, ..Config::default() };
/// # assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BurstPolicy {
    /// Algorithm 1: symbols at the rate until STOP, whatever NACKs say. After eight times the
    /// block, the burst slows to a trickle. It has the lowest latency under loss, but sends surplus
    /// packets for one round trip of each message.
    Oblivious,
    /// Opens with the symbols that suffice without loss plus the share `margin`, requests an ACK
    /// and sends the missing symbols (section III-D). Backs off while no answer comes.
    Budgeted {
        /// Repair symbols that are sent at once, as a share of the block; 0.0 to 4.0. A larger
        /// share covers more loss without another round trip, and adds as much load.
        margin: f32,
    },
    /// Opens with a few symbols, then sends one symbol for each that arrived or was lost, as the
    /// receiver pulls them at the rate of its link, which all senders share (SCDP, section IV-C).
    /// Many senders to one receiver then lose few packets beyond their openings. Pulls cost small
    /// packets in the reverse direction, and limit a single message to one window per round trip.
    ///
    /// The message is budgeted instead, with the default margin, if the peer does not support
    /// pulling or if the code is not systematic.
    Pulled {
        /// Symbols in the opening, and the maximum in flight; 1 to 1,024. `None` chooses by the
        /// capacity of the link: 12 at 1 Gb/s, 24 at 5 Gb/s and 32 from 10 Gb/s on.
        window: Option<u16>,
    },
}

impl Default for BurstPolicy {
    fn default() -> Self {
        Self::Budgeted { margin: 1.0 / 16.0 }
    }
}

/// The order in which a receiver pulls the messages that are arriving.
///
/// Its text form is `round-robin` or `shortest-first`.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::{Config, PullOrder};
/// let config =
///     Config { pull_above: 100_000, pull_order: PullOrder::ShortestFirst, ..Config::default() };
/// assert_eq!("shortest-first".parse(), Ok(config.pull_order));
/// # assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullOrder {
    /// One symbol of each message in turn (SCDP, section IV-C).
    #[default]
    RoundRobin,
    /// The message with the fewest missing symbols first; every eighth pull is for the message that
    /// has waited longest.
    ShortestFirst,
}

/// All settings of an endpoint. Every limit is mandatory: no value means "no limit".
///
/// Write it with `..Config::default()`, as below: a version that is otherwise compatible may add fields. For
/// this syntax, it is not `#[non_exhaustive]`.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::Config;
/// # use core::time::Duration;
/// let config = Config {
///     mtu: 9_000,
///     deadline: Duration::from_millis(100),
///     max_message: 1 << 20,
///     ..Config::default()
/// };
/// config.check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Bytes of the longest IP packet to send (MTU), 576 to 65,535. The default of 1,500 leaves 1,472
    /// bytes of UDP payload over IPv4 and 1,452 over IPv6, and fewer under an outer header. If it
    /// exceeds the MTU of the path, Linux learns the latter from ICMP and then sends full-size packets
    /// in fragments, the loss of one of which loses the packet; where ICMP is filtered, all full-size
    /// packets are lost.
    pub mtu: usize,
    /// The link's capacity (LINK_CAP of Algorithm 1). Default [`Capacity::Auto`]: an endpoint with
    /// sockets uses what its interface reports.
    pub capacity: Capacity,
    /// The share `r` of the capacity that all messages together may use, in 0.0 < r <= 1.0, and at
    /// least 8,000 bits per second. Default 1.0; in an oversubscribed fabric, set the inverse of the
    /// ratio, such as 0.5 at 2:1.
    pub rate: f64,
    /// Whether the rate is lowered while packets on every path to every peer are lost or marked CE and
    /// a lower rate reduces this; it rises again by itself. Too high a `capacity` then does little harm.
    /// Losses on some paths or to some peers only, and random losses, do not change the rate. Default
    /// false.
    ///
    /// Do not combine it with [`BurstPolicy::Oblivious`], whose bursts lose packets by design.
    pub adaptive_rate: bool,
    /// The longest packet train, in packets: packets sent back to back on one path by one system call.
    /// Default 64, 1 to 64; Algorithm 1 uses 1.
    ///
    /// This is an upper limit: the length is learned for each path
    /// ([`PathStats::train`](crate::path::PathStats::train)). It starts at 4, doubles while no packet
    /// is missing, halves for one or two missing packets, and falls back to 4 for more. No train takes
    /// longer than 200 us at the rate, except that 4 packets are always allowed.
    ///
    /// Longer trains save system calls, but need room in the queues of switches, where trains of
    /// several senders meet. A queue of 8 packets hardly ever drops from trains of 4 if each path has
    /// links of its own. With hashed paths, which collide, and in an incast, it drops at any length.
    pub train: usize,
    /// The order in which packets visit the paths to a peer, from a random start for each peer.
    /// Default round robin. Digit reversal keeps queues shorter where paths share links below the
    /// spines, the more so the smaller `train` is. It must fit the path map, or every send is refused.
    pub order: Order,
    /// How symbols are sorted into classes. Default: one class.
    ///
    /// With several classes, short messages overtake long ones if switches serve the classes' DSCPs
    /// by strict priority and the endpoint has a DSCP for each. The two ends need not agree. With
    /// one DSCP, or one queue for all, several classes gain nothing.
    pub classes: Classes,
    /// The code of messages that do not set one. Default [`Code::default`].
    pub code: Code,
    /// The burst policy of messages that do not set one. Default [`BurstPolicy::default`].
    pub policy: BurstPolicy,
    /// The size in bytes from which messages are pulled ([`BurstPolicy::Pulled`]) unless they set a
    /// policy of their own. Default `usize::MAX`: none are.
    pub pull_above: usize,
    /// The order in which this endpoint pulls messages. Default round robin.
    pub pull_order: PullOrder,
    /// The rate at which this endpoint pulls all messages together. Default `None`: `capacity` times
    /// `rate`, for this endpoint alone. Endpoints that share a link must use clones of one
    /// [`Downlink`], or together they pull more than the link carries.
    pub downlink: Option<Downlink>,
    /// Whether a probe, a small packet in the class of answers, follows the opening of each block
    /// of a budgeted message, if the opening has two packets or more (Aeolus). Default false.
    /// Pulled messages always have probes.
    ///
    /// The receiver answers the probe once the opening has arrived or is overdue, so that the loss
    /// of a whole opening costs a round trip instead of a timeout. Set it where switches do not
    /// drop the class of answers, because it has its own queue or because of `aeolus`. It costs one
    /// packet per block.
    pub probe: bool,
    /// How long a message may take if it sets no deadline. Default 10 s.
    pub deadline: Duration,
    /// The most packets sent for one block: this many times its source symbols, plus 256. Default
    /// 32, 2 to 1,000.
    pub max_redundancy: u32,
    /// Blocks of one message in flight at a time, at most 8. Default 2.
    pub blocks_in_flight: usize,
    /// Messages and connects that may be waiting or in flight, to all peers, and calls that may be in
    /// flight. Default 65,536.
    pub send_messages: usize,
    /// Bytes that may be waiting or in flight, to all peers. Default 256 MiB.
    pub send_bytes: usize,
    /// The longest message to send or to accept, in bytes. Default 16 MiB, below 4 GiB; `decode_bytes` and
    /// `decode_bytes_per_peer` must be at least twice as large.
    pub max_message: usize,
    /// Delivered messages that the application has not taken yet; requests have a queue of the same
    /// length of their own. Default 1,024.
    pub receive_messages: usize,
    /// Bytes of these messages; the queue of requests may hold as many again. Default 64 MiB; a
    /// single message always fits.
    pub receive_bytes: usize,
    /// Bytes of messages being received from all peers. Default 256 MiB.
    pub decode_bytes: usize,
    /// Bytes of messages being received from one peer. Default 64 MiB.
    pub decode_bytes_per_peer: usize,
    /// How long a receiver keeps an incomplete message after its last new symbol, and a complete one
    /// that the application has not taken after the last symbol of any kind from its sender. Default
    /// 15 s: longer than the default deadline, after which its sender has given up.
    pub decode_timeout: Duration,
    /// How long a thread that waits for packets busy-polls before it sleeps. It busy-polls only if
    /// its previous wait was no longer than this, or no longer than twice this if it slept. Default
    /// 100 us, which saves the wake-up in successive round trips. The thread yields to others that
    /// want the processor, and sleeps for a while if they hold it for long. A service with cores to
    /// spare may busy-poll for longer; calls then notice their deadlines later by as much. 0: always
    /// sleep.
    pub busy_poll: Duration,
    /// Peers that each half, sending and receiving, remembers. Default 4,096.
    pub max_peers: usize,
    /// Whether ECN bits tell switches which packets to drop first, as in Aeolus (SIGCOMM 2020).
    /// Default false: all packets are Not-ECT.
    ///
    /// If set, symbols sent before the receiver's first answer to their message stay Not-ECT; all
    /// others, and all handshakes and answers, are marked ECT(0). A switch that marks (RED with ECN)
    /// at one low threshold, such as 6 KB, then drops the former beyond it and spares the latter. Set
    /// it at both ends, or the answers are dropped first, and only where messages are pulled: it slows
    /// down bursts. Without such a switch it gains nothing.
    pub aeolus: bool,
    /// Whether all packets are marked as ECN-capable, ECT(0) (RFC 3168). Default false: they are
    /// Not-ECT. With [`aeolus`](Self::aeolus), symbols stay Not-ECT until their message is answered.
    ///
    /// Receivers report to senders how many symbols were marked CE. A path with marks is not reused
    /// ([`Order::Recycled`]). Set it where switches mark packets of the endpoint's DSCP.
    pub ecn: bool,
    /// Whether switches may trim symbols: cut off the payload of a packet that finds its queue full, and
    /// forward the header with priority (NDP; SCDP, section IV-B). Default false. Takes effect only
    /// with peers that set it, too.
    ///
    /// Symbols then carry an 8-byte tag that authenticates the header of a trimmed one. A trimmed symbol
    /// counts as lost but its path as alive, so that a lost symbol of a pulled message is pulled again
    /// within a round trip, without waiting for a timer or a later packet. Other messages gain little.
    /// It gains nothing without switches that trim and that adjust the lengths in the IP and UDP
    /// headers: hosts drop packets that are shorter than these lengths.
    pub trimmable: bool,
    /// The UDP port that peers are told to send to; 0: the source port of the packets.
    pub port: u16,
    /// The number of ports that accept messages: `port` and those right after it. Peers learn the
    /// number, and spread symbols over these ports if their path map does. Default 1; at most 64.
    pub ports: u16,
    /// Whether other endpoints share the port that peers know, and answer handshakes there. Default
    /// false.
    ///
    /// If set, peers learn `port` from the handshake and send everything else there, because a packet
    /// to the shared port may reach any of the endpoints. So `port` must not be 0; endpoints with
    /// sockets replace a 0 by a port of their own.
    pub reuse_port: bool,
}

impl Default for Config {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            mtu: 1500,
            capacity: Capacity::Auto,
            rate: 1.0,
            adaptive_rate: false,
            train: MAX_TRAIN,
            order: Order::default(),
            classes: Classes::default(),
            code: Code::default(),
            policy: BurstPolicy::default(),
            pull_above: usize::MAX,
            pull_order: PullOrder::default(),
            downlink: None,
            probe: false,
            deadline: Duration::from_secs(10),
            max_redundancy: 32,
            blocks_in_flight: 2,
            send_messages: 65_536,
            send_bytes: 256 * MIB,
            max_message: 16 * MIB,
            receive_messages: 1024,
            receive_bytes: 64 * MIB,
            decode_bytes: 256 * MIB,
            decode_bytes_per_peer: 64 * MIB,
            decode_timeout: Duration::from_secs(15),
            busy_poll: Duration::from_micros(100),
            max_peers: 4096,
            aeolus: false,
            ecn: false,
            trimmable: false,
            port: 0,
            ports: 1,
            reuse_port: false,
        }
    }
}

impl Config {
    /// Returns the bytes of UDP payload in a packet with `headers` bytes of IP, UDP and outer headers.
    pub(crate) const fn max_payload(&self, headers: usize) -> usize {
        let payload = self.mtu.saturating_sub(headers);
        // Whatever size of headers a path map reports, there is room for a symbol.
        if payload < MIN_PAYLOAD { MIN_PAYLOAD } else { payload }
    }

    /// Returns the largest symbol under `code`, in bytes, for a packet with `headers` bytes of IP, UDP
    /// and outer headers. Without an outer header, `headers` is 28 over IPv4 and 48 over IPv6.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_core::config::Config;
    /// let config = Config::default();
    /// let symbol = config.max_symbol(config.code, 28); // over IPv4
    /// println!("a message of 93,000 bytes takes {} symbols", 93_000_usize.div_ceil(symbol));
    /// ```
    pub fn max_symbol(&self, code: Code, headers: usize) -> usize {
        let index_set = code.index_set_len(MAX_SOURCE_SYMBOLS);
        self.max_payload(headers) - SYMBOL_OVERHEAD - self.header_tag() - index_set
    }

    /// Bytes of a header tag; room for it is reserved before it is known whether the peer wants tags.
    const fn header_tag(&self) -> usize {
        if self.trimmable { HEADER_TAG_LEN } else { 0 }
    }

    /// Returns the capabilities that this endpoint declares.
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities::OURS
            | if self.trimmable { Capabilities::TRIM } else { Capabilities::default() }
    }

    /// Returns the capabilities of a session with a peer that declares `theirs`: without header tags
    /// unless both ends want them.
    pub(crate) const fn capabilities_with(&self, theirs: Capabilities) -> Capabilities {
        if self.trimmable { theirs } else { theirs.without(Capabilities::TRIM) }
    }
}
