//! The memory of messages is reused, within bounds, and never while the application holds it.

use crate::common::{Pair, Setup, message};
use cloudburst_core::config::Config;
use cloudburst_core::proto::Message;
use core::time::Duration;

const LENGTH: usize = 93_000;

fn pair() -> Pair {
    let a = Config { capacity: 10_000_000_000.into(), ..Setup::default().a };
    Pair::new(Setup { a, ..Setup::default() })
}

/// Sends messages with these seeds, all at once.
fn burst(pair: &mut Pair, seeds: core::ops::Range<u64>) {
    seeds.for_each(|seed| _ = pair.send(message(LENGTH, seed)));
    pair.settle();
}

#[test]
fn a_message_that_the_application_keeps_is_not_written_over() {
    let mut pair = pair();
    let mut kept: Vec<(u64, Message)> = Vec::new();
    for seed in 0..60 {
        let length = if seed % 2 == 0 { LENGTH } else { 5_000 };
        pair.deliver(message(length, seed));
        let received = pair.b.inbox.pop().unwrap();
        if seed % 3 == 0 {
            kept.push((seed, received));
        }
    }
    // They outlive the endpoint, too.
    drop(pair);
    for (seed, received) in kept {
        assert!(received.bytes == message(received.bytes.len(), seed), "message {seed}");
    }
}

#[test]
fn where_the_application_keeps_everything_memory_is_allocated() {
    let mut pair = pair();
    for seed in 0..3 {
        burst(&mut pair, 100 * seed..100 * (seed + 1));
    }
    assert_eq!(pair.b.inbox.len(), 300);
    let mut seeds: Vec<u64> = (0..300).collect();
    for received in &pair.b.inbox {
        let at = seeds.iter().position(|&seed| received.bytes == message(LENGTH, seed));
        seeds.swap_remove(at.expect("each came once"));
    }
}

#[test]
fn memory_of_messages_is_bounded_and_given_back_when_nothing_comes() {
    let mut pair = pair();
    pair.deliver(message(1, 0));
    let used = allocation_counter::measure(|| {
        burst(&mut pair, 0..300);
        pair.b.inbox.clear();
    });
    let kept = used.bytes_current;
    // 16 MiB of buffers, and the memory that the sender keeps.
    assert!((8 << 20..19 << 20).contains(&kept), "{kept} of {} bytes", 300 * LENGTH);
    let idle = allocation_counter::measure(|| pair.run_for(Duration::from_secs(5)));
    let left = kept + idle.bytes_current;
    assert!(left < 1 << 20, "{left} bytes are left of {kept}");
    let next = pair.b.endpoint.poll_timeout().unwrap();
    assert!(next > pair.now + Duration::from_secs(5), "only handshakes and sessions have timers");
}
