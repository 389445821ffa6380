//! Markings: the class and the ECN codepoint of each packet. Sockets turn the class into a DSCP.

use crate::config::{EcnMode, Parameters};

/// A class of packets that the network may treat differently from others (RFC 2474).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
// A class and not a DSCP: the operator decides which DSCP has which queue.
pub struct Class(pub u8);

impl Class {
    /// Handshakes and answers.
    pub const CONTROL: Self = Self(0);
    /// The most urgent symbols. Less urgent ones have higher class numbers
    /// ([`Fabric::classes`](crate::config::Fabric::classes)).
    pub const DATA: Self = Self(1);
}

/// The ECN codepoint that a packet leaves with (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: a switch drops the packet where it would mark others.
    NotEct,
    /// ECN-capable, ECT(0). Used only if [`Fabric::ecn`](crate::config::Fabric::ecn) is not off.
    Ect0,
}

/// The marking of a packet's IP header for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marking {
    /// The class.
    pub class: Class,
    /// The ECN codepoint.
    pub ecn: Ecn,
}

/// The marking of handshakes and answers.
pub(super) const fn control(config: &Parameters) -> Marking {
    Marking { class: Class::CONTROL, ecn: ecn(!matches!(config.ecn, EcnMode::Off)) }
}

/// The marking of symbols of a message. `level` is that of [`Parameters::classes`]; `answered` says
/// whether the receiver has answered any of them.
///
/// Before the first answer, it is unknown whether the receiver is listening, so packets of other
/// messages take precedence (Aeolus).
pub(super) const fn symbols(config: &Parameters, level: u8, answered: bool) -> Marking {
    let capable = match config.ecn {
        EcnMode::Off => false,
        EcnMode::On => true,
        EcnMode::Aeolus => answered,
    };
    Marking { class: Class(Class::DATA.0 + level), ecn: ecn(capable) }
}

/// Whether an answer may leave in a batch of symbols with this marking and take its class. It may
/// not if switches may drop or delay the batch but would spare the answer.
pub(super) fn may_carry_answers(config: &Parameters, batch: Marking) -> bool {
    // One system call has one byte for DSCP and ECN, and the batch exists to save a call.
    batch.ecn == control(config).ecn && batch.class <= Class::DATA
}

const fn ecn(capable: bool) -> Ecn {
    if capable { Ecn::Ect0 } else { Ecn::NotEct }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_data_and_all_else_is_control() {
        let config = Parameters::default();
        assert_eq!(control(&config).class, Class::CONTROL);
        for answered in [false, true] {
            let marking = symbols(&config, 0, answered);
            assert_eq!(marking, Marking { class: Class::DATA, ecn: Ecn::NotEct });
            assert!(may_carry_answers(&config, marking));
            assert!(!may_carry_answers(&config, symbols(&config, 1, answered)), "answers go first");
        }
    }

    #[test]
    fn with_ecn_all_packets_are_ect_unless_aeolus_wants_first_symbols_dropped() {
        for (mode, first) in [(EcnMode::On, Ecn::Ect0), (EcnMode::Aeolus, Ecn::NotEct)] {
            let config = Parameters { ecn: mode, ..Parameters::default() };
            assert_eq!(control(&config).ecn, Ecn::Ect0);
            assert_eq!(symbols(&config, 0, false).ecn, first);
            assert_eq!(symbols(&config, 0, true).ecn, Ecn::Ect0);
        }
    }

    #[test]
    fn with_aeolus_symbols_of_unanswered_messages_alone_are_not_ect() {
        let config = Parameters { ecn: EcnMode::Aeolus, ..Parameters::default() };
        assert_eq!(control(&config).ecn, Ecn::Ect0);
        for (answered, ecn) in [(false, Ecn::NotEct), (true, Ecn::Ect0)] {
            let marking = symbols(&config, 0, answered);
            assert_eq!(marking.ecn, ecn);
            assert_eq!(may_carry_answers(&config, marking), answered);
        }
    }
}
