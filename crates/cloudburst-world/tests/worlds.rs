//! Random worlds, each from a seed. `CLOUDBURST_WORLDS=100000` plays so many of each kind, and
//! `CLOUDBURST_WORLD=7` the one of that seed alone, and prints what happens in it.
//!
//! With the feature `small-limits`, worlds reach the ends of windows, epochs and tables as well.

use cloudburst_world::{Choices, Scope, play, play_aloud};

/// Worlds that a test plays.
const WORLDS: u64 = 500;
/// The same where the faults that a test is about are rare.
const MANY_WORLDS: u64 = 10_000;

#[test]
fn promises_hold_in_random_worlds() {
    play_all(MANY_WORLDS, Scope::ALL);
}

#[test]
fn promises_hold_where_nobody_sleeps_and_no_old_handshake_is_replayed() {
    play_all(WORLDS, Scope { haunting: false, sleepers: false, ..Scope::ALL });
}

#[test]
fn promises_hold_where_packets_go_where_they_were_sent() {
    play_all(
        WORLDS,
        Scope { mirrors: false, relays: false, forged_addresses: false, ..Scope::ALL },
    );
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..100 {
        let [first, second] = [(); 2].map(|()| play_seed(seed, Scope::ALL));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(play_seed(1, Scope::ALL), play_seed(2, Scope::ALL));
}

fn play_all(worlds: u64, scope: Scope) {
    if let Some(seed) = setting("CLOUDBURST_WORLD") {
        play_aloud(Choices::seed(seed), scope);
        return;
    }
    for seed in 0..setting("CLOUDBURST_WORLDS").unwrap_or(worlds) {
        play_seed(seed, scope);
    }
}

/// Plays one world; says which it was if it fails.
fn play_seed(seed: u64, scope: Scope) -> u64 {
    struct Blame(u64);
    impl Drop for Blame {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("a promise does not hold: play it with CLOUDBURST_WORLD={}", self.0);
            }
        }
    }
    let _blame = Blame(seed);
    play(Choices::seed(seed), scope)
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}
