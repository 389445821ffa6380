//! Settings of an endpoint, with defaults and trade-offs.

mod capacity;
mod check;
mod classes;
mod security;

pub use self::capacity::Capacity;
pub use self::check::ConfigError;
pub(crate) use self::check::check_code;
pub(crate) use self::classes::MAX_LEVELS;
pub use self::classes::{Classes, Thresholds};
pub use self::security::Security;
pub use crate::wire::keys::{KeyError, PresharedKey};

use crate::code::{Code, MAX_SOURCE_SYMBOLS};
use crate::path::{Downlink, Order};
use crate::wire::Capabilities;
use crate::wire::keys::HEADER_TAG_LEN;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use core::time::Duration;

/// Blocks of one message that may be under way at a time; a receiver decodes no more at once.
pub(crate) const MAX_BLOCKS_IN_FLIGHT: usize = 8;
/// Bytes of UDP payload that any path carries: of the smallest MTU, 100 are left for headers.
const MIN_PAYLOAD: usize = 476;
/// Ports of one endpoint that take messages.
pub(crate) const MAX_PORTS: u16 = 64;
/// Packets in a train at most: what one system call with UDP_SEGMENT takes (UDP_MAX_SEGMENTS).
pub(crate) const MAX_TRAIN: usize = 64;

/// How long and how hard a sender bursts before it hears from the receiver.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::{BurstPolicy, Config};
/// // Repair symbols for one loss in four are sent at once.
/// let policy = BurstPolicy::Budgeted { margin: 0.25 };
/// let config = Config { policy, ..Config::default() };
/// # assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BurstPolicy {
    /// Algorithm 1: symbols at the rate until STOP, without ACK requests. After eight times the
    /// block, the burst slows to a trickle. It has the lowest latency under loss, and sends surplus
    /// packets for one round trip of each message.
    Oblivious,
    /// Opens with the symbols that suffice without loss plus the share `margin`, requests an ACK
    /// and sends what is missing (section III-D). Slows down while no answer comes.
    Budgeted {
        /// Repair symbols that are sent at once, as a share of the block; 0.0 to 4.0. A larger
        /// share covers more loss without another round trip, and adds as much load.
        margin: f32,
    },
    /// Opens with a few symbols, then sends what the receiver pulls: one symbol for each that
    /// arrived or was lost, at the rate of the receiver's link, which all senders share (SCDP,
    /// section IV-C). Many senders to one receiver then lose little beyond their openings. Pulls
    /// cost small packets in the reverse direction, and a message that is alone gets one window per
    /// round trip.
    ///
    /// The message is budgeted instead, with the default margin, if the peer does not support
    /// pulling or if the code is not systematic.
    Pulled {
        /// Symbols that the message opens with, and the most that are in flight; 1 to 1,024. With
        /// `None`, the capacity of the link decides: 12 at 1 Gb/s, 24 at 5 Gb/s and 32 from 10 Gb/s
        /// on.
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
/// # Example
///
/// ```
/// # use cloudburst_core::config::{Config, PullOrder};
/// let config =
///     Config { pull_above: 100_000, pull_order: PullOrder::ShortestFirst, ..Config::default() };
/// # assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullOrder {
    /// One symbol of each message in turn (SCDP, section IV-C).
    #[default]
    RoundRobin,
    /// The message with the fewest missing symbols first; every eighth symbol is of the message
    /// that has waited longest.
    ShortestFirst,
}

/// Everything that can be set about an endpoint. Every limit is mandatory: none means "no limit".
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
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of the longest IP packet to send (MTU). Default 1,500, of which headers leave 1,472 bytes
    /// of UDP payload over IPv4 and 1,452 over IPv6; an outer header takes more. From 576 to 65,535.
    /// More than the path carries loses every packet.
    pub mtu: usize,
    /// The link's capacity (LINK_CAP of Algorithm 1). Default [`Capacity::Auto`]: an endpoint with
    /// sockets uses what its interface reports.
    pub capacity: Capacity,
    /// The share `r` of the capacity that all messages together may use, in 0.0 < r <= 1.0.
    /// Default 1.0; in an over-subscribed fabric, the over-subscription ratio.
    pub rate: f64,
    /// Whether the rate is lowered while packets get lost, or are marked CE, on every path to every peer,
    /// and a lower rate loses less; it rises again by itself. Then a `capacity` that is too high does
    /// little harm. Losses of some paths or of some peers, and random ones, change nothing. Default false.
    ///
    /// Do not set it with [`BurstPolicy::Oblivious`], whose bursts lose packets by design.
    pub adaptive_rate: bool,
    /// Longest packet train, in packets: packets sent back to back on one path by one system call.
    /// Default 64, 1 to 64; Algorithm 1 says 1.
    ///
    /// This is a ceiling: the length is learned for each path
    /// ([`PathStats::train`](crate::path::PathStats::train)). It begins with 4, doubles while nothing is
    /// missing, halves for one or two missing packets, and falls back to 4 for more. No train takes
    /// longer than 200 us at the rate, except that 4 packets may always go.
    ///
    /// Longer trains save system calls, but need room in the queues of switches, where trains of
    /// several senders meet. A queue of 8 packets hardly ever drops from trains of 4 if each path has
    /// links of its own. With hashed paths, which collide, and in an incast, it drops at any length.
    pub train: usize,
    /// In which order packets visit the paths to a peer, each from a random place on. Default
    /// round robin. Digit reversal keeps queues shorter where paths share links below the spines,
    /// the more so the smaller `train` is. It must fit the path map, or every send is refused.
    pub order: Order,
    /// How symbols are sorted into classes. Default: one class.
    ///
    /// With several classes, short messages overtake long ones if switches serve the classes' DSCPs
    /// by strict priority and the endpoint has a DSCP for each. The two ends need not agree. With
    /// one DSCP, or one queue for all, several classes gain nothing.
    pub classes: Classes,
    /// The code of messages that do not set one.
    pub code: Code,
    /// The burst policy of messages that do not set one.
    pub policy: BurstPolicy,
    /// The size in bytes from which on messages are pulled ([`BurstPolicy::Pulled`]), unless they
    /// choose a policy. Default `usize::MAX`: none.
    pub pull_above: usize,
    /// The order in which this endpoint pulls messages. Default round robin.
    pub pull_order: PullOrder,
    /// The rate at which this endpoint pulls all messages together. Default `None`: `capacity` times
    /// `rate`, for this endpoint alone. Endpoints that share a link must have clones of one
    /// [`Downlink`], or together they pull more than it carries.
    pub downlink: Option<Downlink>,
    /// Whether a probe, a small packet in the class of answers, follows the opening of each block
    /// of a budgeted message, if the opening has two packets or more (Aeolus). Default false.
    /// Pulled messages always have probes.
    ///
    /// The receiver answers the probe once the opening has arrived or is overdue, so that the loss
    /// of a whole opening costs a round trip instead of a timeout. Set it where switches do not
    /// drop the class of answers, because it has a queue of its own or by `aeolus`. It costs one
    /// packet for each block.
    pub probe: bool,
    /// How long a message may take if it sets no deadline. Default 10 s.
    pub deadline: Duration,
    /// Packets for one block at most: this many times its source symbols, plus 256. Default 32.
    pub max_redundancy: u32,
    /// Blocks of one message under way at a time, at most 8. Default 2.
    pub blocks_in_flight: usize,
    /// Messages and connects that may wait or be under way, to all peers, and calls that may be in
    /// flight. Default 65,536.
    pub send_messages: usize,
    /// Bytes that may wait or be under way, to all peers. Default 256 MiB.
    pub send_bytes: usize,
    /// The longest message to send or to accept, in bytes. Default 16 MiB.
    pub max_message: usize,
    /// Delivered messages that the application has not taken yet, and as many requests in addition.
    /// Default 1,024.
    pub receive_messages: usize,
    /// Bytes of these messages, and as many of these requests. Default 64 MiB; a single message
    /// always fits.
    pub receive_bytes: usize,
    /// Bytes of messages being received, of all peers. Default 256 MiB.
    pub decode_bytes: usize,
    /// Bytes of messages being received, of one peer. Default 64 MiB.
    pub decode_bytes_per_peer: usize,
    /// How long a receiver keeps an incomplete message without new symbols, and a complete one that
    /// the application has not taken without any symbol from its sender. Default 15 s: longer than
    /// the default deadline, after which its sender has given up.
    pub decode_timeout: Duration,
    /// How long a thread that waits for packets busy-polls before it sleeps. It does so if its
    /// previous wait was no longer than this, or than twice this if it slept. Default 100 us, which
    /// spares successive round trips the wake-up. The thread yields to others that want the
    /// processor, and sleeps for a while if they keep it for long. A service with cores to spare
    /// may busy-poll for longer; calls then notice their deadlines as much later. 0: always sleep.
    pub busy_poll: Duration,
    /// Peers that each half, sending and receiving, remembers. Default 4,096.
    pub max_peers: usize,
    /// Whether ECN bits tell switches which packets to drop first, as in Aeolus (SIGCOMM 2020).
    /// Default false: all packets are Not-ECT.
    ///
    /// If set, symbols that are sent before the receiver has answered anything of their message
    /// stay Not-ECT; all others, and all handshakes and answers, are marked ECT(0). A switch that
    /// marks (RED with ECN) at one low threshold, such as 6 KB, then drops the former beyond it and
    /// spares the latter. Set it at both ends, or the answers are dropped first, and only where
    /// messages are pulled: bursts become slower with it. Without such a switch it gains nothing.
    pub aeolus: bool,
    /// Whether all packets are marked as ECN-capable, ECT(0) (RFC 3168). Default false: they are
    /// Not-ECT. With [`aeolus`](Self::aeolus), symbols stay Not-ECT until their message is answered.
    ///
    /// Receivers tell senders which symbols met congestion (CE). A path with marks is not reused
    /// ([`Order::Recycled`]). Set it where switches mark packets of the endpoint's DSCP.
    pub ecn: bool,
    /// Whether switches may trim symbols: cut off the payload of a packet that finds its queue full, and
    /// forward the header with priority (NDP; SCDP, section IV-B). Default false. In force towards
    /// peers that set it too.
    ///
    /// Symbols then carry a tag of their header, 8 bytes, so that a receiver can believe a trimmed one.
    /// It counts as lost and its path as alive, so that a lost symbol of a pulled message is pulled anew
    /// within a round trip, with neither a timer nor a later packet. Other messages gain little. Without
    /// switches that trim, and that adjust the lengths in the IP and UDP headers, it gains nothing:
    /// hosts drop packets that are shorter than these say.
    pub trimmable: bool,
    /// The UDP port that peers are told to answer to; 0: the one that packets come from.
    pub port: u16,
    /// How many ports accept messages: that one and those right after it. Peers learn the number,
    /// and spread symbols over these ports if their path map does. Default 1; at most 64.
    pub ports: u16,
    /// Whether other endpoints share the port that peers know, and answer handshakes there. Default
    /// false.
    ///
    /// If set, peers are told `port` with the handshake, and send everything else there: what comes
    /// to the shared port reaches any of those that share it. So `port` must not be 0, for which
    /// endpoints with sockets put one of their own.
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
    /// Bytes of UDP payload that a packet carries beside `headers` bytes of IP, UDP and outer headers.
    pub(crate) const fn max_payload(&self, headers: usize) -> usize {
        let payload = self.mtu.saturating_sub(headers);
        // Whatever a path map says of its headers, there is room for a symbol.
        if payload < MIN_PAYLOAD { MIN_PAYLOAD } else { payload }
    }

    /// The largest symbol under `code` in a packet with `headers` bytes of IP, UDP and outer headers:
    /// 28 over IPv4, and 48 over IPv6.
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

    /// Bytes of a header tag, for which room is left before it is known whether the peer wants them.
    const fn header_tag(&self) -> usize {
        if self.trimmable { HEADER_TAG_LEN } else { 0 }
    }

    /// The capabilities that this endpoint declares.
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities::OURS
            | if self.trimmable { Capabilities::TRIM } else { Capabilities::default() }
    }

    /// The capabilities of a session with a peer that declares `theirs`: without header tags, unless both
    /// ends want them.
    pub(crate) const fn capabilities_with(&self, theirs: Capabilities) -> Capabilities {
        if self.trimmable { theirs } else { theirs.without(Capabilities::TRIM) }
    }
}
