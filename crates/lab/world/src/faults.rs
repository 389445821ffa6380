//! The faults that a world may have.

/// Faults that can be left out of a world. The checks are the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Packets between two hosts return to their sender, as if the other had sent them.
    pub mirrors: bool,
    /// Packets between two hosts go to a third one, and its answers come back.
    pub relays: bool,
    /// Packets come from addresses of other hosts. An address without a host gets at most three
    /// times the bytes that came from it, although applications reply to the address that a message
    /// states.
    pub forged_addresses: bool,
    /// Old handshakes are replayed while nothing else happens.
    pub replayed_handshakes: bool,
    /// Processes are stopped until sessions are stale, and old answers wait for them.
    pub long_pauses: bool,
    /// Clocks of hosts stand still while others run on.
    pub still_clocks: bool,
    /// Sockets pass from one process to another, and back.
    pub hand_overs: bool,
}

impl Faults {
    /// All faults.
    pub const ALL: Self = Self {
        mirrors: true,
        relays: true,
        forged_addresses: true,
        replayed_handshakes: true,
        long_pauses: true,
        still_clocks: true,
        hand_overs: true,
    };
}
