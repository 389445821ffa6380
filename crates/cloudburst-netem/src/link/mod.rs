//! One emulated link in one direction, without I/O.
//!
//! Whoever drives a [`Link`] does three things, with a time that never runs backwards:
//!
//! 1. [`Link::send`] what enters the link at `now`;
//! 2. wait until [`Link::next_at`], or until there is more to send;
//! 3. [`Link::poll`] at the new `now` until it gives `None`.
//!
//! Times are counted from an epoch of the caller's choice. The same seed and the same calls give
//! the same packets at the same times, on every platform.

mod config;
mod damage;
mod losses;
mod stats;
mod trimming;

pub use config::{ConfigError, LinkConfig, Loss, Trim};
pub use losses::Losses;
pub use stats::LinkStats;

use crate::queue::{Depth, DropTail};
use crate::rng::SplitMix64;
use core::time::Duration;
use std::collections::BTreeMap;
use trimming::{Queued, Trimming};

/// One link in one direction: packets go in, and come out late, damaged, twice or never.
///
/// Packets under way are kept in memory, so a long delay without a [`LinkConfig::rate`] keeps
/// all that is sent within it.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    rng: SplitMix64,
    stats: LinkStats,
    /// While true, all that is sent vanishes.
    down: bool,
    losses: Losses,
    /// Times in nanoseconds. Without meaning while there is no rate.
    queue: DropTail,
    /// What has not departed yet of a link that trims.
    trimming: Trimming,
    /// Latest arrival of a packet that was not held back: later ones do not arrive before it.
    floor: Duration,
    /// What is under way, by arrival and order of sending.
    under_way: BTreeMap<(Duration, u64), Vec<u8>>,
    /// Packets and copies that ever got under way: the second half of the key.
    launched: u64,
}

impl Link {
    /// A link that is up and empty, and whose faults are determined by `seed`.
    ///
    /// # Errors
    ///
    /// See [`LinkConfig::check`].
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            queue: DropTail::new(Depth::Packets(config.queue)),
            trimming: Trimming::default(),
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

    /// Lets `packet` enter the link at `now`.
    pub fn send(&mut self, now: Duration, packet: &[u8]) {
        self.stats.sent += 1;
        if self.down {
            self.stats.blackholed += 1;
            return;
        }
        if self.config.mtu.is_some_and(|mtu| packet.len() > mtu) {
            self.stats.too_long += 1;
            return;
        }
        if let (Some(trim), Some(_)) = (self.config.trim, self.config.rate) {
            self.serve(now);
            match self.trimming.push(nanos(now), packet, self.config.queue, trim) {
                Queued::Whole => {}
                Queued::Trimmed => self.stats.trimmed += 1,
                Queued::Dropped => self.stats.queue_dropped += 1,
            }
            return self.serve(now);
        }
        match self.enqueue(now, packet.len()) {
            Some(departure) => self.depart(departure, packet),
            None => self.stats.queue_dropped += 1,
        }
    }

    /// Sends the packets of a link that trims whose turn comes by `now`.
    fn serve(&mut self, now: Duration) {
        let Some(rate) = self.config.rate else { return };
        let time = |bytes| serialization(bytes, rate);
        while let Some((ends, packet)) = self.trimming.serve(nanos(now), time) {
            self.depart(Duration::from_nanos(ends), &packet);
        }
    }

    /// Puts a packet on its way that has left the sender entirely at `departure`.
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

    /// When the next packet comes out, or `None` while nothing is under way. With
    /// [`LinkConfig::trim`], it may be earlier: what leaves a queue next is decided only then.
    pub fn next_at(&self) -> Option<Duration> {
        let arrives = self.under_way.first_key_value().map(|(&(due, _), _)| due);
        let departs = self.trimming.next_at().map(Duration::from_nanos);
        arrives.into_iter().chain(departs).min()
    }

    /// The earliest packet that is out by `now`; among those due at the same time, the one sent
    /// first.
    pub fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.serve(now);
        let first = self.under_way.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        self.stats.delivered += 1;
        Some(first.remove())
    }

    /// Packets that are queued or under way, copies included.
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.trimming.len()
    }

    /// Changes the faults for what is sent from now on; what is under way stays as it is.
    ///
    /// The counters, and a blackhole set by [`Self::set_down`], stay too. [`Loss::Bursty`] starts
    /// anew in its good state. A change of delay, jitter or rate is a change of route: if the new
    /// one is shorter, what follows overtakes what is under way. With a new rate the packets
    /// already queued depart first, at the times that they had.
    ///
    /// # Errors
    ///
    /// See [`LinkConfig::check`]. The link is then unchanged.
    pub fn reconfigure(&mut self, config: LinkConfig) -> Result<(), ConfigError> {
        config.check()?;
        self.serve(Duration::MAX);
        let route = |config: &LinkConfig| (config.delay, config.jitter, config.rate);
        if route(&config) != route(&self.config) {
            self.floor = Duration::ZERO;
        }
        self.losses = Losses::new(config.loss);
        self.queue.set_limit(Depth::Packets(config.queue));
        self.config = config;
        Ok(())
    }

    /// Turns the link into a blackhole, or heals it. What is under way still arrives.
    pub fn set_down(&mut self, down: bool) {
        self.down = down;
    }

    /// What the link did since it was made.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Queues a packet of `len` bytes: when it has left the sender entirely, or `None` where the
    /// queue is full.
    fn enqueue(&mut self, now: Duration, len: usize) -> Option<Duration> {
        let Some(rate) = self.config.rate else {
            return Some(now);
        };
        let departure = self.queue.offer(nanos(now), len, |bytes| serialization(bytes, rate))?;
        Some(Duration::from_nanos(departure.ends))
    }

    /// Damages one copy of a packet and sets when it arrives.
    fn launch(&mut self, departure: Duration, mut packet: Vec<u8>) {
        damage::damage(&mut packet, &self.config, &mut self.rng, &mut self.stats);
        let way = self.config.delay.saturating_add(self.rng.up_to(self.config.jitter));
        let mut due = departure.saturating_add(way).max(self.floor);
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

/// Nanoseconds since the epoch.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// How many nanoseconds `len` bytes take at `rate` bits per second, rounded up. `rate` is not
/// 0, which [`LinkConfig::check`] refuses.
fn serialization(len: usize, rate: u64) -> u64 {
    const NANOS_PER_SECOND: u128 = 1_000_000_000;
    let nanos = (len as u128 * 8 * NANOS_PER_SECOND).div_ceil(u128::from(rate));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
