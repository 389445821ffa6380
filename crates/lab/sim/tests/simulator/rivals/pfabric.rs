//! pFabric's transport over pFabric's queues.

use super::{MESSAGE, assert_incast, finish, incast, run, simulation};
use cloudburst_sim::engine::{MS, NS, Time, US};
use cloudburst_sim::fabric::Link;
use cloudburst_sim::queue::{Discipline, PFabricQueue as Queue};
use cloudburst_sim::transport::pfabric::{Config, PFabric};

/// An acknowledgement of 40 bytes across racks: four links of 2 us, and 32 ns at 10 Gb/s and 8 ns at 40 Gb/s,
/// twice each.
const ACK: Time = 8_080 * NS;
/// A packet of 1,500 bytes and its acknowledgement: 8 + 1.2 + 0.3 + 0.3 + 1.2 us, and `ACK`.
const ROUND_TRIP: Time = 19_080 * NS;

fn queue(_: Link) -> Discipline {
    Queue::new(34).into()
}

/// The times at which an idle flow is delivered, and at which its sender knows.
fn idle(config: Config) -> (Time, Time) {
    let flow = run(queue, PFabric::new(config), &[(0, 0, 143, MESSAGE)])[0];
    assert_eq!((flow.sent, flow.needed), (60, 60));
    (flow.delivered.expect("delivered"), flow.acknowledged.expect("acknowledged"))
}

#[test]
fn an_idle_flow_is_sent_at_line_rate() {
    // 17 packets take 20.4 us, longer than a round trip: the window never stops the sender. 60 packets of 1.2
    // us, and 9.8 us for the last to cross the fabric.
    let whole = 60 * 1_200 * NS + 9_800 * NS;
    assert_eq!(whole, 81_800 * NS);
    for spray in [true, false] {
        assert_eq!(idle(Config { spray, ..Config::default() }), (whole, whole + ACK));
    }
}

#[test]
fn an_idle_flow_with_a_window_of_one_packet_starts_slowly() {
    // Windows of 1, 2, 4 and 8 packets, a round trip each. With the next, 16 packets take 19.2 us, more than a
    // round trip, so the other 45 leave without a pause.
    let whole = 4 * ROUND_TRIP + 45 * 1_200 * NS + 9_800 * NS;
    assert_eq!(whole, 140_120 * NS);
    let config = Config { window: 1, ..Config::default() };
    assert_eq!(idle(config), (whole, whole + ACK));
}

#[test]
fn an_idle_flow_with_a_small_largest_window_is_clocked_by_acknowledgements() {
    // 4 packets a round trip: the 60th is the last of the 15th window.
    let whole = 14 * ROUND_TRIP + 4 * 1_200 * NS + 9_800 * NS;
    let config = Config { window: 4, max_window: 4, ..Config::default() };
    assert_eq!(idle(config), (whole, whole + ACK));
}

#[test]
fn lost_packets_are_retransmitted_after_constant_timeouts() {
    let mut simulation =
        simulation(queue, PFabric::new(Config::default()), &[(0, 0, 143, 10 * 1_460)]);
    simulation.network_mut().fabric_mut().set_up(0, false);
    simulation.run(3 * MS + 500 * US);
    simulation.network_mut().fabric_mut().set_up(0, true);
    let flow = finish(&mut simulation)[0];
    assert_eq!(flow.sent, 10 + 3 + 10);
    // 10 packets at 0 and one each at 1, 2 and 3 ms are lost. From 4 ms on, four round trips carry 1, 2, 2 and 3
    // packets, because the slow start threshold is 2 after a timeout in slow start. The 10th packet is sent on the
    // second acknowledgement of the fifth round trip, 1.2 us after the first.
    let whole = 4 * MS + 4 * ROUND_TRIP + 1_200 * NS + 11_000 * NS;
    assert_eq!(flow.delivered, Some(whole));
    assert_eq!(flow.acknowledged, Some(whole + ACK));
}

#[test]
fn after_five_timeouts_only_probes_are_sent_until_one_is_acknowledged() {
    let flows = [(0, 0, 143, 1_460)];
    let mut simulation = simulation(queue, PFabric::new(Config::default()), &flows);
    simulation.network_mut().fabric_mut().set_up(0, false);
    simulation.run(7 * MS + 500 * US);
    simulation.network_mut().fabric_mut().set_up(0, true);
    let flow = finish(&mut simulation)[0];
    // Data at 0, 1, 2, 3 and 4 ms, probes at 5, 6, 7 and 8 ms. The last probe and its acknowledgement cross the
    // fabric, and then the packet: 1.2 us to send 1,500 bytes, and 9.8 us.
    assert_eq!(flow.sent, 6);
    assert_eq!(flow.delivered, Some(8 * MS + 2 * ACK + 11_000 * NS));
    assert_eq!(flow.acknowledged, Some(8 * MS + 2 * ACK + ROUND_TRIP));
}

#[test]
fn the_shorter_of_two_flows_at_a_bottleneck_finishes_as_if_alone() {
    let alone = idle(Config::default()).0;
    for begins in [0, 100 * US, 333_333] {
        let flows = [(0, 16, 0, 20 * MESSAGE), (begins, 32, 0, MESSAGE)];
        let flows = run(queue, PFabric::new(Config::default()), &flows);
        let took = flows[1].delivered.unwrap() - begins;
        // A packet in service is not preempted: 0.3 us at a spine, 1.2 us at the leaf.
        assert!((alone..=alone + 1_500 * NS).contains(&took), "{took} from {begins}");
        assert!(flows[0].delivered > flows[1].delivered);
    }
}

#[test]
fn flows_finish_in_the_order_of_their_sizes() {
    let flow = |k: u16| (0, 16 * (k + 1), 0, u64::from(8 - k) * MESSAGE);
    let flows: Vec<_> = (0..8).map(flow).collect();
    let flows = run(queue, PFabric::new(Config::default()), &flows);
    assert!(flows.windows(2).all(|pair| pair[0].delivered > pair[1].delivered));
    // With equal shares, the shortest would take 8 times as long.
    assert!(flows[7].delivered < Some(90 * US), "{:?}", flows[7].delivered);
}

#[test]
fn every_flow_of_an_incast_is_complete() {
    for (senders, limit) in [(2, 34), (8, 34), (100, 34), (128, 4), (16, 1)] {
        let config = Config { rto: 60 * US, ..Config::default() };
        let queue = |_| Queue::new(limit).into();
        let mut simulation = simulation(queue, PFabric::new(config), &incast(senders));
        assert_incast(&finish(&mut simulation));
    }
}

#[test]
fn every_flow_completes_while_links_fail_and_recover() {
    let mut simulation = simulation(queue, PFabric::new(Config::default()), &incast(8));
    for k in 0..200 {
        simulation.run(k * 50 * US);
        for port in [144, 0, 17] {
            simulation.network_mut().fabric_mut().set_up(port, k % 3 != port as Time % 3);
        }
    }
    for port in [144, 0, 17] {
        simulation.network_mut().fabric_mut().set_up(port, true);
    }
    assert_incast(&finish(&mut simulation));
}
