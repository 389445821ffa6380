//! Fat-trees and VL2s as section 2.1 and Figures 1 and 5 of the DRB paper wire them.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its part of this harness"
)]

pub mod queues;

/// TORs, the aggregation switches above them, and the core switches (spines) above these.
///
/// Switches of a layer are numbered from 0, and so are the uplinks of each.
pub struct Fabric {
    /// The aggregation switch at the end of each uplink of each TOR.
    pub tors: Vec<Vec<usize>>,
    /// The core switch at the end of each uplink of each aggregation switch.
    pub aggregations: Vec<Vec<usize>>,
    pub cores: usize,
}

/// An uplink, and the switch that it belongs to.
pub type Link = (usize, usize);

impl Fabric {
    /// A Fat-tree of switches with `n` ports: n pods of n / 2 TORs and n / 2 aggregation switches.
    pub fn fat_tree(n: usize) -> Self {
        let half = n / 2;
        let tors = (0..n * half).map(|tor| (0..half).map(|up| tor / half * half + up).collect());
        let above = |switch: usize| (0..half).map(|up| switch % half * half + up).collect();
        Self {
            tors: tors.collect(),
            aggregations: (0..n * half).map(above).collect(),
            cores: half * half,
        }
    }

    /// A VL2, extended by virtual spine switches as section 3.2 says: of the d0 aggregation
    /// switches of group g, taken together, uplink p_j goes to port g of virtual spine j.
    pub fn vl2(d0: usize, d1: usize, d2: usize) -> Self {
        let half = d1 / 2;
        let tors = (0..d2 / d0 * half).map(|tor| (0..d0).map(|up| tor / half * d0 + up).collect());
        let above = |switch: usize| (0..half).map(|up| switch % d0 * half + up).collect();
        Self { tors: tors.collect(), aggregations: (0..d2).map(above).collect(), cores: d0 * half }
    }

    /// The VL2 as it is built: virtual spines `i`, `i + d1 / 2`, ... are spine `i`.
    pub fn without_virtual_spines(mut self, d1: usize) -> Self {
        for core in self.aggregations.iter_mut().flatten() {
            *core %= d1 / 2;
        }
        self.cores = d1 / 2;
        self
    }

    /// From every TOR to the switch `from`, by its index among all switches: the distance in links,
    /// and the number of shortest paths.
    fn shortest(&self, from: usize) -> Vec<(usize, usize)> {
        let tors = self.tors.len();
        let aggregations = self.aggregations.len();
        let mut neighbours = vec![Vec::new(); tors + aggregations + self.cores];
        let tor_links = self.tors.iter().enumerate().map(|(tor, up)| (tor, up, tors));
        let core_links = self.aggregations.iter().enumerate();
        let core_links = core_links.map(|(i, up)| (tors + i, up, tors + aggregations));
        for (lower, uplinks, offset) in tor_links.chain(core_links) {
            for upper in uplinks.iter().map(|upper| upper + offset) {
                neighbours[lower].push(upper);
                neighbours[upper].push(lower);
            }
        }
        let mut found = vec![(usize::MAX, 0); neighbours.len()];
        found[from] = (0, 1);
        let mut border = vec![from];
        let mut distance = 0;
        while !border.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for switch in border {
                for &neighbour in &neighbours[switch] {
                    if found[neighbour].0 == usize::MAX {
                        found[neighbour].0 = distance;
                        next.push(neighbour);
                    }
                    if found[neighbour].0 == distance {
                        found[neighbour].1 += found[switch].1;
                    }
                }
            }
            border = next;
        }
        found.truncate(tors);
        found
    }

    /// The same to core switch `core`.
    pub fn shortest_to_core(&self, core: usize) -> Vec<(usize, usize)> {
        self.shortest(self.tors.len() + self.aggregations.len() + core)
    }

    /// The same to another TOR.
    pub fn shortest_to_tor(&self, tor: usize) -> Vec<(usize, usize)> {
        self.shortest(tor)
    }

    /// The links of the first and of the second layer that lead from `tor` to `core`.
    ///
    /// The way down to a TOR is the way up from it, the other way round.
    pub fn links(&self, tor: usize, core: usize) -> [Link; 2] {
        let mut ways = self.tors[tor].iter().enumerate().flat_map(|(up, &switch)| {
            let uplinks = self.aggregations[switch].iter().enumerate();
            uplinks
                .filter(|&(_, &above)| above == core)
                .map(move |(next, _)| [(tor, up), (switch, next)])
        });
        let way = ways.next().unwrap();
        assert!(ways.next().is_none(), "more than one way from TOR {tor} to core {core}");
        way
    }
}
