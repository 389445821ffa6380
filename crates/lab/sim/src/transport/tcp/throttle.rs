//! QJump's throttle (NSDI 2015): a host sends a limited number of bytes of a level in each network epoch.
//!
//! A level is a transport with a throughput factor f and, as [`Tagging::Fixed`](super::Tagging), a
//! priority: a smaller f is more urgent. An epoch is 2 n P / R + epsilon, after which n packets that
//! meet at one port have left the network even if epochs of hosts are not aligned (section 3 of the
//! paper). A host sends f packets of P bytes of a level in an epoch. With f = n, the level is not throttled.
//!
//! An epoch of a host starts with the first packet after the previous epoch. The throttle delays the sending by TCP,
//! not packets that TCP has sent, so round-trip times exclude the waiting for an epoch. ACKs are not throttled. The
//! ports of hosts must be [`Strict`](crate::queue::Strict) as well, or urgent packets wait behind others there.

use crate::engine::{Time, byte_time};
use std::collections::VecDeque;

/// The parameters of a level.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// The number of hosts that may send at the same time: n.
    pub hosts: u32,
    /// Bytes of the largest packet on the wire: P.
    pub packet: u16,
    /// The rate of the slowest link in bits per second: R.
    pub rate: u64,
    /// The cumulative switching delay: epsilon.
    pub delay: Time,
    /// The throughput factor: f, from 1 to n.
    pub factor: u32,
}

impl Throttle {
    /// The network epoch.
    pub const fn epoch(&self) -> Time {
        2 * self.hosts as Time * self.packet as Time * byte_time(self.rate) + self.delay
    }

    /// The bytes per epoch; unlimited if f = n.
    const fn allowance(&self) -> u64 {
        if self.factor >= self.hosts { u64::MAX } else { self.factor as u64 * self.packet as u64 }
    }
}

/// The throttle of a host for one level.
#[derive(Debug, Default)]
pub(super) struct HostThrottle {
    /// Subflows that may have something to send, the next one in front.
    pub(super) waiting: VecDeque<(u32, u8)>,
    epoch_ends: Time,
    left: u64,
    timer_at: Option<Time>,
}

impl HostThrottle {
    /// Whether a packet of `size` may be sent now. If so, it counts as sent.
    pub(super) fn admit(&mut self, throttle: &Throttle, now: Time, size: u16) -> bool {
        if now >= self.epoch_ends {
            self.epoch_ends = now + throttle.epoch();
            // A packet that is larger than P takes a whole epoch.
            self.left = throttle.allowance().max(size.into());
        }
        let fits = u64::from(size) <= self.left;
        if fits {
            self.left -= u64::from(size);
        }
        fits
    }

    /// The time for which to set a timer; `None` if one is pending, or nothing waits.
    pub(super) fn poll_timer(&mut self) -> Option<Time> {
        if self.timer_at.is_some() || self.waiting.is_empty() {
            return None;
        }
        self.timer_at = Some(self.epoch_ends);
        self.timer_at
    }

    /// Handles the timer.
    pub(super) const fn on_timer(&mut self) {
        self.timer_at = None;
    }
}
