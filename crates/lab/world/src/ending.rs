//! The ends of worlds: the network heals, or stays dark for good.

use crate::adversary::Rule;
use crate::host::Host;
use crate::invariants;
use crate::log::Name;
use crate::setup::{End, address};
use crate::world::World;
use cloudburst_core::error::{Indeterminate, Outcome, StartError};
use cloudburst_core::proto::SendOptions;
use core::time::Duration;

/// The time within which a message arrives, handshake included, once nothing is in its way.
pub const DELIVERY_LIMIT: Duration = Duration::from_millis(500);

/// The time after which every deadline that steps set has passed.
const ALL_DEADLINES: Duration = Duration::from_secs(15);
/// Idle time after which sessions are stale and give way to others.
const STALE: Duration = Duration::from_secs(40);
/// The time within which the remains of messages are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// The longest `decode_timeout` of a host.
const DECODE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a message that must arrive.
const LEN: usize = 500;

/// Ends a world. If the network heals, new messages between all hosts arrive at the first attempt,
/// and nothing is left of old ones. If it does not, every send still ends.
///
/// # Panics
///
/// If a message does not arrive within [`DELIVERY_LIMIT`], a send does not end, or something is left.
pub(crate) fn end(world: &mut World) {
    match world.setup.end {
        End::Heals { rest, replays } => {
            world.heal();
            finish_all(world);
            // Symbols of abandoned messages take up memory until they are forgotten.
            world.run(FORGOTTEN, |world| receive_memory(world) == 0);
            if !world.faults.long_pauses {
                // Answers that were sent when processes resumed have arrived by then.
                world.wait(DELIVERY_LIMIT);
            }
            let all_have_capacity = (0..world.hosts.len()).all(|host| world.log.has_capacity(host));
            rest_for(world, rest + if all_have_capacity { Duration::ZERO } else { STALE }, replays);
            let sent = send_to_all(world);
            all_arrive(world, sent);
        }
        End::Paused if world.faults.long_pauses => {
            world.heal();
            world.hosts.iter_mut().for_each(Host::pause);
            world.wait(STALE);
            let mut sent = Vec::new();
            world.resume_all(|world| {
                (0..world.hosts.len()).for_each(|host| world.take(host, true, true));
                sent = send_to_all(world);
            });
            all_arrive(world, sent);
            finish_all(world);
        }
        End::Paused | End::Dark => {
            world.log.adversary.rule = Rule::Hold;
            return finish_all(world);
        }
    }
    world.wait(FORGOTTEN);
    assert_eq!(receive_memory(world), 0, "no message is being received");
    invariants::check(world);
}

fn receive_memory(world: &World) -> usize {
    world.hosts.iter().map(|host| host.endpoint.receive_memory()).sum()
}

/// Resumes all processes and clocks, and lets applications take everything, until all sends have ended.
fn finish_all(world: &mut World) {
    world.run_clocks();
    world.resume_all(|_| {});
    (0..world.hosts.len()).for_each(|host| world.take(host, true, true));
    world.run(ALL_DEADLINES, |world| world.unfinished() == 0);
    assert_eq!(world.unfinished(), 0, "every deadline has passed");
    invariants::check(world);
}

fn rest_for(world: &mut World, time: Duration, replays: bool) {
    /// Shorter than the idle time after which a session is stale.
    const EVERY: Duration = Duration::from_secs(10);
    let until = world.now + time;
    while world.now < until {
        if replays && world.faults.replayed_handshakes {
            world.replay_handshakes();
        }
        world.wait(until.saturating_since(world.now).min(EVERY));
    }
}

/// Sends a message from every open host to every other one.
fn send_to_all(world: &mut World) -> Vec<Name> {
    let hosts = 0..world.hosts.len();
    let open: Vec<usize> = hosts.filter(|&host| !world.log.profiles[host].closed).collect();
    let mut sent = Vec::new();
    for &from in &open {
        for &to in open.iter().filter(|&&to| to != from) {
            sent.extend(send(world, from, to));
        }
    }
    sent
}

/// Sends a message. Returns `None` if messages under way take up all capacity: those of a process that
/// slept have not ended when it sends.
fn send(world: &mut World, from: usize, to: usize) -> Option<Name> {
    let options = SendOptions::default().deadline(Duration::from_secs(10)).wait(false);
    match world.send(from, address(to, 0), LEN, &options) {
        Ok(name) => Some(name),
        Err(StartError::Full { .. }) if matches!(world.setup.end, End::Paused) => None,
        Err(error) => panic!("a send from {from} to {to} was refused: {error}"),
    }
}

fn all_arrive(world: &mut World, sent: Vec<Name>) {
    let lost = lost_of(world, sent);
    let mut again = Vec::new();
    for name in lost {
        let sent = world.log.messages.find(name).expect("it was sent");
        // By the first message after an unnoticed restart, the sender finds out, and cannot know
        // whether the former incarnation took it.
        let restarted = sent.outcome == Some(Outcome::Unknown(Indeterminate::PeerRestarted))
            && sent.to.is_some_and(|to| world.hosts[to].lives() > 0);
        assert!(
            restarted,
            "nothing obstructed it, but it did not arrive in {DELIVERY_LIMIT:?}: {sent:?}"
        );
        let from = name.0;
        let to = sent.to.expect("it was for a host");
        again.extend(send(world, from, to));
    }
    let lost = lost_of(world, again);
    let lost: Vec<_> = lost.into_iter().map(|name| world.log.messages.find(name)).collect();
    assert!(lost.is_empty(), "nothing obstructed them, but they did not arrive: {lost:?}");
}

/// Returns the messages that have not been delivered within [`DELIVERY_LIMIT`].
///
/// A process that slept reads symbols of messages that were abandoned meanwhile. They take up
/// memory, and its senders get BUSY, until they are forgotten. The time begins only then.
fn lost_of(world: &mut World, mut sent: Vec<Name>) -> Vec<Name> {
    let outcome = |world: &World, name| world.log.messages.find(name)?.outcome.clone();
    let waits = |world: &World, name: Name| outcome(world, name).is_none();
    world.run(DELIVERY_LIMIT, |world| !sent.iter().any(|&name| waits(world, name)));
    let is_full = |world: &World, name| {
        let to = world.log.messages.find(name).and_then(|sent| sent.to);
        to.is_some_and(|to| world.hosts[to].endpoint.receive_memory() > 0)
    };
    let late = sent.iter().filter(|&&name| waits(world, name));
    if matches!(world.setup.end, End::Paused) && late.clone().all(|&name| is_full(world, name)) {
        let late: Vec<Name> = late.copied().collect();
        world.run(DECODE_TIMEOUT + DELIVERY_LIMIT, |world| {
            !late.iter().any(|&name| waits(world, name))
        });
    }
    sent.retain(|&name| !matches!(outcome(world, name), Some(Outcome::Delivered(_))));
    sent
}
