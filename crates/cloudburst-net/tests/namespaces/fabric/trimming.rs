//! Switches that trim.

use super::incast::{Incast, incast};
use cloudburst_net::Fabric;
use cloudburst_testbed::{Topology, Trim};
use libtest_mimic::Failed;

const DSCP: u8 = 44;
const WINDOW: u16 = 12;

fn switches(trim_dscp: Option<u8>) -> Fabric {
    Fabric { trim_dscp, ..Fabric::default() }
}

pub(crate) fn trimmed_symbols_of_an_incast_are_losses_and_no_dead_paths() -> Result<(), Failed> {
    // A busy host may start the senders of short messages one after the other, so that no queue is full.
    let mut seen_trimmed = 0;
    let mut port_trimmed = 0;
    let mut port_dropped = 0;
    for len in [20_000, 93_000] {
        let trimming =
            Topology { trim: Some(Trim { bytes: 128, dscp: DSCP }), ..Topology::default() };
        let trimmed = incast(&trimming, len, WINDOW, switches(Some(DSCP)))?;
        let dropped = incast(&Topology::default(), len, WINDOW, switches(None))?;
        for (how, incast) in [("trimmed", &trimmed), ("dropped", &dropped)] {
            let Incast { sent, needed, retries, degraded, port, .. } = incast;
            println!(
                "{len} bytes, {how}: {sent} sent for {needed} needed ({:.2}), {retries} by timers; \
                 {degraded} paths degraded; at the port {} trimmed, {} dropped",
                *sent as f64 / *needed as f64,
                port.tiny.trimmed,
                port.tiny.dropped
            );
        }
        let seen = trimmed.receiver;
        seen_trimmed += seen.symbols_trimmed;
        port_trimmed += trimmed.port.tiny.trimmed;
        port_dropped += dropped.port.tiny.dropped;
        assert_eq!((seen.forged, seen.malformed, trimmed.foreign_dscp), (0, 0, 0), "{seen:?}");
        assert_eq!(trimmed.degraded, 0);
        assert_eq!(dropped.port.tiny.trimmed, 0);
    }
    let counts = [seen_trimmed, port_trimmed, port_dropped];
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    Ok(())
}
