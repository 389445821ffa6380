//! ExpressPass over credit queues.

use super::{MESSAGE, Seen, assert_incast, finish, incast, run, simulation};
use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{Kind, MS, NS, Time, US};
use cloudburst_sim::fabric::Link;
use cloudburst_sim::queue::{CreditConfig, CreditQueue, Depth, Discipline, DropTail};
use cloudburst_sim::trace::Point;
use cloudburst_sim::transport::expresspass::{Config, ExpressPass};

/// 84 bytes across racks: four links of 2 us, 67.2 ns at 10 Gb/s and 16.8 ns at 40 Gb/s, twice each.
const CONTROL: Time = 8_168 * NS;
/// 1,538 bytes across racks: 1,230.4 and 307.6 ns, twice each.
const DATA: Time = 11_076 * NS;
/// 84 + 1,538 bytes at 10 Gb/s.
const INTERVAL: Time = 1_297_600;

fn queue(link: Link) -> Discipline {
    CreditQueue::new(link.rate, CreditConfig::default()).into()
}

fn without_jitter() -> Config {
    Config { jitter: 0.0, ..Config::default() }
}

#[test]
fn an_idle_flow_at_the_full_rate_of_credits() {
    // A target loss of 0 and a rate of 1 leave nothing to adapt: the request, the first credit, 59 intervals,
    // and the last packet.
    let config = Config { initial_rate: 1.0, target_loss: 0.0, ..without_jitter() };
    let flow = run(queue, ExpressPass::new(config), &[(0, 0, 143, MESSAGE)])[0];
    let whole = 2 * CONTROL + 59 * INTERVAL + DATA;
    assert_eq!(whole, 103_970_400);
    assert_eq!(flow.delivered, Some(whole));
    // STOP arrives 67.2 ns after the last packet, its transmission time, and is acknowledged.
    assert_eq!(flow.acknowledged, Some(whole + 67_200 + CONTROL));
    assert_eq!((flow.sent, flow.needed), (60, 60));
}

#[test]
fn an_idle_flow_of_one_packet_takes_a_round_trip_and_a_half() {
    let flow = run(queue, ExpressPass::new(Config::default()), &[(0, 0, 143, 100)])[0];
    // 178 bytes: 78 of headers. 142.4 and 35.6 ns, twice each.
    assert_eq!(flow.delivered, Some(2 * CONTROL + 8 * US + 2 * 142_400 + 2 * 35_600));
}

#[test]
fn an_idle_flow_follows_algorithm_1() {
    // Credits of an idle path are not lost and return as data 19.244 us after they were sent. In each round trip,
    // w moves half of the way to 1/2, beginning with the second increase, and the rate the share w of the way to 1.1.
    let mut rate = 0.0625;
    let mut step = 0.0625;
    let mut updated = CONTROL;
    let mut has_increased = false;
    let mut credits = vec![CONTROL];
    for _ in 1..40 {
        let now = credits[credits.len() - 1] + (INTERVAL as f64 / rate) as Time;
        if now - updated >= CONTROL + DATA {
            if has_increased {
                step = (step + 0.5) / 2.0;
            }
            rate = (1.0 - step) * rate + step * 1.1;
            has_increased = true;
            updated = now;
        }
        credits.push(now);
    }
    // The rate stays below 1, so that no switch delays a credit.
    assert!((0.8..1.0).contains(&rate), "{rate}");
    let flow = run(queue, ExpressPass::new(without_jitter()), &[(0, 0, 143, 40 * 1_460)])[0];
    let last = credits[39];
    assert_eq!(flow.delivered, Some(last + CONTROL + DATA));
    // The first credit leaves after 8.168 us, and the second 20.76 us (16 intervals) later.
    assert_eq!(credits[1], CONTROL + 16 * INTERVAL);
}

#[test]
fn an_incast_loses_credits_and_no_data() {
    for (senders, jitter) in [(2, 0.5), (16, 0.5), (64, 0.5), (64, 0.0)] {
        let config = Config { jitter, ..Config::default() };
        let flows = incast(senders);
        let mut simulation = simulation(queue, ExpressPass::new(config), &flows);
        let seen = Seen::default();
        simulation.network_mut().set_tap(Some(Box::new(seen.clone())));
        assert_incast(&finish(&mut simulation));
        let dropped = |kind| {
            let is_drop = |point, of| matches!(point, Point::Dropped(_)) && of == kind;
            seen.times(is_drop).len()
        };
        assert_eq!(dropped(Kind::Data), 0);
        assert!(dropped(Kind::Credit) > 0 || senders == 2);
        // Host 0 sends credits at no more than their share of its link, except that two may leave back to back.
        let credits = seen.times(|point, kind| point == Point::Sent(0) && kind == Kind::Credit);
        for (k, &from) in credits.iter().enumerate() {
            let late = credits[k..].iter().enumerate();
            for (count, &at) in late.skip(1).take(100) {
                assert!(at - from >= (count as Time - 1) * INTERVAL);
            }
        }
        // Apart from queued packets, its link carries data at no more than 1,538 / 1,622 of its rate.
        let data = seen.times(|point, kind| point == Point::Sent(144) && kind == Kind::Data);
        for packets in data.windows(200) {
            assert!(packets[199] - packets[0] >= 185 * INTERVAL);
        }
    }
}

#[test]
fn credits_of_an_incast_fill_the_link() {
    // 64 flows of 60 packets, each sent for a credit: the time that the link needs, and 10 % for the start and for
    // credits that arrive when their flow has nothing left to send.
    let flows = run(queue, ExpressPass::new(Config::default()), &incast(64));
    let ends = flows.iter().filter_map(|flow| flow.delivered).max().unwrap();
    let least = 64 * 60 * INTERVAL;
    assert!((least..least * 11 / 10).contains(&ends), "{ends} of {least}");
}

#[test]
fn two_flows_share_a_link_equally() {
    let flows = [(0, 16, 0, 3_000 * 1_460), (300 * US, 32, 0, 3_000 * 1_460)];
    let mut simulation = simulation(queue, ExpressPass::new(Config::default()), &flows);
    let received =
        |simulation: &Simulation| [0, 1].map(|flow| simulation.network().flows()[flow].received);
    simulation.run(1_500 * US);
    let before = received(&simulation);
    simulation.run(3_000 * US);
    let after = received(&simulation);
    let [first, second] = [0, 1].map(|flow| after[flow] - before[flow]);
    let share = first as f64 / (first + second) as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn lost_packets_are_requested_again() {
    // A link of either host is down for a while: the request, credits, data, STOP or its acknowledgement are
    // lost.
    let reference = run(queue, ExpressPass::new(without_jitter()), &[(0, 0, 143, MESSAGE)])[0];
    for down_at in [0, 40 * US, 90 * US, 120 * US, 150 * US, 160 * US, 170 * US] {
        for port in [0, 144 + 143, 143, 144] {
            let flows = [(0, 0, 143, MESSAGE)];
            let mut simulation = simulation(queue, ExpressPass::new(without_jitter()), &flows);
            simulation.run(down_at);
            simulation.network_mut().fabric_mut().set_up(port, false);
            simulation.run(down_at + 30 * US);
            simulation.network_mut().fabric_mut().set_up(port, true);
            let flow = finish(&mut simulation)[0];
            assert!(flow.delivered >= reference.delivered, "{down_at} {port}");
            assert!(flow.acknowledged < Some(2 * MS), "{down_at} {port} {flow:?}");
        }
    }
}

#[test]
fn every_flow_of_an_incast_into_tiny_queues_is_complete() {
    let tiny = CreditConfig { credits: 1, data: 1, burst: 1, ..CreditConfig::default() };
    for senders in [8, 128] {
        let queue = |link: Link| CreditQueue::new(link.rate, tiny).into();
        assert_incast(&run(queue, ExpressPass::new(Config::default()), &incast(senders)));
        let queue = |_| DropTail::new(Depth::Packets(4)).into();
        assert_incast(&run(queue, ExpressPass::new(Config::default()), &incast(senders)));
    }
}
