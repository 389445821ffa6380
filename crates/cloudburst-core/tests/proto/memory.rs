//! The memory of a burst is released once the burst is over.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::Config;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

#[test]
fn sending_times_of_a_burst_are_given_back_when_it_is_over() {
    // Some 8,000 packets are in flight at a time.
    let a = Config { capacity: 10_000_000_000.into(), ..Setup::default().a };
    let link = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
    let mut pair = Pair::new(Setup { a, link, ..Setup::default() });
    pair.deliver(message(1, 0));
    let burst = allocation_counter::measure(|| {
        for seed in 0..200 {
            pair.send(message(93_000, seed));
        }
        pair.settle();
        pair.b.inbox.clear();
        pair.run_for(Duration::from_millis(50));
    });
    let rest = allocation_counter::measure(|| pair.run_for(Duration::from_secs(5)));
    println!("bytes kept: {} after the burst, {} later", burst.bytes_current, rest.bytes_current);
    assert!(rest.bytes_current < -100_000, "{}", rest.bytes_current);
}

#[test]
fn what_clients_leave_behind_is_little_and_soon_forgotten() {
    const CLIENTS: i64 = 100;
    let mut pair = Pair::new(Setup::default());
    let come_and_go = |pair: &mut Pair| {
        for _ in 0..CLIENTS {
            pair.restart(Side::A);
            (0..10).for_each(|seed| drop(pair.deliver(message(5_000, seed))));
            pair.b.inbox.clear();
            pair.a.endpoint.stop(pair.now);
            pair.run_for(Duration::from_millis(10));
        }
    };
    // Tables keep their capacity.
    come_and_go(&mut pair);
    pair.run_for(Duration::from_secs(41));
    let left = allocation_counter::measure(|| come_and_go(&mut pair)).bytes_current;
    let each = left / CLIENTS;
    let freed = allocation_counter::measure(|| pair.run_for(Duration::from_secs(41)));
    println!("{each} bytes for each client; {} bytes kept", left + freed.bytes_current);
    assert!(each < 10_000, "{each}");
    assert!(left + freed.bytes_current < left / 20, "{} of {left}", -freed.bytes_current);
}
