//! pFabric and ExpressPass, whose switches differ: closed forms of idle flows, and properties that their
//! papers claim.

mod expresspass;
mod mixture;
mod pfabric;
mod queues;

use crate::common::{self, fabric, finish, flow};
use cloudburst_sim::engine::{Kind, NS, Packet, Time, US};
use cloudburst_sim::fabric::Link;
use cloudburst_sim::queue::Discipline;
use cloudburst_sim::trace::{Point, Tap};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::{Flow, Simulation};
use std::cell::RefCell;
use std::rc::Rc;

/// A flow: its start, source, destination and bytes.
type Planned = (Time, u16, u16, u64);

/// 60 full packets.
const MESSAGE: u64 = 60 * 1_460;

/// A simulation in the fabric of V-D. All ports, including those of hosts, have the same queue.
fn simulation(
    queue: impl Fn(Link) -> Discipline,
    transport: impl Transport + 'static,
    flows: &[Planned],
) -> Simulation {
    let flow = |&(at, source, destination, bytes)| flow(at, (source, destination, bytes));
    common::simulation(fabric(&queue, &queue), transport, flows.iter().map(flow))
}

fn run(
    queue: impl Fn(Link) -> Discipline,
    transport: impl Transport + 'static,
    flows: &[Planned],
) -> Vec<Flow> {
    finish(&mut simulation(queue, transport, flows))
}

/// `senders` of the other racks send a message to host 0 at the same time.
fn incast(senders: u16) -> Vec<Planned> {
    (0..senders).map(|sender| (0, 16 + sender, 0, MESSAGE)).collect()
}

/// Asserts that all flows are complete, and not before the link to host 0 can have carried them: the first packet
/// reaches it after 1.2 + 0.3 + 0.3 us and three links of 2 us, the 60 packets of each flow take 72 us, and the
/// link itself 2 us.
fn assert_incast(flows: &[Flow]) {
    assert!(flows.iter().all(|flow| flow.acknowledged.is_some() && flow.received == MESSAGE));
    let ends = flows.iter().filter_map(|flow| flow.delivered).max().unwrap_or(0);
    let bound = flows.len() as Time * 72 * US + 9_800 * NS;
    assert!(ends >= bound, "{ends} before {bound}");
}

/// Records when packets of each kind were at each point.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<(Time, Point, Kind)>>>);

impl Tap for Seen {
    fn see(&mut self, now: Time, point: Point, packet: &Packet, _bytes: &[u8]) {
        self.0.borrow_mut().push((now, point, packet.kind));
    }
}

impl Seen {
    fn times(&self, at: impl Fn(Point, Kind) -> bool) -> Vec<Time> {
        let seen = self.0.borrow();
        seen.iter().filter(|&&(_, point, kind)| at(point, kind)).map(|&(now, ..)| now).collect()
    }
}
