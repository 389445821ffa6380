//! Random calls by random peers: the receiver's accounts always balance.

use super::crowd::{Crowd, Says, Voice};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::rng::SplitMix64;
use cloudburst_core::wire::Role;
use core::time::Duration;

#[test]
fn the_invariants_of_a_receiver_hold_after_any_call() {
    let mut delivered = 0;
    let mut dropped = 0;
    let mut refused = 0;
    for seed in 0..60 {
        let mut rng = SplitMix64::new(seed);
        let mut below = |bound: u64| rng.next_u64() % bound;
        let mut crowd = Crowd::new(Config {
            max_message: 10_000,
            tuning: Tuning {
                max_peers: Some(2),
                receive_messages: Some(3),
                decode_bytes: Some(60_000),
                decode_bytes_per_peer: Some(25_000),
                ..Tuning::default()
            },
            ..Config::default()
        });
        let mut voices: Vec<Voice> = Vec::new();
        let mut untaken = Vec::new();
        for step in 0..400 {
            if voices.is_empty() || below(20) == 0 {
                crowd.discard_answers();
                crowd.wait(Duration::from_millis(1));
                voices.push(crowd.meet_again(below(6) as u32, seed << 32 | step));
            }
            let speaker = below(voices.len() as u64) as usize;
            let voice = &mut voices[speaker];
            voice.role = [Role::Plain, Role::Request, Role::Response][below(3) as usize];
            let id = step / 8 + below(12);
            let len = [10, 900, 2_000, 10_000][below(4) as usize];
            let kept = below(id + 1) as u32;
            let part =
                Says { symbol: below(4) as u32, ack_request: below(2) == 0, ..Says::part(id, len) };
            match below(10) {
                0..=3 => crowd.hear(voice, Says { age: kept, ..part }),
                4..=6 => crowd.hear(voice, Says { age: kept, ..Says::whole(id, len) }),
                7 => {
                    let hello = voice.hello(step);
                    crowd.replay(66, &hello);
                }
                8 => {
                    let seconds = [0, 1, 20, 200][below(4) as usize];
                    crowd.discard_answers();
                    crowd.wait(Duration::from_millis(1 + seconds * 1_000));
                }
                _ if untaken.is_empty() => crowd.discard_answers(),
                _ => match untaken.swap_remove(below(untaken.len() as u64) as usize) {
                    Role::Plain => drop(crowd.receiver.recv()),
                    _ => drop(crowd.receiver.recv_request(crowd.now)),
                },
            }
            untaken.extend(crowd.messages());
            crowd.receiver.check_invariants();
        }
        let counters = crowd.counters();
        delivered += counters.messages_delivered;
        dropped += counters.messages_dropped + counters.decoders_expired;
        refused += counters.peers_refused + counters.busy_sent;
    }
    assert!(delivered > 100 && dropped > 100 && refused > 100, "{delivered} {dropped} {refused}");
}
