//! Random worlds, each from a seed. `CLOUDBURST_WORLDS=100000` plays that many of each kind.
//! `CLOUDBURST_WORLD=7` plays only the one with that seed, and prints what happens in it.
//!
//! With the feature `small-limits`, worlds also reach the ends of windows, epochs and tables.

use cloudburst_world::{Choices, Faults, play, play_verbose};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Worlds that a test plays.
const WORLDS: u64 = 500;
/// Worlds that a test of rare faults plays.
const MANY_WORLDS: u64 = 3_000;

#[test]
fn all_promises_hold_in_random_worlds() {
    play_all(MANY_WORLDS, Faults::ALL);
}

#[test]
fn promises_hold_without_long_pauses_and_replayed_handshakes() {
    play_all(WORLDS, Faults { replayed_handshakes: false, long_pauses: false, ..Faults::ALL });
}

#[test]
fn promises_hold_where_packets_reach_the_address_that_they_were_sent_to() {
    play_all(
        WORLDS,
        Faults { mirrors: false, relays: false, forged_addresses: false, ..Faults::ALL },
    );
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..100 {
        let [first, second] = [(); 2].map(|()| play_seed(seed, Faults::ALL));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(play_seed(1, Faults::ALL), play_seed(2, Faults::ALL));
}

/// Only with this feature do epochs end after a few packets.
#[cfg(feature = "small-limits")]
#[test]
fn a_session_continues_after_losing_whole_epochs_of_packets() {
    use cloudburst_core::config::{Config, ListenPorts, Security};
    use cloudburst_core::error::Outcome;
    use cloudburst_core::proto::SendOptions;
    use cloudburst_core::time::Instant;
    use cloudburst_core::wire::seal::EPOCH_PACKETS;
    use cloudburst_netem::{LinkConfig, Loss};
    use cloudburst_world::{Host, Network, Recipe, drive};
    use core::time::Duration;
    use std::net::SocketAddr;

    let address = |host: u8| SocketAddr::from(([10, 0, 0, host], 7000));
    let start = Instant::from_nanos(1_000_000_000);
    let mut hosts = [1, 2].map(|host| {
        let recipe = Recipe {
            config: Config::default(),
            listen: ListenPorts::one(7000),
            security: Security::pre_shared([7; 32]),
            secret: [host; 32],
            egresses: 1,
            addr: address(host),
            ports: 1,
            shared: None,
            interface_mtu: 1_500,
        };
        Host::new(recipe)
    });
    let plain = LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() };
    let mut network = Network::new(1, plain.clone());
    let mut now = start;
    let mut run_for = |hosts: &mut [Host; 2], network: &mut Network, time| {
        let until = now + time;
        while now < until {
            (0..2).for_each(|host| drive::drain(hosts, network, now, host, &mut drive::Nobody));
            let next = drive::next_at(hosts, network).unwrap_or(until);
            now = next.clamp(now, until);
            drive::run_moment(hosts, network, now, &mut drive::Nobody);
        }
        now
    };
    let send = |hosts: &mut [Host; 2], now, len| {
        let bytes = vec![7; len].into();
        let options = SendOptions::default();
        hosts[0].endpoint.send(now, address(2), bytes, &options).unwrap()
    };
    let mut ids = vec![send(&mut hosts, start, 10)];
    let now = run_for(&mut hosts, &mut network, Duration::from_millis(10));
    // Everything is lost for longer than three epochs of packets.
    network.set_conditions(0, 1, &LinkConfig { loss: Loss::Independent(1.0), ..plain });
    ids.extend((0..10).map(|_| send(&mut hosts, now, 93_000)));
    run_for(&mut hosts, &mut network, Duration::from_secs(1));
    assert!(hosts[0].counters().sender.symbols_sent > 3 * EPOCH_PACKETS);
    assert_eq!(hosts[0].delivered(), 1);
    network.heal();
    run_for(&mut hosts, &mut network, Duration::from_secs(1));
    for id in &ids {
        let outcome = &hosts[0].outcomes[id];
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    }
    assert_eq!(hosts[1].inbox.len(), ids.len());
    assert_eq!(hosts[0].counters().sender.sessions_opened, 1, "in the same session");
}

fn play_all(worlds: u64, faults: Faults) {
    if let Some(seed) = setting("CLOUDBURST_WORLD") {
        play_verbose(Choices::seed(seed), faults);
        return;
    }
    let worlds = setting("CLOUDBURST_WORLDS").unwrap_or(worlds);
    let next = AtomicU64::new(0);
    let play_some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= worlds {
                return;
            }
            play_seed(seed, faults);
        }
    };
    thread::scope(|threads| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(play_some);
        }
    });
}

/// Plays one world; prints its seed if it fails.
fn play_seed(seed: u64, faults: Faults) -> u64 {
    struct Blame(u64);
    impl Drop for Blame {
        fn drop(&mut self) {
            if thread::panicking() {
                eprintln!("a promise does not hold: replay with CLOUDBURST_WORLD={}", self.0);
            }
        }
    }
    let _blame = Blame(seed);
    play(Choices::seed(seed), faults)
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}
