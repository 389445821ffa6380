//! Capabilities: protocol extensions that an end supports, as declared in the handshake.

use core::ops::BitOr;

/// A set of capabilities, one bit each. Bits that this implementation does not know are kept and
/// ignored.
///
/// An end never uses a capability that the peer has not declared. A declaration holds for the
/// session; the two directions are independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// The receiving half can pull messages: it accepts the flag *pulled*, and sends PULL.
    pub const PULL: Self = Self(1 << 0);
    /// The receiving half answers probes: it accepts SYMBOLs with the flag *probe*.
    pub const PROBE: Self = Self(1 << 1);
    /// The sending half understands CE marks in lists of arrivals.
    pub const MARKS: Self = Self(1 << 2);
    /// SYMBOLs of the session carry header tags, so that switches may trim them. In force only if both
    /// ends declare it.
    // A capability and not a flag of the packet: it holds for whole sessions, probes included, and
    // leaves the last flag of SYMBOL free.
    pub const TRIM: Self = Self(1 << 3);
    /// The receiving half supports abandoned calls: it accepts messages with the role
    /// [`Withdrawal`](super::Role::Withdrawal), and responses that refuse a request.
    // Withdrawals and refusals share one bit: neither is of use to a peer without the other.
    pub const CANCEL: Self = Self(1 << 4);
    /// The sending half understands ENDED.
    pub const ENDED: Self = Self(1 << 5);
    /// The capabilities that this implementation always declares.
    pub const OURS: Self =
        Self(Self::PULL.0 | Self::PROBE.0 | Self::MARKS.0 | Self::CANCEL.0 | Self::ENDED.0);

    /// Returns whether all of `others` are in the set.
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the set without `others`.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_is_in_it_and_unknown_bits_mean_nothing() {
        let set = Capabilities::PULL | Capabilities(1 << 31);
        assert!(set.has(Capabilities::PULL) && !set.has(Capabilities::PROBE));
        assert!(!set.has(Capabilities::PULL | Capabilities::PROBE));
        assert!(set.has(Capabilities::default()));
    }
}
