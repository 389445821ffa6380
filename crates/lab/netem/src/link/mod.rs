//! One emulated link in one direction, without I/O.
//!
//! The driver of a [`Link`] does three things, with a time that never runs backwards:
//!
//! 1. call [`Link::send`] for each packet that enters the link at `now`;
//! 2. wait until [`Link::next_at`], or until there is more to send;
//! 3. call [`Link::poll`] at the new `now` until it returns `None`.
//!
//! At the time that [`Link::next_at`] returns, a packet comes out, or the transmission of one that waited in a
//! queue of several [classes](LinkConfig::classes) begins.
//!
//! Times are counted from an epoch of the caller's choice. The same seed and the same calls yield
//! the same packets at the same times, on every platform.

mod config;
mod damage;
mod losses;
mod stats;
mod strict;

pub use config::{ConfigError, LinkConfig, Loss, Trim};
pub use losses::Losses;
pub use stats::LinkStats;

use crate::queue::{Depth, DropTail};
use crate::rng::SplitMix64;
use core::time::Duration;
use std::collections::BTreeMap;
use strict::Strict;

/// The queues of a link that trims: headers first, then whole packets.
const HEADERS: usize = 0;
const DATA: usize = 1;

/// The fields of a packet's header that a link uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The class; 0 is served first. See [`LinkConfig::classes`].
    pub class: u8,
    /// Whether the packet is ECN-capable. See [`LinkConfig::selective`].
    pub ect: bool,
}

/// One link in one direction: packets go in, and come out late, damaged, twice or never.
///
/// Packets in flight are kept in memory, so a link with a long delay and without a
/// [`LinkConfig::rate`] holds all packets sent within that delay.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    rng: SplitMix64,
    stats: LinkStats,
    /// While true, all packets sent are dropped.
    down: bool,
    losses: Losses,
    /// Times in nanoseconds. Unused while there is no rate.
    queue: DropTail,
    /// The queues, if there are several classes or if packets are trimmed: headers are then served first.
    strict: Strict,
    /// Latest arrival of a packet that was not held back: later ones do not arrive before it.
    floor: Duration,
    /// Packets in flight, by arrival and order of sending.
    under_way: BTreeMap<(Duration, u64), Vec<u8>>,
    /// Number of packets and copies launched so far: the second half of the key.
    launched: u64,
}

impl Link {
    /// Creates a link that is up and empty, and whose faults are determined by `seed`.
    ///
    /// # Errors
    ///
    /// See [`LinkConfig::check`].
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            queue: DropTail::new(config.limit()),
            strict: Strict::new(config.queues()),
            losses: Losses::new(config.loss),
            config,
            rng: SplitMix64::new(seed),
            stats: LinkStats::default(),
            down: false,
            floor: Duration::ZERO,
            under_way: BTreeMap::new(),
            launched: 0,
        })
    }

    /// Sends `packet` into the link at `now`, in the first class and not ECN-capable.
    pub fn send(&mut self, now: Duration, packet: &[u8]) {
        self.send_marked(now, Mark::default(), packet);
    }

    /// Sends `packet` with the given header fields into the link at `now`.
    // The sender states the mark, because a link carries payloads and knows nothing of the
    // protocol.
    pub fn send_marked(&mut self, now: Duration, mark: Mark, packet: &[u8]) {
        self.stats.sent += 1;
        if self.down {
            self.stats.blackholed += 1;
            return;
        }
        if self.config.mtu.is_some_and(|mtu| packet.len() > mtu) {
            self.stats.too_long += 1;
            return;
        }
        let Some(rate) = self.config.rate else {
            self.depart(now, packet);
            return;
        };
        self.serve(now);
        let at = nanos(now);
        let time = |bytes| serialization(bytes, rate);
        if let Some(trim) = self.config.trim {
            let left = packet.len().min(trim.header);
            if !self.strict.push(at, DATA, packet, self.config.limit(), time) {
                let header = &packet[..left];
                if self.strict.push(at, HEADERS, header, Depth::Packets(trim.queue), time) {
                    self.stats.trimmed += u64::from(left < packet.len());
                } else {
                    self.stats.queue_dropped += 1;
                }
            }
            self.serve(now);
            return;
        }
        let is_strict = self.config.classes > 1;
        let class = usize::from(mark.class).min(self.config.classes - 1);
        let backlog =
            if is_strict { self.strict.backlog(at, class, time) } else { self.queue.backlog(at) };
        let threshold = self.config.selective.filter(|_| !mark.ect);
        if threshold.is_some_and(|bytes| backlog >= time(bytes)) {
            self.stats.selectively_dropped += 1;
        } else if is_strict {
            if self.strict.push(at, class, packet, self.config.limit(), time) {
                self.serve(now);
            } else {
                self.stats.queue_dropped += 1;
            }
        } else if let Some(departure) = self.queue.offer(at, packet.len(), time) {
            self.depart(Duration::from_nanos(departure.ends), packet);
        } else {
            self.stats.queue_dropped += 1;
        }
    }

    /// Returns when to poll next, or `None` while no packet is in flight. With several classes or
    /// [`LinkConfig::trim`], it may be before the next packet comes out: the next packet to leave a
    /// queue is chosen only then.
    pub fn next_at(&self) -> Option<Duration> {
        let arrival = self.under_way.first_key_value().map(|(&(due, _), _)| due);
        [arrival, self.strict.next_at().map(Duration::from_nanos)].into_iter().flatten().min()
    }

    /// Returns the earliest packet that has come out by `now`; among those due at the same time, the
    /// one sent first.
    pub fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.serve(now);
        let first = self.under_way.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        self.stats.delivered += 1;
        Some(first.remove())
    }

    /// Returns the number of packets queued or in flight, including copies.
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.strict.len()
    }

    /// Changes the faults for packets sent from now on; packets in flight are not affected.
    ///
    /// The counters, and a blackhole set by [`Self::set_down`], remain too. [`Loss::Bursty`] restarts
    /// in its good state. A change of delay, jitter or rate is a change of route: if the new one is
    /// shorter, later packets overtake those in flight. With a new rate, another number of classes or
    /// another [`LinkConfig::trim`], packets already queued depart first, at the times at which they
    /// would have departed if no packet had followed.
    ///
    /// # Errors
    ///
    /// See [`LinkConfig::check`]. The link is then unchanged.
    pub fn reconfigure(&mut self, config: LinkConfig) -> Result<(), ConfigError> {
        config.check()?;
        let route = |config: &LinkConfig| (config.delay, config.jitter, config.rate);
        if route(&config) != route(&self.config) {
            self.floor = Duration::ZERO;
        }
        let queues = |config: &LinkConfig| (config.queues(), config.rate);
        if queues(&config) != queues(&self.config) {
            self.serve(Duration::MAX);
            self.strict.set_classes(config.queues());
        }
        self.losses = Losses::new(config.loss);
        self.queue.set_limit(config.limit());
        self.config = config;
        Ok(())
    }

    /// Turns the link into a blackhole, or heals it. Packets in flight still arrive.
    pub fn set_down(&mut self, down: bool) {
        self.down = down;
    }

    /// Returns the counters of the link since it was created.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Sends the packets in the queues of classes, or of a link that trims, that may leave by `now`.
    fn serve(&mut self, now: Duration) {
        let Some(rate) = self.config.rate else { return };
        let time = |bytes| serialization(bytes, rate);
        while let Some((ends, packet)) = self.strict.pop(nanos(now), time) {
            self.depart(Duration::from_nanos(ends), &packet);
        }
    }

    /// Launches a packet whose last bit has left at `departure`, unless it is lost.
    fn depart(&mut self, departure: Duration, packet: &[u8]) {
        if self.losses.draw(|probability| self.rng.chance(probability)) {
            self.stats.lost += 1;
            return;
        }
        self.launch(departure, packet.to_vec());
        if self.rng.chance(self.config.duplicate) {
            self.stats.duplicated += 1;
            self.launch(departure, packet.to_vec());
        }
    }

    /// Damages one copy of a packet and sets when it arrives.
    fn launch(&mut self, departure: Duration, mut packet: Vec<u8>) {
        damage::damage(&mut packet, &self.config, &mut self.rng, &mut self.stats);
        let propagation = self.config.delay.saturating_add(self.rng.up_to(self.config.jitter));
        let mut due = departure.saturating_add(propagation).max(self.floor);
        if self.rng.chance(self.config.reorder) {
            self.stats.reordered += 1;
            due = due.saturating_add(self.config.reorder_by);
        } else {
            self.floor = due;
        }
        self.under_way.insert((due, self.launched), packet);
        self.launched += 1;
    }
}

/// Converts to nanoseconds since the epoch.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds that `len` bytes take at `rate` bits per second, rounded up. `rate` is
/// not 0, which [`LinkConfig::check`] refuses.
fn serialization(len: usize, rate: u64) -> u64 {
    const NANOS_PER_SECOND: u128 = 1_000_000_000;
    let nanos = (len as u128 * 8 * NANOS_PER_SECOND).div_ceil(u128::from(rate));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
