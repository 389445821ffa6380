//! The conditions of links: what they do to packets, from nothing to everything.

use cloudburst_netem::{LinkConfig, Loss, Trim};
use core::time::Duration;

/// The time that a packet takes on a clear link.
pub(crate) const HOP: Duration = Duration::from_micros(20);

/// The rate of a link that serves classes, unless its conditions have a lower one.
const RATE: u64 = 1_000_000_000;

/// The number of kinds of conditions; the first is a clear link.
pub(crate) const KINDS: usize = 15;

/// The conditions of a kind below [`KINDS`]. If `classed`, every link that does not trim has a rate, and serves classes of
/// packets by strict priority.
pub(crate) fn link_config(kind: usize, classed: bool) -> LinkConfig {
    let config = unclassed(kind);
    if classed && config.trim.is_none() {
        LinkConfig { classes: 4, rate: config.rate.or(Some(RATE)), ..config }
    } else {
        config
    }
}

fn unclassed(kind: usize) -> LinkConfig {
    let clear = LinkConfig { delay: HOP, ..LinkConfig::default() };
    let lossy = |share| LinkConfig { loss: Loss::Independent(share), ..clear.clone() };
    let bursts = Loss::Bursty { to_bad: 0.05, to_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };
    match kind {
        1 => lossy(0.1),
        2 => lossy(0.5),
        3 => lossy(1.0),
        4 => LinkConfig { loss: bursts, ..clear },
        5 => LinkConfig { duplicate: 0.3, ..clear },
        6 => LinkConfig { reorder: 0.3, reorder_by: HOP * 20, ..clear },
        7 => LinkConfig { corrupt: 0.3, ..clear },
        8 => LinkConfig { truncate: 0.3, ..clear },
        9 => LinkConfig { extend: 0.3, ..clear },
        10 => LinkConfig { rate: Some(10_000_000), queue: 8, ..clear },
        11 => LinkConfig { delay: HOP * 1_000, jitter: HOP * 100, ..clear },
        12 => LinkConfig { mtu: Some(600), ..clear },
        13 => LinkConfig {
            loss: Loss::Independent(0.1),
            duplicate: 0.1,
            reorder: 0.1,
            reorder_by: HOP * 20_000,
            corrupt: 0.1,
            truncate: 0.1,
            extend: 0.1,
            jitter: HOP * 5,
            ..clear
        },
        14 => {
            let trim = Some(Trim { header: 86, queue: 16 });
            LinkConfig { rate: Some(20_000_000), queue: 3, trim, ..clear }
        }
        _ => clear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_conditions_is_valid_and_only_the_first_is_clear() {
        for kind in 0..KINDS {
            for classed in [false, true] {
                link_config(kind, classed).check().expect("all values are in range");
                let is_clear = link_config(kind, classed) == link_config(0, classed);
                assert_eq!(is_clear, kind == 0, "{kind}");
            }
        }
    }
}
