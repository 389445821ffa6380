//! Switches that trim.

use super::incast::{Incast, incast};
use cloudburst_testbed::{Topology, Trim};
use libtest_mimic::Failed;

const DSCP: u8 = 44;
const WINDOW: u16 = 12;

pub(crate) fn trimmed_symbols_of_an_incast_are_losses_and_no_dead_paths() -> Result<(), Failed> {
    for len in [20_000, 93_000] {
        let trimming =
            Topology { trim: Some(Trim { bytes: 128, dscp: DSCP }), ..Topology::default() };
        let trimmed = incast(&trimming, len, WINDOW, |builder| builder.trimmable(DSCP))?;
        let dropped = incast(&Topology::default(), len, WINDOW, |builder| builder)?;
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
        assert!(seen.symbols_trimmed > 0 && trimmed.port.tiny.trimmed > 0, "{seen:?}");
        assert_eq!((seen.forged, seen.malformed, trimmed.foreign_dscp), (0, 0, 0), "{seen:?}");
        assert_eq!(trimmed.degraded, 0);
        assert!(dropped.port.tiny.dropped > 0 && dropped.port.tiny.trimmed == 0);
    }
    Ok(())
}
