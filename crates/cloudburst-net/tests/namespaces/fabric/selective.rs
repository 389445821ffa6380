//! Switches that selectively drop packets sent before the first answer (Aeolus).

use super::incast::incast;
use super::rig::LARGE;
use cloudburst_net::{EcnMode, Fabric};
use cloudburst_testbed::Topology;
use libtest_mimic::Failed;

const NOT_ECT: usize = 0b00;
const ECT_0: usize = 0b10;
/// Twice as many symbols as the queue holds are burst together.
const WINDOW: u16 = 32;
const QUEUE: u32 = 64;

pub(crate) fn openings_of_an_incast_are_dropped_and_protected_packets_are_not() -> Result<(), Failed>
{
    let drop_tail = Topology { tiny_packets: QUEUE, ..Topology::default() };
    let selective = Topology { selective: Some(6_000), ..drop_tail.clone() };
    let fabric = || Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() };
    let with = incast(&selective, LARGE, WINDOW, fabric())?;
    let without = incast(&drop_tail, LARGE, WINDOW, fabric())?;
    for (how, incast) in [("selective", &with), ("drop-tail", &without)] {
        println!(
            "{how}: of {} openings {} dropped, of {} protected packets {}; {} sent for {} needed, \
             {} by timers",
            incast.left[NOT_ECT],
            incast.dropped(NOT_ECT),
            incast.left[ECT_0],
            incast.dropped(ECT_0),
            incast.sent,
            incast.needed,
            incast.retries
        );
    }
    assert!(with.port.tiny.dropped_selectively > 0);
    assert!(with.dropped(NOT_ECT) * 10 > with.left[NOT_ECT]);
    // Not zero: after a moment without a processor, a receiver may pull more than the queue holds.
    assert!(with.dropped(ECT_0) * 50 < with.left[ECT_0]);
    assert_eq!(without.port.tiny.dropped_selectively, 0);
    Ok(())
}
