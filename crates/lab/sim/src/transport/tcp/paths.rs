//! The paths of packets.

use super::config::LoadBalancing;
use crate::network::Network;
use cloudburst_core::path::{Order, Sequence};
use std::collections::BTreeMap;

/// The paths of a subflow's packets in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// All packets take this path.
    Fixed(u16),
    /// Each packet takes the next path of this selector.
    Selector(u32),
}

/// The selectors of all pairs of hosts: one for data packets, followed by one for ACKs.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    all: Vec<Sequence>,
    of_pair: BTreeMap<(u16, u16), u32>,
}

impl Selectors {
    /// The routes of data packets and ACKs of `count` subflows from `source` to `destination`.
    pub(super) fn routes(
        &mut self,
        network: &mut Network,
        balancing: LoadBalancing,
        source: u16,
        destination: u16,
        count: u8,
    ) -> Vec<(Route, Route)> {
        match balancing {
            LoadBalancing::Fixed(path) => {
                let path = path % network.fabric().paths(source, destination);
                vec![(Route::Fixed(path), Route::Fixed(path)); count.into()]
            }
            LoadBalancing::PerPacket(order) => {
                let data = self.of_pair(network, order, (source, destination));
                let acks = self.of_pair(network, order, (destination, source)) + 1;
                vec![(Route::Selector(data), Route::Selector(acks)); count.into()]
            }
            LoadBalancing::PerFlow => {
                let data = draw_distinct(network, source, destination, count);
                let acks = draw_distinct(network, destination, source, count);
                let routes = data.into_iter().zip(acks);
                routes.map(|(data, ack)| (Route::Fixed(data), Route::Fixed(ack))).collect()
            }
        }
    }

    /// The number of a pair's selector for data packets.
    fn of_pair(&mut self, network: &mut Network, order: Order, pair: (u16, u16)) -> u32 {
        if let Some(&number) = self.of_pair.get(&pair) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.extend([0; 2].map(|_| network.draw_sequence(order, pair.0, pair.1)));
        self.of_pair.insert(pair, number);
        number
    }

    /// The path of the next packet.
    pub(super) fn next(&mut self, route: Route) -> u16 {
        match route {
            Route::Fixed(path) => path,
            Route::Selector(number) => self.all[number as usize].next_path() as u16,
        }
    }
}

/// `count` paths drawn uniformly, such that none is repeated before all have been drawn.
fn draw_distinct(network: &mut Network, source: u16, destination: u16, count: u8) -> Vec<u16> {
    if count == 1 {
        return vec![network.draw_path(source, destination)];
    }
    let paths = network.fabric().hashed(source, destination);
    let mut drawn = Vec::with_capacity(count.into());
    let mut left: Vec<u16> = Vec::new();
    for _ in 0..count {
        if left.is_empty() {
            left.extend_from_slice(&paths);
        }
        let place = network.rng().below(left.len() as u64) as usize;
        drawn.push(left.swap_remove(place));
    }
    drawn
}
