//! SCDP with switches that trim: an incast of pulled messages through queues of 8 packets.

use super::*;
use cloudburst_sim::scheme::Scheme;
use cloudburst_sim::workload::List;

const SENDERS: u16 = 15;

/// The completion time of the last message of an incast, and the packets sent and needed for all of them.
fn incast(scheme: &str, bytes: u64) -> (Time, u32, u32) {
    let shape = Shape::one_switch(16);
    let link = Link { rate: common::GBPS, delay: 5 * US };
    let scheme = Scheme::find(scheme).unwrap();
    let fabric = scheme.fabric(shape, link, link, Some(8)).unwrap();
    let transport = (scheme.transport)(&shape, link).unwrap();
    let senders = || 1..=SENDERS;
    // One small message each, to open the sessions.
    let first = senders().map(|host| flow(Time::from(host) * MS, (host, 0, 1_000)));
    let begin = 100 * MS;
    let list = first.chain(senders().map(|host| flow(begin, (host, 0, bytes)))).collect();
    let mut simulation = Simulation::new(fabric, vec![transport], Box::new(List::new(list)), 1);
    simulation.run(5_000 * MS);
    let flows = &simulation.network().flows().as_slice()[usize::from(SENDERS)..];
    let last = flows.iter().map(|flow| flow.delivered.unwrap() - begin).max().unwrap();
    let sent = flows.iter().map(|flow| flow.sent);
    let needed = flows.iter().map(|flow| flow.needed);
    (last, sent.sum(), needed.sum())
}

#[test]
fn an_incast_takes_at_most_a_sixth_more_than_its_bytes_take_on_the_link_if_switches_trim() {
    for bytes in [20_000, 70_000, 256_000] {
        let payload = Time::from(SENDERS) * bytes * 8 * US / (common::GBPS / 1_000_000);
        let [dropped, trimmed] =
            ["cloudburst-pull", "cloudburst-trim"].map(|scheme| incast(scheme, bytes));
        for (name, (last, sent, needed)) in [("dropped", dropped), ("trimmed", trimmed)] {
            let last = last as f64 / payload as f64;
            println!("{bytes} bytes, {name}: {last:.3} of the time, {sent} of {needed}");
        }
        assert!(trimmed.0 * 6 <= payload * 7, "{} of {payload} ns", trimmed.0);
    }
}
