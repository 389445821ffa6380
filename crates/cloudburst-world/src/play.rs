//! A world from its first moment to its last.

use crate::choices::Choices;
use crate::scope::Scope;
use crate::setup::Setup;
use crate::step::Step;
use crate::trace::Trace;
use crate::world::World;
use crate::{ending, invariants};

/// Steps that one world may have.
const MAX_STEPS: usize = 400;

/// Lets `choices` decide about a world, and checks it after each step. Returns a hash of all that
/// happened.
///
/// First come the configurations, then steps, then the end: the network heals, or stays dark.
///
/// # Panics
///
/// When one of these does not hold:
///
/// - A message is delivered at most once, byte for byte, to the host that it is for, whatever lives
///   the hosts have and whatever the adversary says again, and as whom.
/// - A `Delivered` send had been delivered; a `Rejected` one never was and never is; the reasons
///   are true; each send ends once, by its deadline unless its process was stopped.
/// - A host answers no more bytes than came to it of genuine packets, and sends at most three times
///   to an address where nobody is what came from there.
/// - What is received stays within the configured memory, and what is delivered within the
///   application's queue; a block costs no more packets than its cap.
/// - An endpoint that was served wants nothing at this same moment: it does not spin.
/// - When the network heals, new messages arrive in [`LIVELY`](crate::LIVELY) at the first attempt,
///   and what was left of old ones is forgotten in time.
pub fn play(choices: Choices<'_>, scope: Scope) -> u64 {
    play_in(choices, scope, Trace::new())
}

/// [`play`], and prints every step, packet and ending.
///
/// # Panics
///
/// As [`play`] does.
pub fn play_aloud(choices: Choices<'_>, scope: Scope) -> u64 {
    play_in(choices, scope, Trace::aloud())
}

fn play_in(mut choices: Choices<'_>, scope: Scope, trace: Trace) -> u64 {
    let setup = Setup::read(&mut choices);
    trace.say(setup.start, format_args!("{setup:?}"));
    let (hosts, egresses) = (setup.configs.len(), setup.egresses);
    let mut world = World::new(setup, scope, trace);
    for _ in 0..MAX_STEPS {
        if choices.is_empty() {
            break;
        }
        let step = Step::read(&mut choices, hosts, egresses, &scope);
        world.book.trace.say(world.now, format_args!("{step:?}"));
        world.apply(&step);
        invariants::check(&world);
    }
    ending::end(&mut world);
    world.book.trace.value()
}
