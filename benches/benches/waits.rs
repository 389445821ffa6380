//! The lateness of the timer of an endpoint's sockets, by the time until it expires:
//! `cargo bench --bench waits`.

use cloudburst_benches::stats::percentile;
use cloudburst_benches::{Result, run};
use cloudburst_core::burst::PacketIo;
use cloudburst_net::io::{UdpConfig, UdpIo};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Waits of each length.
const WAITS: usize = 1_000;

fn main() -> ExitCode {
    run("waits", |_| measure())
}

fn measure() -> Result<()> {
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
        let mut late = Vec::with_capacity(WAITS);
        for _ in 0..WAITS {
            let begun = Instant::now();
            io.set_timer(Some(io.now() + wait));
            let ready = io.wait(Duration::from_secs(1));
            late.push(begun.elapsed().saturating_sub(wait));
            io.take(ready, true, &mut |_| {});
        }
        late.sort_unstable();
        let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(&late, percent));
        println!("{wait:>10?} {p50:>12?} {p99:>12?} {max:>12?}");
    }
    Ok(())
}
