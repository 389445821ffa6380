//! A transport with its own loss recovery over the queues of other schemes: flows complete whatever the queues
//! do to packets.

use super::{Seen, assert_incast, finish, incast, run, simulation};
use cloudburst_sim::Network;
use cloudburst_sim::engine::{Handle, Kind, Packet, US};
use cloudburst_sim::fabric::Link;
use cloudburst_sim::queue::{
    Aeolus, CreditConfig, CreditQueue, Discipline, PFabricQueue, Trimming, TrimmingConfig,
};
use cloudburst_sim::trace::Point;
use cloudburst_sim::transport::{Transport, pfabric};

#[test]
fn every_flow_of_an_incast_into_each_queue_is_complete() {
    let queues: [fn(Link) -> Discipline; 5] = [
        |_| PFabricQueue::new(8).into(),
        |link| CreditQueue::new(link.rate, CreditConfig::default()).into(),
        |_| Trimming::new(TrimmingConfig::default()).into(),
        |_| {
            Trimming::new(TrimmingConfig { data: 1, headers: 2, ..TrimmingConfig::default() })
                .into()
        },
        |link| Aeolus::new(link.rate, 6_000, 12_000).into(),
    ];
    for queue in queues {
        for senders in [4, 60] {
            let config = pfabric::Config { rto: 100 * US, ..pfabric::Config::default() };
            assert_incast(&run(queue, pfabric::PFabric::new(config), &incast(senders)));
        }
    }
}

/// Sends 20 packets at once, every second of which is droppable, and counts the arrivals of the others.
#[derive(Debug)]
struct Blast {
    number: u8,
}

impl Transport for Blast {
    fn attach(&mut self, number: u8, _network: &mut Network) {
        self.number = number;
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let spec = network.flows()[flow].spec;
        for sequence in 0..20 {
            let mut packet = Packet::default();
            packet.flow = flow;
            packet.sequence = sequence;
            packet.source = spec.source;
            packet.destination = spec.destination;
            packet.size = 1_500;
            packet.transport = self.number;
            packet.droppable = sequence % 2 == 1;
            network.send(packet);
        }
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        if !network.packet(packet).droppable {
            let flow = network.packet(packet).flow;
            network.flow_mut(flow).received += 1;
        }
    }

    fn expire(&mut self, _network: &mut Network, _flow: u32, _token: u32) {}
}

#[test]
fn unscheduled_packets_do_not_displace_scheduled_ones() {
    // 20 hosts send 10 packets of each kind. All 200 packets that are not droppable fit into 500 KB.
    let queue = |link: Link| Aeolus::new(link.rate, 6_000, 500_000).into();
    let mut simulation = simulation(queue, Blast { number: 0 }, &incast(20));
    let seen = Seen::default();
    simulation.network_mut().set_tap(Some(Box::new(seen.clone())));
    let flows = finish(&mut simulation);
    assert!(flows.iter().all(|flow| flow.received == 10));
    let arrived = seen.times(|point, kind| point == Point::Arrived && kind == Kind::Data).len();
    assert!((200..260).contains(&arrived), "{arrived}");
}
