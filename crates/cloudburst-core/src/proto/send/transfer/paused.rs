//! What a transfer sends while its peer is unresponsive.

use super::Transfer;
use crate::time::Instant;

impl Transfer {
    /// Pauses the message, because the peer is unresponsive: only what [`probe`](Self::probe)
    /// grants is sent. Returns whether it pauses.
    pub(in crate::proto::send) fn pause(&mut self) -> bool {
        self.paused = self.pauses().then_some(0);
        self.is_paused()
    }

    /// Whether the message pauses while the peer is unresponsive.
    pub(in crate::proto::send) fn pauses(&self) -> bool {
        !self.policy.is_endless()
    }

    /// Grants at most `limit` symbols to a peer that does not answer, and returns how many.
    pub(in crate::proto::send) fn probe(
        &mut self,
        now: Instant,
        all_healthy: bool,
        limit: u32,
        few: u32,
    ) -> u32 {
        if self.paused.is_none() {
            return self.on_timeout(now, all_healthy, limit);
        }
        let granted = if self.has_more() {
            few.min(limit)
        } else if self.busy.until().is_some() {
            self.probe_one()
        } else if let Some(block) = self.active.first_mut() {
            block.recovery.grant_probes(all_healthy, limit)
        } else {
            0
        };
        self.paused = Some(granted);
        granted
    }

    /// Whether the message is paused, because the peer is unresponsive.
    pub(in crate::proto::send) const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// How many symbols may be sent now, as far as the peer's liveness is concerned.
    pub(in crate::proto::send) fn pause_allowance(&self) -> u32 {
        self.paused.unwrap_or(u32::MAX)
    }

    /// Records that probes have been sent. Returns whether the message waits for others.
    pub(in crate::proto::send) fn on_probed(&mut self, packets: usize) -> bool {
        let Some(left) = self.paused else { return false };
        self.paused = Some(left.saturating_sub(packets as u32));
        if !self.is_ready() {
            self.paused = Some(0);
        }
        self.paused == Some(0)
    }

    /// Resumes the message at once if it was paused or something of it is due, because the peer was
    /// heard from.
    pub(in crate::proto::send) fn resume(&mut self, now: Instant, all_healthy: bool) {
        if self.paused.take().is_some() && self.busy.until().is_none() {
            for block in self.active.iter_mut().filter(|block| block.recovery.allowance() == 0) {
                block.recovery.on_return(all_healthy);
            }
        } else {
            self.on_timeout(now, all_healthy, u32::MAX);
        }
    }
}
