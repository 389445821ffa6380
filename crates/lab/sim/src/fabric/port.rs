//! A port: a queue and the link that it feeds.

use super::Link;
use crate::engine::{SECOND, Time, byte_time};
use crate::queue::Discipline;
use cloudburst_core::rng::SplitMix64;
use cloudburst_netem::{Loss, Losses};
use cloudburst_workload::draw::chance;

/// The sending end of a link, with its queue.
#[derive(Debug)]
pub struct Port {
    /// Picoseconds per byte.
    pub(crate) byte: Time,
    /// The propagation delay plus the switching delay at the far end.
    pub(crate) delay: Time,
    pub(crate) is_up: bool,
    /// Random losses and their generator.
    faults: Option<Box<(Losses, SplitMix64)>>,
    /// When the packet in service will have left; unused with drop-tail.
    pub(crate) free_at: Time,
    /// When a queue that waits is polled again.
    pub(crate) wakes_at: Time,
    pub(crate) queue: Discipline,
    pub(crate) stats: PortStats,
}

/// The counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets lost on the link, or because it was down.
    pub lost: u64,
    /// The sum of all queueing delays. Divided by the elapsed time it is the mean number of waiting packets
    /// (Little's law).
    pub waited: Time,
    /// The longest queueing delay.
    pub longest_wait: Time,
}

impl Port {
    pub(crate) fn new(link: Link, queue: Discipline) -> Self {
        Self {
            byte: byte_time(link.rate),
            delay: link.delay,
            is_up: true,
            faults: None,
            free_at: 0,
            wakes_at: 0,
            queue,
            stats: PortStats::default(),
        }
    }

    /// Its counters.
    pub const fn stats(&self) -> &PortStats {
        &self.stats
    }

    /// The rate of its link, in bits per second.
    pub const fn rate(&self) -> u64 {
        8 * SECOND / self.byte
    }

    pub(crate) fn set_loss(&mut self, loss: Loss, seed: u64) {
        self.faults = Some(Box::new((Losses::new(loss), SplitMix64::new(seed))));
    }

    /// Whether the link loses the next packet.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        self.faults.as_mut().is_some_and(|faults| {
            let (losses, rng) = &mut **faults;
            losses.draw(|probability| chance(rng, probability))
        })
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u16, waited: Time) {
        self.stats.packets += 1;
        self.stats.bytes += u64::from(bytes);
        self.stats.waited += waited;
        self.stats.longest_wait = self.stats.longest_wait.max(waited);
    }
}
