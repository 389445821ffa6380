//! Which faults worlds have.

/// Faults that can be left out of a world. The oracle is the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What a host says to another comes back to it, as if the other had said it.
    pub mirrors: bool,
    /// What a host says to another goes to a third one, and back.
    pub relays: bool,
    /// Packets come from addresses of other hosts. Where nobody is, no more than three times goes
    /// than came from there, though applications reply to whatever address a message has.
    pub forged_addresses: bool,
    /// Old handshakes are said again while nothing else is.
    pub haunting: bool,
    /// Processes sleep for so long that sessions are stale, and answers from before wait for them.
    pub sleepers: bool,
    /// The first message to a peer that has restarted meanwhile must arrive.
    pub unnoticed_restarts: bool,
}

impl Scope {
    /// All faults that there are.
    pub const ALL: Self = Self {
        mirrors: true,
        relays: true,
        forged_addresses: true,
        haunting: true,
        sleepers: true,
        unnoticed_restarts: true,
    };
    /// The faults that endpoints survive today.
    pub const SURVIVED: Self = Self {
        mirrors: false,
        relays: false,
        forged_addresses: false,
        haunting: false,
        sleepers: false,
        unnoticed_restarts: false,
    };
}
