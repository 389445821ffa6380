//! Capabilities: protocol extensions that an end supports, as declared in the handshake.

/// A set of capabilities, one bit each. Bits that this implementation does not know are kept and
/// ignored.
///
/// An end never uses a capability that the peer has not declared. A declaration holds for the
/// session; the two directions are independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// SYMBOLs of the session carry header tags, so that switches may trim them. In force only if both
    /// ends declare it.
    // A capability and not a flag of the packet: it holds for whole sessions, probes included.
    pub const TRIM: Self = Self(1 << 0);

    /// Returns whether all of `others` are in the set.
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the set without `others`.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_is_in_it_and_unknown_bits_mean_nothing() {
        let set = Capabilities(1 << 31 | Capabilities::TRIM.0);
        assert!(set.has(Capabilities::TRIM) && set.has(Capabilities::default()));
        assert_eq!(set.without(Capabilities::TRIM), Capabilities(1 << 31));
    }
}
