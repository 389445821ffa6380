//! The lateness of waits for packets, by their length: `cargo bench --bench waits`.
//!
//! Threads have the same timer slack as those of an endpoint, 1 ns.

use cloudburst_core::burst::PacketIo;
use cloudburst_net::io::{UdpConfig, UdpIo};
use hdrhistogram::Histogram;
use nix::sys::prctl;
use std::env;
use std::time::{Duration, Instant};

/// Waits of each length.
const WAITS: usize = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --benches` and `--all-targets` run benches.
    if !env::args().any(|argument| argument == "--bench") {
        println!("waits: skipped, it is not a test: cargo bench -p cloudburst-benches");
        return Ok(());
    }
    prctl::set_timerslack(1)?;
    let config = UdpConfig {
        bind: "127.0.0.1:0".parse()?,
        reuse_port: false,
        sockets: 16,
        ports: 1,
        flow_labels: 0,
        encapsulates: false,
        dscps: vec![0],
        trim_dscp: None,
        socket_buffers: 1 << 20,
    };
    let io = UdpIo::open(&config, Vec::new())?;
    println!("{:>10} {:>12} {:>12} {:>12}", "wait", "late p50", "late p99", "late max");
    for micros in [10, 50, 100, 500, 1_000, 1_500] {
        let wait = Duration::from_micros(micros);
        let mut late = Histogram::<u64>::new(3)?;
        for _ in 0..WAITS {
            let begun = Instant::now();
            let ready = io.wait(wait);
            late.record(begun.elapsed().saturating_sub(wait).as_nanos() as u64)?;
            io.take(ready, &mut |_| {});
        }
        let at = |quantile| Duration::from_nanos(late.value_at_quantile(quantile));
        println!("{wait:>10?} {:>12?} {:>12?} {:>12?}", at(0.5), at(0.99), at(1.0));
    }
    Ok(())
}
