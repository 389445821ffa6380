//! Who talks to whom: identities, and handshakes on their way to a session.

mod half_open;
mod identity;
mod opening;

pub(super) use half_open::HalfOpen;
pub(super) use identity::ports;
pub use identity::{Identity, Peering};
pub(super) use opening::Opening;
