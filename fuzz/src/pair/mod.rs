//! Target `pair`: two endpoints and a schedule that the input drives.
//!
//! | file | role |
//! |---|---|
//! | `setup` | the input's first bytes: both configurations |
//! | `schedule` | the other bytes: what happens next, and the end of it |
//! | `world` | both hosts, their clock, and what must hold after each step |
//! | `network` | packets under way, and what can become of them |
//! | `ledger` | what was sent, what came in, how it ended: the promises |

mod ledger;
mod network;
mod schedule;
mod setup;
mod world;

use self::setup::Setup;
use self::world::World;
use crate::input::Input;

/// Sends messages between two endpoints over a network that the input decides about.
///
/// The input chooses both configurations, then one step after the other: send, deliver, drop,
/// duplicate, reorder, damage, replay, let time pass (with or without timers), cancel, release,
/// close, restart. At the end the network either heals or stays dark, and time runs on.
///
/// # Panics
///
/// When one of these does not hold:
///
/// - A message is delivered at most once, byte for byte, whatever lives either side has.
/// - A `Delivered` send had been delivered; a `Rejected` one never was and never is; the reasons
///   are true; each send ends once, and when timers were served, by its deadline.
/// - An answer is not larger than the packet that caused it; what is damaged causes none.
/// - What is received stays within the configured memory, and what is delivered within the
///   application's queue; a block costs no more packets than its cap.
/// - An endpoint that was served wants nothing at this same moment: it does not spin.
/// - When the network heals, new messages arrive again by themselves, and what was left of old
///   ones is forgotten in time.
pub fn pair(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = Setup::read(&mut input);
    let (heals, rest) = (setup.heals, setup.rest);
    let mut world = World::new(setup);
    schedule::play(&mut world, &mut input);
    if heals {
        schedule::heal(&mut world, rest);
    } else {
        schedule::go_dark(&mut world);
    }
}
