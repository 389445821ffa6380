//! The addresses from which a peer's packets arrive besides the one at which it is.
//!
//! A peer may have several addresses and use them all, or have moved, or a third party may have
//! forwarded its packets. Which of these it is, the sending half finds out, by checks of both
//! addresses. Here it is decided when that is worth while.

use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;
use std::net::IpAddr;

/// The maximum number of validated addresses of one session, besides the one at which the peer is.
const MAX_VALIDATED: usize = 4;
/// How long nothing must have come from a peer's address before packets from another one that is
/// validated make it suspect. Peers with several addresses send from all of them.
const SILENT_FOR: Duration = Duration::from_millis(50);
/// The least time between two suspicions because of validated addresses.
const SUSPECT_EVERY: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// Those at which the peer has proved to receive.
    validated: ArrayVec<IpAddr, MAX_VALIDATED>,
    /// When a packet last arrived from the address at which the peer is, since this was created.
    pub(super) last_own: Instant,
    /// When a validated address last made that one suspect.
    suspected_at: Instant,
}

impl Elsewhere {
    pub(super) fn validated(&self) -> &[IpAddr] {
        &self.validated
    }

    pub(super) fn is_validated(&self, ip: IpAddr) -> bool {
        self.validated.contains(&ip)
    }

    /// Records that the peer receives at `ip`. Of too many, the oldest is forgotten.
    pub(super) fn validate(&mut self, ip: IpAddr) {
        self.forget(ip);
        if self.validated.is_full() {
            self.validated.remove(0);
        }
        self.validated.push(ip);
    }

    /// Forgets that the peer receives at `ip`.
    pub(super) fn forget(&mut self, ip: IpAddr) {
        self.validated.retain(|known| *known != ip);
    }

    /// Whether the sending half is to find out where the peer is, because a packet arrived from `ip`.
    /// `is_name` says whether it is the address that the peer is known by.
    pub(super) fn asks(&mut self, now: Instant, ip: IpAddr, is_name: bool) -> bool {
        if !self.is_validated(ip) && !self.validated.is_full() {
            return true;
        }
        let is_silent = now.saturating_since(self.last_own) >= SILENT_FOR;
        let asks =
            (is_name || is_silent) && now.saturating_since(self.suspected_at) >= SUSPECT_EVERY;
        if asks {
            self.suspected_at = now;
        }
        asks
    }
}
