//! Bursts that request ACKs: as many symbols as a block needs plus a margin, then as many as the
//! receiver reports missing (section III-D).

use arrayvec::ArrayVec;

/// ACK requests whose position in the burst is remembered.
const REMEMBERED: usize = 16;

#[derive(Debug)]
pub(super) struct Budgeted {
    /// Symbols beyond those that are needed, as a fraction of them.
    margin: f32,
    source_symbols: u32,
    /// Packet numbers of symbols that requested an ACK, and how many symbols had been sent with
    /// them.
    requests: ArrayVec<(u64, u32), REMEMBERED>,
}

impl Budgeted {
    pub(super) const fn new(margin: f32, source_symbols: u32) -> Self {
        Self { margin, source_symbols, requests: ArrayVec::new_const() }
    }

    /// The number of symbols that a block opens with if it decodes from `expected` symbols without
    /// loss.
    pub(super) fn opening(&self, expected: u32) -> u32 {
        expected + (self.source_symbols as f32 * self.margin) as u32
    }

    /// Records that packet `number` requests an ACK. `sent` symbols have been sent, including it.
    pub(super) fn on_ack_request(&mut self, number: u64, sent: u32) {
        if self.requests.is_full() {
            self.requests.remove(0);
        }
        self.requests.push((number, sent));
    }

    /// Handles a NACK in answer to packet `acknowledged`: the receiver needs `needed` more symbols.
    /// Returns how many should have been sent in all, or `None` if that packet is not known to have
    /// requested an ACK.
    pub(super) fn on_feedback(&self, acknowledged: u64, needed: u32) -> Option<u32> {
        // Symbols sent after the ACK request may still be in flight, and count.
        let &(_, sent_then) = self.requests.iter().find(|(number, _)| *number == acknowledged)?;
        let needed = needed.clamp(1, 2 * self.source_symbols);
        // Loss is assumed to continue: adds symbols for the share that was lost before.
        let lost = lost_share(sent_then, self.source_symbols, needed);
        let margin = (needed as f32 * self.margin) as u32;
        Some(sent_then + (needed as f32 / (1.0 - lost)).ceil() as u32 + margin)
    }
}

/// The share of `sent` symbols that cannot have arrived if `needed` of `source` are missing, at
/// most half: some missing symbols may only be late, on a slower path than the ACK request.
fn lost_share(sent: u32, source: u32, needed: u32) -> f32 {
    let arrived = source.saturating_sub(needed) as f32;
    (1.0 - arrived / sent.max(1) as f32).clamp(0.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nack_grants_missing_symbols_plus_the_share_that_was_lost_before() {
        let mut policy = Budgeted::new(0.25, 8);
        assert_eq!(policy.opening(8), 10);
        policy.on_ack_request(9, 10);
        assert_eq!(policy.on_feedback(9, 2), Some(14), "2 needed, 6 of 10 arrived: 2 / 0.6");
        assert_eq!(policy.on_feedback(9, 8), Some(28), "no more than half counts as lost");
        assert_eq!(policy.on_feedback(8, 2), None, "packet 8 requested no ACK");
    }

    #[test]
    fn only_the_last_requests_are_remembered() {
        let mut policy = Budgeted::new(0.0, 8);
        (0..1_000).for_each(|number| policy.on_ack_request(number, number as u32 + 1));
        assert_eq!(policy.on_feedback(983, 1), None);
        assert_eq!(policy.requests.len(), REMEMBERED);
        assert!(policy.on_feedback(984, 1).is_some());
    }
}
