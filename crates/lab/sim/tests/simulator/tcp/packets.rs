//! The paths and classes of packets.

use super::{fabric, simulation};
use crate::common::{GBPS, unlimited};
use cloudburst_core::path::Order;
use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{Kind, Packet, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::trace::{Point, Tap};
use cloudburst_sim::transport::tcp::{Config, LoadBalancing, Tcp};
use std::cell::RefCell;
use std::rc::Rc;

/// Records all packets that hosts send.
#[derive(Clone, Default)]
struct Sent(Rc<RefCell<Vec<Packet>>>);

impl Tap for Sent {
    fn see(&mut self, _: Time, point: Point, packet: &Packet, _: &[u8]) {
        if matches!(point, Point::Sent(_)) && packet.hop == 0 {
            self.0.borrow_mut().push(*packet);
        }
    }
}

fn sent(mut simulation: Simulation) -> Vec<Packet> {
    let sent = Sent::default();
    simulation.network_mut().set_tap(Some(Box::new(sent.clone())));
    simulation.run(Time::MAX / 2);
    sent.0.take()
}

fn paths_of(packets: &[Packet], kind: Kind, source: u16) -> Vec<u16> {
    let of_kind = packets.iter().filter(|packet| packet.kind == kind && packet.source == source);
    of_kind.map(|packet| packet.path).collect()
}

#[test]
fn each_pair_has_separate_path_orders_for_data_and_acks() {
    // Two flows of the same pair, and one the other way.
    let flows = [(0, 143, 20 * 1_460), (0, 143, 20 * 1_460), (143, 0, 20 * 1_460)];
    let balancing = LoadBalancing::PerPacket(Order::RoundRobin);
    let transport = Tcp::new(Config { balancing, ..Config::default() });
    let packets = sent(simulation(fabric(unlimited), transport, &flows));
    for (kind, source, count) in
        [(Kind::Data, 0, 40), (Kind::Data, 143, 20), (Kind::Ack, 0, 20), (Kind::Ack, 143, 40)]
    {
        let paths = paths_of(&packets, kind, source);
        assert_eq!(paths.len(), count);
        assert!(paths.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 4), "{kind:?} {paths:?}");
    }
}

#[test]
fn flows_and_copies_stay_on_their_paths() {
    let flows = [(0, 143, 20 * 1_460)];
    let transport = Tcp::new(Config { copies: 4, ..Config::default() });
    let packets = sent(simulation(fabric(unlimited), transport, &flows));
    for kind in [Kind::Data, Kind::Ack] {
        let mut paths: Vec<_> = packets.iter().filter(|p| p.kind == kind).collect();
        paths.sort_by_key(|packet| (packet.remaining >> 24, packet.path));
        paths.dedup_by_key(|packet| (packet.remaining >> 24, packet.path));
        let mut paths: Vec<_> = paths.iter().map(|packet| packet.path).collect();
        paths.sort_unstable();
        assert_eq!(paths, [0, 1, 2, 3]);
    }
}

#[test]
fn an_order_for_another_number_of_paths_is_round_robin() {
    let link = Link { rate: 10 * GBPS, delay: US };
    let order: Order = "drb:fat-tree:4".parse().unwrap();
    let config = Config { balancing: LoadBalancing::PerPacket(order), ..Config::default() };
    // To the last pod, the same pod and the same leaf.
    for (destination, expected) in [(15, vec![0, 2, 1, 3]), (2, vec![0, 1]), (1, vec![0])] {
        let clos = Clos::new(Shape::fat_tree(4, 1), link, link, unlimited, unlimited).unwrap();
        let flows = [(0, destination, 20 * 1_460)];
        let packets = sent(simulation(clos, Tcp::new(config.clone()), &flows));
        let paths = paths_of(&packets, Kind::Data, 0);
        let place = expected.iter().position(|&path| path == paths[0]).unwrap();
        let expected = expected.iter().cycle().skip(place).take(20);
        assert!(paths.iter().eq(expected), "{destination}: {paths:?}");
    }
}

#[test]
fn pias_demotes_packets_by_the_bytes_before_them() {
    let flows = [(0, 143, 30 * 1_460)];
    let transport = Tcp::new(Config::pias(vec![5 * 1_460, 20_000]));
    let packets = sent(simulation(fabric(unlimited), transport, &flows));
    for packet in packets {
        let expected = match (packet.kind, packet.sequence) {
            (Kind::Ack, _) | (_, 0..5) => 0,
            // 14 * 1,460 are 20,440 bytes.
            (_, 5..14) => 1,
            _ => 2,
        };
        assert_eq!(packet.class, expected, "{packet:?}");
    }
}
