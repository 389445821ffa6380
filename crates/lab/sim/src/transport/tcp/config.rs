//! The settings of TCP.

use super::throttle::Throttle;
use crate::engine::{MS, Time};
use crate::transport::payload_of;
use cloudburst_core::path::Order;

/// The settings of all connections of a transport.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of a full data packet on the wire. A message's last packet may be shorter.
    pub packet: u16,
    /// Bytes of the message in a full data packet.
    pub payload: u16,
    /// Bytes of an ACK on the wire.
    pub ack: u16,
    /// The initial window in packets.
    pub initial_window: u32,
    /// The receiver's window: bytes that may be outstanding. One packet is always allowed.
    pub window: u64,
    /// The minimum retransmission timeout.
    pub rto_min: Time,
    /// The retransmission timeout before the first sample of the round-trip time. There is no handshake to give a
    /// sample, so the default is that of [`rto_min`](Self::rto_min).
    pub rto_initial: Time,
    /// How a sender reacts to ECN marks.
    pub reaction: Reaction,
    /// How long a receiver holds packets that are out of order before TCP sees them (section 5 of the DRB paper).
    /// `None`: it does not hold them.
    pub resequencing: Option<Time>,
    /// How packets are spread over paths.
    pub balancing: LoadBalancing,
    /// The classes of packets.
    pub tagging: Tagging,
    /// The number of connections that carry the same message on different paths. The first complete one counts.
    pub copies: u8,
    /// The limit on the bytes that hosts send in an epoch, whatever the window (QJump).
    pub throttle: Option<Throttle>,
}

impl Default for Config {
    /// TCP with packets of 1,500 bytes, an initial window of 10 of them (RFC 6928) and a minimum timeout of
    /// 10 ms.
    fn default() -> Self {
        Self {
            packet: 1_500,
            payload: 1_460,
            ack: 40,
            initial_window: 10,
            window: 1 << 20,
            rto_min: 10 * MS,
            rto_initial: 10 * MS,
            reaction: Reaction::None,
            resequencing: None,
            balancing: LoadBalancing::PerFlow,
            tagging: Tagging::Fixed(0),
            copies: 1,
            throttle: None,
        }
    }
}

impl Config {
    /// DCTCP with g = 1/16 (section 3.3 of the paper). Queues must mark.
    pub fn dctcp() -> Self {
        Self { reaction: Reaction::Dctcp { gain: 1.0 / 16.0 }, ..Self::default() }
    }

    /// PIAS: DCTCP whose packets lose priority as more of their message is sent. Queues must be
    /// [`Strict`](crate::queue::Strict), and must mark.
    pub fn pias(thresholds: Vec<u64>) -> Self {
        Self { tagging: Tagging::ByBytes(thresholds), ..Self::dctcp() }
    }

    /// Bytes of headers in each packet.
    pub(super) const fn header(&self) -> u16 {
        self.packet - self.payload
    }

    /// The size on the wire of packet `number` of a message of `bytes`.
    pub(super) fn size_of(&self, number: u32, bytes: u64) -> u16 {
        self.header() + payload_of(number, bytes, self.payload)
    }

    /// The class of packet `number` of a message.
    pub(super) fn class_of(&self, number: u32) -> u8 {
        match &self.tagging {
            Tagging::Fixed(class) => *class,
            Tagging::ByBytes(thresholds) => {
                let before = u64::from(number) * u64::from(self.payload);
                thresholds.iter().take_while(|&&threshold| threshold <= before).count() as u8
            }
        }
    }

    /// The class of ACKs.
    pub(super) const fn ack_class(&self) -> u8 {
        match self.tagging {
            Tagging::Fixed(class) => class,
            Tagging::ByBytes(_) => 0,
        }
    }

    /// Full packets that may be outstanding.
    pub(super) fn window_packets(&self) -> u32 {
        (self.window / u64::from(self.payload)).clamp(1, u64::from(u32::MAX)) as u32
    }
}

/// How a sender reacts to ECN marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reaction {
    /// Not at all: its packets are not ECN-capable.
    None,
    /// It halves its window, at most once per window (RFC 3168).
    Halve,
    /// It reduces its window by half the share of marked packets, at most once per window (DCTCP, SIGCOMM 2010).
    Dctcp {
        /// The weight of the last window in the estimate of that share.
        gain: f64,
    },
}

/// How packets are spread over paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancing {
    /// All data packets of a connection take one path, and all its ACKs one. Both are random, as with ECMP's hash.
    /// Copies of a message take different paths, as far as there are enough.
    PerFlow,
    /// Each packet takes the next path of its pair of hosts in this order, separately for data packets and ACKs
    /// (section 5 of the DRB paper). Round robin if the order is for another number of paths.
    PerPacket(Order),
    /// All packets take this path, modulo the number of paths.
    Fixed(u16),
}

/// The classes of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tagging {
    /// All packets have this class.
    Fixed(u8),
    /// A packet has class i if the bytes of its message before it reach i of these thresholds (PIAS, NSDI 2015,
    /// section 4.1). A retransmission has the class of the original, and ACKs have class 0.
    ByBytes(Vec<u64>),
}
