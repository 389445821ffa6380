//! Plays a world from start to end.

use crate::choices::Choices;
use crate::faults::Faults;
use crate::log::Trace;
use crate::setup::Setup;
use crate::step::Step;
use crate::world::World;
use crate::{ending, invariants};

/// Maximum number of steps in one world.
const MAX_STEPS: usize = 400;

/// Plays the world that `choices` determines, and checks it after each step. Returns a hash of
/// everything that happened.
///
/// The configurations come first, then the steps, then the end: the network heals, or stays dark.
///
/// # Panics
///
/// If one of these does not hold:
///
/// - A message is delivered at most once, byte for byte, and to the host that it is for, however
///   often hosts restart, sockets change hands and clocks stand still, and whatever the adversary replays.
/// - The message of a `Delivered` send has entered the application's queue. That of a `Rejected` one
///   never did and never will. Reported reasons are true, also those of refused sends. Each send
///   ends once, and by its deadline unless its process was stopped or its clock stood still.
/// - An application takes the messages that entered its queue, those of each host in the same order.
/// - A host answers with no more bytes than it received in genuine packets. To an address without a
///   host, it sends at most three times the bytes that came from there; this is checked only where
///   [`Faults::forged_addresses`] is set.
/// - Messages being received stay within the configured memory, and delivered ones within the
///   limits of the application's queue. A block costs no more packets in bursts than its cap.
/// - An endpoint that has handled its timeouts is not due again at the same moment: it does not
///   spin.
/// - When the network heals, new messages arrive within [`DELIVERY_LIMIT`](crate::DELIVERY_LIMIT) at the first
///   attempt, and the remains of old ones are forgotten in time.
pub fn play(choices: Choices<'_>, faults: Faults) -> u64 {
    play_in(choices, faults, Trace::new())
}

/// Plays like [`play`], and prints every step, packet and end of a send.
///
/// # Panics
///
/// See [`play`].
pub fn play_verbose(choices: Choices<'_>, faults: Faults) -> u64 {
    play_in(choices, faults, Trace::verbose())
}

fn play_in(mut choices: Choices<'_>, faults: Faults, trace: Trace) -> u64 {
    let setup = Setup::read(&mut choices);
    trace.print(setup.start, format_args!("{setup:?}"));
    let hosts = setup.configs.len();
    let egresses = setup.egresses;
    let mut world = World::new(setup, faults, trace);
    for _ in 0..MAX_STEPS {
        if choices.is_empty() {
            break;
        }
        let step = Step::read(&mut choices, hosts, egresses, &faults);
        world.log.trace.print(world.now, format_args!("{step:?}"));
        world.apply(&step);
        invariants::check(&world);
    }
    ending::end(&mut world);
    world.log.trace.value()
}
