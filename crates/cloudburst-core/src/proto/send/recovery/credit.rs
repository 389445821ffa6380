//! How many symbols of a block were sent, and how many may be.

/// The count of one block's symbols: sent <= granted <= cap.
#[derive(Debug)]
pub(super) struct Credit {
    /// Symbols sent so far.
    sent: u32,
    /// Symbols that may have been sent by now.
    granted: u32,
    /// The packet cap: symbols that may be sent in bursts. Probing symbols raise it.
    cap: u32,
    /// Symbols that the policy opens with.
    opening: u32,
}

impl Credit {
    /// Grants `opening` symbols of `cap`.
    pub(super) fn new(opening: u32, cap: u32) -> Self {
        Self { sent: 0, granted: opening.min(cap), cap, opening }
    }

    /// Symbols that may be sent now.
    pub(super) const fn left(&self) -> u32 {
        self.granted - self.sent
    }

    /// Symbols sent so far.
    pub(super) const fn sent(&self) -> u32 {
        self.sent
    }

    /// Whether nothing but probing symbols may be sent any more.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.sent >= self.cap
    }

    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Raises the grant to `total` symbols in all. Returns whether that raised it.
    pub(super) fn grant_up_to(&mut self, total: u32) -> bool {
        let granted = total.min(self.cap);
        let is_more = granted > self.granted;
        self.granted = self.granted.max(granted);
        is_more
    }

    /// Raises the grant to `more` symbols from here on. Returns how many may be sent.
    pub(super) fn grant(&mut self, more: u32) -> u32 {
        self.grant_up_to(self.sent.saturating_add(more));
        self.left()
    }

    /// Adds `more` symbols to the credit. Returns whether that raised it.
    pub(super) fn add(&mut self, more: u32) -> bool {
        self.grant_up_to(self.granted.saturating_add(more))
    }

    /// Symbols that were granted, whether or not they were sent.
    pub(super) const fn granted(&self) -> u32 {
        self.granted
    }

    /// Takes back symbols that were granted but not sent.
    pub(super) const fn revoke(&mut self) {
        self.granted = self.sent;
    }

    /// Grants one more symbol, which does not count towards the cap.
    pub(super) const fn grant_extra(&mut self) {
        self.cap = self.cap.saturating_add(1);
        self.granted = self.granted.saturating_add(1);
    }

    /// Ensures that `symbols` probing symbols may be sent, which do not count towards the cap.
    /// Returns how many may be sent.
    pub(super) fn probe(&mut self, symbols: u32) -> u32 {
        self.cap = self.cap.saturating_add(symbols.saturating_sub(self.left()));
        self.grant(symbols)
    }

    /// Ensures that the cap leaves as many symbols as the policy opens with.
    pub(super) fn renew(&mut self) {
        self.cap = self.cap.max(self.sent.saturating_add(self.opening));
    }

    /// Grants as many symbols as at first, from here on.
    pub(super) fn resume(&mut self) {
        self.grant(self.opening);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_bounds_all_but_probes() {
        let mut credit = Credit::new(9, 4);
        assert_eq!(credit.left(), 4);
        (0..4).for_each(|_| credit.on_sent());
        assert!(credit.is_exhausted());
        credit.resume();
        assert!(!credit.grant_up_to(100));
        assert_eq!(credit.grant(1), 0);
        assert_eq!(credit.probe(1), 1);
        credit.grant_extra();
        assert_eq!(credit.left(), 2);
        credit.revoke();
        assert_eq!((credit.left(), credit.is_exhausted()), (0, false));
        assert_eq!(credit.probe(5), 5);
        assert_eq!(credit.probe(3), 5, "those that are left are enough");
        credit.renew();
        assert!(credit.grant_up_to(4 + 9));
        assert!(!credit.grant_up_to(4 + 10));
    }
}
