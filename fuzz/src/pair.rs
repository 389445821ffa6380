//! Target `pair`: hosts, an adversary, and a schedule that the input drives.

use cloudburst_world::{Choices, Faults};

/// Lets the input control a world of two to four hosts: see [`cloudburst_world::play`].
///
/// # Panics
///
/// If one of the promises listed there does not hold.
pub fn pair(data: &[u8]) {
    cloudburst_world::play(Choices::bytes(data), Faults::ALL);
}
