//! Bursts that request ACKs: as many symbols as a block needs plus a margin, then as many as the
//! receiver reports missing (section III-D).

use super::{AnyPolicy, Policy};
use crate::time::Instant;
use arrayvec::ArrayVec;

/// ACK requests whose position in the burst is remembered.
const REMEMBERED: usize = 16;

#[derive(Debug)]
pub(in crate::proto::send) struct Budgeted {
    /// Symbols beyond those that are needed, as a fraction of them.
    margin: f32,
    source_symbols: u32,
    opening: u32,
    /// The low half of the numbers of packets that requested an ACK, and how many symbols had been
    /// sent with them.
    requests: ArrayVec<(u32, u32), REMEMBERED>,
}

impl Budgeted {
    pub(super) const fn new(margin: f32) -> Self {
        Self { margin, source_symbols: 0, opening: 0, requests: ArrayVec::new_const() }
    }
}

impl Policy for Budgeted {
    fn begin(&mut self, source_symbols: u32, expected: u32, is_clean: bool) -> AnyPolicy {
        let repair = if is_clean { 0 } else { (source_symbols as f32 * self.margin) as u32 };
        // No repair symbols if nothing is lost (SCDP, section IV-G). The margin spares a message
        // with a loss a round trip, and costs one of 93 KB four packets.
        let opening = expected + repair;
        AnyPolicy::Budgeted(Self { source_symbols, opening, ..Self::new(self.margin) })
    }

    fn opening(&self) -> u32 {
        self.opening
    }

    fn on_ack_request(&mut self, _: Instant, number: u64, sent: u32) {
        if self.requests.is_full() {
            self.requests.remove(0);
        }
        self.requests.push((number as u32, sent));
    }

    fn on_resumption(&mut self) {
        self.requests.clear();
    }

    fn on_feedback(&mut self, acknowledged: u64, needed: u32) -> u32 {
        let is_answered = |(number, _): &&(u32, u32)| *number == acknowledged as u32;
        // Packets that are not known to have requested an ACK grant nothing.
        let Some(&(_, sent_then)) = self.requests.iter().find(is_answered) else { return 0 };
        // Symbols sent after the ACK request may still be in flight, and count.
        let needed = needed.clamp(1, 2 * self.source_symbols);
        // Loss is assumed to continue: adds symbols for the share that was lost before.
        // At most half: some missing symbols may only be late, on a slower path than the request.
        let arrived = self.source_symbols.saturating_sub(needed) as f32;
        let lost = (1.0 - arrived / sent_then.max(1) as f32).clamp(0.0, 0.5);
        let margin = (needed as f32 * self.margin) as u32;
        sent_then + (needed as f32 / (1.0 - lost)).ceil() as u32 + margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(margin: f32) -> AnyPolicy {
        Budgeted::new(margin).begin(8, 8, false)
    }

    #[test]
    fn a_nack_grants_missing_symbols_plus_the_share_that_was_lost_before() {
        let mut policy = block(0.25);
        assert_eq!(policy.opening(), 10);
        policy.on_ack_request(Instant::ZERO, 9, 10);
        assert_eq!(policy.on_feedback(9, 2), 14, "2 needed, 6 of 10 arrived: 2 / 0.6");
        assert_eq!(policy.on_feedback(9, 8), 28, "no more than half counts as lost");
        assert_eq!(policy.on_feedback(8, 2), 0, "packet 8 requested no ACK");
    }

    #[test]
    fn only_the_last_requests_are_remembered() {
        let mut policy = block(0.0);
        (0..1_000)
            .for_each(|number| policy.on_ack_request(Instant::ZERO, number, number as u32 + 1));
        assert_eq!(policy.on_feedback(983, 1), 0);
        (984..1_000).for_each(|number| assert!(policy.on_feedback(number, 1) > 0));
    }
}
