//! Identities of endpoints, and handshakes that lead to sessions.

mod half_open;
mod identity;
mod opening;

pub(super) use half_open::HalfOpen;
pub(super) use identity::{
    Chooser, Departure, Discovery, Finding, Identity, Located, Peering, Remote, Sighting,
    more_ports, ports,
};
pub(super) use opening::{Invitation, Opening};
