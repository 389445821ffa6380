//! The configuration of a link, and its validation.

use crate::queue::Depth;
use core::fmt;
use core::time::Duration;

/// The behaviour of one link. The default is a perfect link without delay.
///
/// A packet meets the faults in the order of a real link: blackhole and MTU at the entrance,
/// queue and rate, loss, duplication, damage to each copy, and propagation.
/// Probabilities are per packet, from 0 to 1, and independent of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Which packets are lost after they have left the queue. Default: [`Loss::None`].
    pub loss: Loss,
    /// Propagation time, the same for each packet. Default: zero.
    pub delay: Duration,
    /// Maximum extra delay, drawn uniformly per packet. Default: zero.
    ///
    /// Jitter never reorders: a packet that would overtake its predecessor arrives together with
    /// it. Packets that are closer together than the jitter therefore arrive in bunches.
    pub jitter: Duration,
    /// Probability that a packet is held back while later ones pass. Default: 0.
    pub reorder: f64,
    /// Extra delay of a packet that is held back. Default: zero, which is refused if
    /// [`reorder`](Self::reorder) is above 0.
    pub reorder_by: Duration,
    /// Probability that a packet arrives twice. Default: 0.
    ///
    /// The copy does not occupy the queue; it is damaged and delayed independently.
    pub duplicate: f64,
    /// Probability that 1 to 3 random bits are flipped. Default: 0. Empty packets are unaffected.
    pub corrupt: f64,
    /// Probability that a packet is cut to a random shorter length, possibly to zero bytes.
    /// Default: 0. An empty packet cannot be cut.
    pub truncate: f64,
    /// Probability that 1 to 64 random bytes are appended. Default: 0.
    ///
    /// The [`mtu`](Self::mtu) does not apply to appended bytes.
    pub extend: f64,
    /// Rate in bits per second. Default: `None`, packets take no time to send. `Some(0)` is
    /// refused.
    ///
    /// Only the bytes given to [`Link::send`](super::Link::send) count, without lower-layer headers.
    pub rate: Option<u64>,
    /// Maximum number of packets that have not departed yet, including the one being sent; further
    /// ones are dropped. Default: 128. Without a [`rate`](Self::rate) no packet waits, and the limit
    /// is ignored; with one, 0 is refused.
    ///
    /// A long queue turns overload into delay, a short one into loss.
    pub queue: usize,
    /// A limit in bytes instead: the maximum number of bytes that have not departed yet. Default: `None`. `Some(0)` is
    /// refused. As for [`rate`](Self::rate), without which it is ignored too, lower-layer headers do not count.
    pub queue_bytes: Option<usize>,
    /// Bytes in the queue from which packets that are not ECN-capable ([`Mark::ect`](super::Mark::ect)) are dropped,
    /// as by RED with ECN and one threshold (Aeolus, SIGCOMM 2020). Others have the rest of the queue to themselves.
    /// Default: `None`, all packets are treated alike.
    pub selective: Option<usize>,
    /// Number of classes of packets, each with its own queue, served by strict priority: class 0 first. Default: 1.
    /// 0 is refused. Packets of higher classes ([`Mark::class`](super::Mark::class)) go into the last queue.
    ///
    /// The limit and the threshold above apply to each queue separately. A packet being sent is not interrupted.
    pub classes: usize,
    /// How packets that find the queue full are trimmed. Default: `None`, they are dropped. Ignored
    /// without a [`rate`](Self::rate).
    pub trim: Option<Trim>,
    /// Longest packet in bytes that passes; longer ones are dropped silently, as in an MTU black
    /// hole. Default: `None`, any length passes. `Some(0)` is refused.
    pub mtu: Option<usize>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            loss: Loss::None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: 0.0,
            reorder_by: Duration::ZERO,
            duplicate: 0.0,
            corrupt: 0.0,
            truncate: 0.0,
            extend: 0.0,
            rate: None,
            queue: 128,
            queue_bytes: None,
            selective: None,
            classes: 1,
            trim: None,
            mtu: None,
        }
    }
}

impl LinkConfig {
    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Returns the first invalid field, with its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.loss.check()?;
        probability("reorder", self.reorder)?;
        probability("duplicate", self.duplicate)?;
        probability("corrupt", self.corrupt)?;
        probability("truncate", self.truncate)?;
        probability("extend", self.extend)?;
        if self.reorder > 0.0 && self.reorder_by.is_zero() {
            return zero("reorder_by", "a packet held back for no time is overtaken by none");
        }
        if self.rate == Some(0) {
            return zero("rate", "such a link never sends");
        }
        if self.rate.is_some() && self.queue == 0 {
            return zero("queue", "the packet being sent takes a place");
        }
        if self.queue_bytes == Some(0) {
            return zero("queue_bytes", "only empty packets would pass");
        }
        if self.classes == 0 {
            return zero("classes", "every packet needs a class");
        }
        if let Some(Trim { header, queue }) = self.trim {
            if header == 0 {
                return zero("trim.header", "nothing would be left of a packet");
            }
            if queue == 0 {
                return zero("trim.queue", "no trimmed packet would pass");
            }
            if self.classes > 1 || self.selective.is_some() || self.queue_bytes.is_some() {
                return Err(ConfigError::Trim);
            }
        }
        if self.mtu == Some(0) {
            return zero("mtu", "only empty packets would pass");
        }
        Ok(())
    }

    /// Returns the number of queues served by strict priority.
    pub(super) const fn queues(&self) -> usize {
        if self.trim.is_some() { 2 } else { self.classes }
    }

    /// Returns the limit of a queue.
    pub(super) const fn limit(&self) -> Depth {
        match self.queue_bytes {
            Some(bytes) => Depth::Bytes(bytes),
            None => Depth::Packets(self.queue),
        }
    }
}

/// How a link trims packets that find its queue full: their headers overtake the packets in the queue (NDP,
/// SIGCOMM 2017, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Bytes that remain of a trimmed packet. Packets that are not longer stay whole, and overtake too, as on
    /// SONiC.
    pub header: usize,
    /// Maximum number of trimmed packets that have not departed yet, including the one being sent;
    /// further ones are dropped. They are sent before all others.
    pub queue: usize,
}

/// Which packets a link loses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packets.
    #[default]
    None,
    /// Each packet with this probability, independently.
    Independent(f64),
    /// In bursts: the model of Gilbert and Elliott, in the four-parameter form of Hasslinger and
    /// Hohlfeld (MMB 2008), who call the parameters p, r, 1 - k and 1 - h.
    ///
    /// The link starts in the good state. Each packet is first lost or not according to the state, then
    /// the state may change. The bad state lasts `1 / to_good` packets on average, and the link
    /// is in it for a share of `to_bad / (to_bad + to_good)` of the packets.
    Bursty {
        /// Probability per packet to go from the good state to the bad one.
        to_bad: f64,
        /// Probability per packet to return to the good state. With 0 the first burst never ends.
        to_good: f64,
        /// Probability of loss in the good state, usually 0 or close to it.
        loss_good: f64,
        /// Probability of loss in the bad state, usually 1 or close to it.
        loss_bad: f64,
    },
}

impl Loss {
    fn check(&self) -> Result<(), ConfigError> {
        match *self {
            Self::None => Ok(()),
            Self::Independent(p) => probability("loss", p),
            Self::Bursty { to_bad, to_good, loss_good, loss_bad } => {
                probability("loss.to_bad", to_bad)?;
                probability("loss.to_good", to_good)?;
                probability("loss.loss_good", loss_good)?;
                probability("loss.loss_bad", loss_bad)
            }
        }
    }
}

/// Why a [`LinkConfig`] was refused. The caller is to blame.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A probability that is below 0, above 1 or not a number.
    NotAProbability {
        /// The field, as the caller wrote it.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A 0 where the value must be above 0.
    Zero {
        /// The field, as the caller wrote it.
        field: &'static str,
        /// Why 0 is not allowed.
        why: &'static str,
    },
    /// `trim` together with `classes`, `selective` or `queue_bytes`, which apply to other queues.
    Trim,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAProbability { field, value } => {
                write!(f, "`{field}` must be a probability from 0 to 1, got {value}")
            }
            Self::Zero { field, why } => write!(f, "`{field}` must be above 0, got 0: {why}"),
            Self::Trim => f.write_str(
                "`trim` excludes `selective`, `queue_bytes` and more than one of `classes`",
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

fn probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::NotAProbability { field, value })
    }
}

fn zero(field: &'static str, why: &'static str) -> Result<(), ConfigError> {
    Err(ConfigError::Zero { field, why })
}
