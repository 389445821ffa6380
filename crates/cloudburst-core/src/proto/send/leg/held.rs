//! What a leg sends while its peer does not answer.

use super::Leg;
use crate::time::Instant;

impl Leg {
    /// Holds the message, because the peer has not answered for long: only what
    /// [`probe`](Self::probe) grants is sent.
    pub(in crate::proto::send) const fn hold(&mut self) {
        self.held = Some(0);
    }

    /// Grants at most `limit` symbols to a peer that does not answer, and returns how many.
    pub(in crate::proto::send) fn probe(
        &mut self,
        now: Instant,
        all_well: bool,
        limit: u32,
        few: u32,
    ) -> u32 {
        if self.held.is_none() {
            return self.on_timeout(now, all_well, limit);
        }
        let granted = if self.has_more() {
            few.min(limit)
        } else if self.busy.until().is_some() {
            self.probe_one()
        } else if let Some(block) = self.active.first_mut() {
            block.recovery.grant_probes(all_well, limit)
        } else {
            0
        };
        self.held = Some(granted);
        granted
    }

    /// Whether the message is held, because the peer has not answered for long.
    pub(in crate::proto::send) const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// How many symbols may be sent now, as far as the peer's silence is concerned.
    pub(in crate::proto::send) fn held(&self) -> u32 {
        self.held.unwrap_or(u32::MAX)
    }

    /// Records that probes have been sent. Returns whether the message waits for others.
    pub(in crate::proto::send) fn on_probed(&mut self, packets: usize) -> bool {
        let Some(held) = self.held else { return false };
        self.held = Some(held.saturating_sub(packets as u32));
        if !self.is_ready() {
            self.held = Some(0);
        }
        self.held == Some(0)
    }

    /// Continues the message at once if it was held or waited for a probe, because the peer was
    /// heard from.
    pub(in crate::proto::send) fn go_on(&mut self, now: Instant, all_well: bool) {
        let waited = self.probe_key.take().is_some();
        if self.held.take().is_some() && self.busy.until().is_none() {
            for block in self.active.iter_mut().filter(|block| block.recovery.allowance() == 0) {
                block.recovery.grant_probes(all_well, u32::MAX);
            }
        } else if waited {
            self.on_timeout(now, all_well, u32::MAX);
        }
    }
}
