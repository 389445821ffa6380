//! The memory of a burst is released once the burst is over.

use crate::common::{Pair, Setup, message};
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
