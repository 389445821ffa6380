//! What happens next, as the input says; and how it ends.

use super::network::{Side, damage};
use super::setup::options;
use super::world::World;
use crate::input::Input;
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::rng::SplitMix64;
use core::time::Duration;

/// Steps that one input may ask for.
const MAX_STEPS: usize = 400;
/// How long a packet takes where the network just runs.
const HOP: Duration = Duration::from_micros(20);
/// Sessions that idle for this long give way to others.
const IDLE: Duration = Duration::from_secs(40);
/// Moments at which something may happen in one run of time.
const MAX_MOMENTS: usize = 100_000;

/// What the network does to packets while time runs.
#[derive(Clone, Copy, Debug)]
enum Weather {
    Clear,
    /// Packets are lost, duplicated and reordered, so many of 256 each.
    Rough {
        lost: u64,
        doubled: u64,
        delayed: u64,
    },
    /// Nothing reaches this side.
    OneWay(Side),
    /// Nothing reaches anybody; what is under way stays so.
    Standstill,
}

/// Takes the steps that the input asks for.
pub(super) fn play(world: &mut World, input: &mut Input<'_>) {
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            return;
        }
        step(world, input);
        world.check();
    }
}

/// The network works again and the applications take everything: then new messages arrive in
/// both directions, however long each side `rest`s before, and nothing is left of the old ones.
pub(super) fn heal(world: &mut World, rest: Duration) {
    for side in Side::BOTH {
        world.take(side, true, true);
    }
    let mut rng = SplitMix64::new(0);
    run(world, Duration::from_secs(15), Weather::Clear, &mut rng, true);
    assert_eq!(world.unfinished(), 0, "every deadline has passed");
    let options = SendOptions { deadline: Some(Duration::from_secs(20)), ..SendOptions::default() };
    for side in Side::BOTH {
        if !world.is_open() {
            break;
        }
        // A peer that restarted unnoticed is found out by what is sent first. One that has no room
        // for another session has it when those of former lives have been idle for a while.
        let roomy = world.is_roomy(side.other());
        let (attempts, rest) = if roomy { (3, rest) } else { (10, rest + IDLE) };
        let arrived = (0..attempts).any(|_| {
            run(world, rest, Weather::Clear, &mut rng, false);
            let name = world.send_anyway(side, 500, &options).expect("nothing is under way");
            run(world, Duration::from_secs(21), Weather::Clear, &mut rng, true);
            matches!(world.ledger.outcome(name), Some(Outcome::Delivered(_)))
        });
        assert!(arrived, "{side:?} cannot be heard, and nothing is in the way");
    }
    run(world, Duration::from_secs(10), Weather::Clear, &mut rng, false);
    assert_eq!(world.receive_memory(), 0, "nothing is being received");
    world.check();
}

/// Nothing arrives any more: still, every send ends by its deadline.
pub(super) fn go_dark(world: &mut World) {
    world.network.lose_all();
    run(world, Duration::from_secs(15), Weather::Standstill, &mut SplitMix64::new(0), true);
    assert_eq!(world.unfinished(), 0, "every deadline has passed");
    world.check();
}

fn step(world: &mut World, input: &mut Input<'_>) {
    let what = input.u8();
    match what % 32 {
        0..=3 => {
            let side = if what % 4 == 3 { Side::B } else { Side::A };
            let len = length(input);
            world.send(side, len, &options(input));
        }
        4 | 5 => (0..=input.u8() % 16).for_each(|_| deliver_oldest(world)),
        6 => {
            if let Some(flight) = world.network.take_at(input.u8()) {
                world.deliver(flight);
            }
        }
        7 => drop(world.network.take_at(input.u8())),
        8 => (0..=input.u8() % 16).for_each(|_| drop(world.network.take())),
        9 => {
            if let Some(flight) = world.network.take_at(input.u8()) {
                world.network.put_back(flight.clone());
                world.deliver(flight);
            }
        }
        10 => {
            if let Some(flight) = world.network.take_at(input.u8()) {
                world.network.put_back(flight);
            }
        }
        11 | 12 => harm(world, input),
        13 => {
            if let Some(flight) = world.network.past(input.u8()) {
                world.deliver(flight);
            }
        }
        14 => {
            // From an address that is not its sender's: another lane, or a stranger.
            if let Some(mut flight) = world.network.past(input.u8()) {
                let from = input.u8();
                flight.via.remote = match from {
                    0..=127 => flight.to.other().address(u16::from(from % 4)),
                    _ => ([192, 0, 2, from], 9).into(),
                };
                world.deliver(flight);
            }
        }
        15 | 16 => world.now += Duration::from_micros(4) * u32::from(input.u8()),
        17 => world.now += Duration::from_millis(1) * u32::from(input.u8()),
        18 => world.now += Duration::from_millis(50) * u32::from(input.u8()),
        19 | 20 => {
            // To where somebody wants something.
            world.now = world.next_timeout().map_or(world.now, |at| at.max(world.now));
            Side::BOTH.into_iter().for_each(|side| world.serve(side));
        }
        21 => world.serve(Side::choose(input)),
        22 => world.cancel(Side::choose(input), input.u8()),
        23 => {
            let (side, how) = (Side::choose(input), input.u8());
            world.take(side, how & 1 != 0, how & 2 != 0);
        }
        24 => match input.u8() {
            side @ 0..=199 => world.restart(if side % 2 == 0 { Side::B } else { Side::A }),
            side => world.close(if side % 2 == 0 { Side::B } else { Side::A }),
        },
        25 => pass(world, Duration::from_micros(20), Weather::Clear, input),
        26 => pass(world, Duration::from_micros(200), Weather::Clear, input),
        27 => {
            let rough = Weather::Rough { lost: 25, doubled: 25, delayed: 25 };
            pass(world, Duration::from_micros(200), rough, input);
        }
        28 => {
            let (lost, doubled, delayed) = (input.u8(), input.u8(), input.u8());
            let rough = Weather::Rough {
                lost: lost.into(),
                doubled: u64::from(doubled) / 2,
                delayed: u64::from(delayed) / 2,
            };
            pass(world, Duration::from_millis(1), rough, input);
        }
        29 => {
            let deaf = Side::choose(input);
            pass(world, Duration::from_millis(2), Weather::OneWay(deaf), input);
        }
        30 => pass(world, Duration::from_millis(100), Weather::Clear, input),
        _ => pass(world, Duration::from_millis(200), Weather::Standstill, input),
    }
}

/// Lengths that matter: nothing, about one symbol, one block, more than one.
fn length(input: &mut Input<'_>) -> usize {
    match input.u8() {
        tiny @ 0..=31 => tiny.into(),
        small @ 32..=127 => 10 * usize::from(small),
        medium @ 128..=223 => 100 * (usize::from(medium) - 127),
        large => 59_000 + 2_300 * (usize::from(large) - 224),
    }
}

fn deliver_oldest(world: &mut World) {
    if let Some(flight) = world.network.take() {
        world.deliver(flight);
    }
}

/// Delivers a damaged copy of a packet; sometimes the packet itself was all there was.
fn harm(world: &mut World, input: &mut Input<'_>) {
    let choice = input.u8();
    let flight = if choice & 1 == 0 {
        world.network.past(choice / 2)
    } else {
        world.network.take_at(choice / 2)
    };
    let other = world.network.past(input.u8()).map(|other| other.bytes).unwrap_or_default();
    if let Some(mut flight) = flight {
        damage(&mut flight, &other, input);
        world.deliver(flight);
    }
}

/// Lets time pass, in as many units as the input says.
fn pass(world: &mut World, unit: Duration, weather: Weather, input: &mut Input<'_>) {
    let (units, seed) = (input.u8(), input.u8());
    run(world, unit * u32::from(units), weather, &mut SplitMix64::new(seed.into()), false);
}

/// Lets time pass, timers and packets going as they should but for the weather. Ends early if
/// nothing is to be done any more, where `until_ended` says so.
fn run(
    world: &mut World,
    time: Duration,
    weather: Weather,
    rng: &mut SplitMix64,
    until_ended: bool,
) {
    let until = world.now + time;
    for _ in 0..MAX_MOMENTS {
        Side::BOTH.into_iter().for_each(|side| world.serve(side));
        if world.now >= until || (until_ended && world.unfinished() == 0) {
            return;
        }
        let under_way =
            if matches!(weather, Weather::Standstill) { 0 } else { world.network.len() };
        let next = if under_way > 0 { Some(world.now + HOP) } else { world.next_timeout() };
        world.now = next.unwrap_or(until).clamp(world.now, until);
        for _ in 0..under_way {
            let Some(flight) = world.network.take() else { break };
            match weather {
                Weather::OneWay(deaf) if flight.to == deaf => {}
                Weather::Rough { lost, .. } if rng.below(256) < lost => {}
                Weather::Rough { delayed, .. } if rng.below(256) < delayed => {
                    world.network.put_back(flight);
                }
                Weather::Rough { doubled, .. } if rng.below(256) < doubled => {
                    world.network.put_back(flight.clone());
                    world.deliver(flight);
                }
                _ => world.deliver(flight),
            }
        }
    }
    panic!(
        "time does not pass: {MAX_MOMENTS} moments, {:?} to go",
        until.saturating_since(world.now)
    );
}
