//! The rate of a host's inbound link, shared by all endpoints that pull over it.

use super::Pacer;
use crate::time::Instant;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Packets that may be pulled at once after a pause.
const BUCKET_PACKETS: usize = 8;
/// The part of the rate that unscheduled symbols may take from pulls.
const UNSCHEDULED: f64 = 0.5;
/// Unscheduled packets that may take more than that, after a pause: the openings of an incast.
const UNSCHEDULED_PACKETS: usize = 256;

/// The total rate at which endpoints pull symbols: the rate of the link that they receive over (SCDP,
/// section IV-C).
///
/// Clones share one rate. Give clones to all endpoints of a host that share a link, and drive them by
/// one clock, as all endpoints with sockets in a process are; otherwise each pulls at the full rate.
/// Endpoints that pull at the same time share the rate equally.
#[derive(Clone, Debug)]
pub struct Downlink {
    bits_per_second: u64,
    // Only the rate is shared. Each endpoint keeps its queue and its order, so that none reads
    // the sessions of another, and the lock is held for a few additions. In virtual time, 16
    // messages of 256 KB to two endpoints of a host end after 1.001 of the link's time; unshared,
    // after 1.07, with 18 timeouts.
    shared: Arc<Mutex<Shared>>,
}

/// Equal if they share one rate.
impl PartialEq for Downlink {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Downlink {}

#[derive(Debug)]
struct Shared {
    pacer: Pacer,
    /// When the next unscheduled symbol counts.
    // If all counted, a peer could put off every pull for as long as it likes, and longer: the link may be
    // faster than the rate.
    unscheduled: Pacer,
    /// The transmission time of the last packet pulled.
    packet: Duration,
    /// The members, in order of their last pulls, the oldest first.
    members: Vec<u64>,
    /// The number of the next member.
    next: u64,
}

impl Downlink {
    /// Creates a downlink of `bits_per_second`. [`Config::check`](crate::config::Config::check) refuses
    /// rates below 8,000.
    pub fn new(bits_per_second: u64) -> Self {
        let pacer = Pacer::new(bits_per_second.max(1), 1.0).with_depth(Duration::ZERO);
        let unscheduled =
            Pacer::new(bits_per_second.max(1), UNSCHEDULED).with_depth(Duration::ZERO);
        let packet = Duration::ZERO;
        let shared = Shared { pacer, unscheduled, packet, members: Vec::new(), next: 0 };
        Self { bits_per_second, shared: Arc::new(Mutex::new(shared)) }
    }

    /// Returns the rate in bits per second.
    pub const fn bits_per_second(&self) -> u64 {
        self.bits_per_second
    }

    /// Adds an endpoint that pulls packets of at most `packet` bytes.
    pub(crate) fn join(&self, packet: usize) -> Share {
        let mut shared = self.lock();
        let member = shared.next;
        shared.next += 1;
        shared.members.push(member);
        let depth = shared.pacer.time_of(BUCKET_PACKETS * packet);
        shared.pacer.depth = shared.pacer.depth.max(depth);
        let depth = shared.unscheduled.time_of(UNSCHEDULED_PACKETS * packet);
        shared.unscheduled.depth = shared.unscheduled.depth.max(depth);
        drop(shared);
        Share { downlink: self.clone(), member }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // No code that holds the lock can panic.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An endpoint's share of a [`Downlink`].
#[derive(Debug)]
pub(crate) struct Share {
    downlink: Downlink,
    member: u64,
}

impl Share {
    /// Returns how long `bytes` take on the link.
    pub(crate) fn time_of(&self, bytes: usize) -> Duration {
        self.downlink.lock().pacer.time_of(bytes)
    }

    /// Returns when this endpoint may pull the next packet.
    ///
    /// The member that pulled last waits slightly longer, by less than one packet time, so that others
    /// that want to pull come first. A single active member makes up for this delay from the bucket.
    pub(crate) fn ready_at(&self) -> Instant {
        let shared = self.downlink.lock();
        let count = shared.members.len() as u32;
        let place = shared.members.iter().position(|&member| member == self.member);
        shared.pacer.ready_at() + shared.packet / count.max(1) * place.unwrap_or(0) as u32
    }

    /// Charges `bytes` that were pulled at `now`.
    pub(crate) fn charge(&self, now: Instant, bytes: usize) {
        let mut shared = self.downlink.lock();
        shared.packet = shared.pacer.time_of(bytes);
        shared.pacer.charge(now, bytes);
        let member = self.member;
        shared.members.retain(|&other| other != member);
        shared.members.push(member);
    }

    /// Charges `bytes` that arrived at `now` without a pull, unless such bytes have taken their part of
    /// the rate. Returns whether it did.
    pub(crate) fn charge_unscheduled(&self, now: Instant, bytes: usize) -> bool {
        let mut shared = self.downlink.lock();
        let counts = shared.unscheduled.ready_at() <= now;
        if counts {
            shared.unscheduled.charge(now, bytes);
            shared.pacer.charge(now, bytes);
        }
        counts
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.downlink.lock().members.retain(|&member| member != self.member);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1_500;
    const TIME: Duration = Duration::from_micros(12);

    /// Pulls with `shares` for `packets` packet times, the first share first wherever several are
    /// ready, and returns the number of packets that each pulled.
    fn pull(mut now: Instant, shares: &[Share], packets: u32) -> Vec<u32> {
        let end = now + TIME * packets;
        let mut pulled = vec![0; shares.len()];
        while now < end {
            for (share, pulled) in shares.iter().zip(&mut pulled) {
                while share.ready_at() <= now {
                    share.charge(now, PACKET);
                    *pulled += 1;
                }
            }
            now += Duration::from_nanos(500);
        }
        pulled
    }

    #[test]
    fn endpoints_pull_in_turns_and_together_at_the_rate() {
        let downlink = Downlink::new(1_000_000_000);
        let mut shares: Vec<Share> = (0..3).map(|_| downlink.join(PACKET)).collect();
        let start = Instant::from_nanos(1_000_000_000);
        let pulled = pull(start, &shares, 300);
        let all: u32 = pulled.iter().sum();
        // A bucket of 8 packets is full at the start.
        assert!((300..=309).contains(&all), "{pulled:?}");
        assert!(pulled.iter().all(|&one| one.abs_diff(all / 3) <= 9), "{pulled:?}");
        // The remaining endpoints take over the share of those that are gone.
        shares.truncate(1);
        let alone = pull(start + TIME * 300, &shares, 300);
        assert!((290..=309).contains(&alone[0]), "{alone:?}");
    }

    #[test]
    fn unscheduled_symbols_delay_pulls_by_a_burst_and_leave_them_half_of_the_rate() {
        let downlink = Downlink::new(1_000_000_000);
        let shares = [downlink.join(PACKET), downlink.join(PACKET)];
        let mut now = Instant::from_nanos(1_000_000_000);
        let end = now + TIME * 10_000;
        let mut pulled = 0;
        while now < end {
            // Ten times the rate, to both.
            for _ in 0..5 {
                shares.iter().for_each(|share| _ = share.charge_unscheduled(now, PACKET));
            }
            if shares[0].ready_at() <= now {
                shares[0].charge(now, PACKET);
                pulled += 1;
            }
            let debt = shares[1].ready_at().saturating_since(now);
            assert!(debt <= TIME * 260, "{debt:?}");
            now += TIME;
        }
        assert!((4_700..=5_010).contains(&pulled), "{pulled} of 10,000");
    }
}
