//! Orders of paths: the visits of a round, and the theorems of the DRB paper.

use crate::fabric::{Fabric, Link};
use cloudburst_core::path::{Order, OrderError, Sequence, Shape};
use cloudburst_core::rng::SplitMix64;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// d0, d1 and d2 of some VL2s: those of Figure 1(b) and of section 5, and others.
const VL2S: [[u16; 3]; 8] =
    [[2, 4, 4], [4, 64, 24], [2, 8, 4], [2, 8, 8], [2, 24, 12], [3, 10, 9], [4, 6, 8], [5, 4, 15]];

fn fat_trees() -> impl Iterator<Item = u16> {
    (4..=24).step_by(2)
}

fn drb(shape: Shape) -> Order {
    Order::DigitReversal(shape)
}

fn sequence(order: Order, paths: usize, seed: u64) -> impl Iterator<Item = usize> {
    let mut sequence = Sequence::new(order, paths, seed).unwrap();
    core::iter::repeat_with(move || sequence.next_path())
}

/// The distances in turns from one use of a link to the next, over all links that are used.
fn distances<L: Ord>(links: impl IntoIterator<Item = L>) -> BTreeSet<usize> {
    let mut last = BTreeMap::new();
    let used = links.into_iter().enumerate();
    used.filter_map(|(turn, link)| Some(turn - last.insert(link, turn)?)).collect()
}

fn assert_rounds_are_permutations(order: Order, paths: usize) {
    for start in 0..paths as u64 {
        let visited: Vec<usize> = sequence(order, paths, start).take(3 * paths).collect();
        for round in visited.chunks(paths) {
            assert!((0..paths).eq(round.iter().copied().collect::<BTreeSet<_>>()), "{order}");
        }
        assert_eq!(visited[..paths], visited[paths..2 * paths], "{order}");
    }
}

#[test]
fn every_round_visits_every_path_once_whatever_the_start() {
    for paths in [1, 2, 7, 64] {
        assert_rounds_are_permutations(Order::RoundRobin, paths);
    }
    let fat_trees = fat_trees().map(|n| Shape::fat_tree(n).unwrap());
    let vl2s = VL2S.iter().map(|&[d0, d1, d2]| Shape::vl2(d0, d1, d2).unwrap());
    for shape in fat_trees.chain(vl2s) {
        assert_rounds_are_permutations(drb(shape), shape.paths());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Theorem 2 for any number of layers (its footnote: it "can also be easily extended"), each
    /// with its own number of ways up.
    #[test]
    fn any_shape_visits_every_path_once_a_round_and_each_link_at_equal_distances(
        fan_outs in prop::collection::vec(2_u16..6, 1..5)
    ) {
        let shape = Shape::layers(&fan_outs).unwrap();
        let paths = shape.paths();
        assert_rounds_are_permutations(drb(shape), paths);

        let visited: Vec<usize> = sequence(drb(shape), paths, 1).take(3 * paths).collect();
        let mut distance = 1;
        for ways in fan_outs {
            distance *= usize::from(ways);
            // Paths that share a link of this layer are neighbours.
            let links = visited.iter().map(|path| path / (paths / distance));
            prop_assert_eq!(distances(links), BTreeSet::from([distance]));
        }
    }
}

/// From `tor` to `other` through the core switches that `order` visits: the links up, of layers 1
/// and 2, and the links down, of the same layers.
fn links_by_layer(
    fabric: &Fabric,
    order: Order,
    start: u64,
    [tor, other]: [usize; 2],
) -> [Vec<Link>; 4] {
    let mut layers = [(); 4].map(|()| Vec::new());
    for core in sequence(order, fabric.cores, start).take(3 * fabric.cores) {
        let ways = [fabric.links(tor, core), fabric.links(other, core)].concat();
        layers.iter_mut().zip(ways).for_each(|(layer, link)| layer.push(link));
    }
    layers
}

/// "THEOREM 2. When DRB is used for Fat-tree, the distance between any two successive visits of an
/// i-th (1 <= i <= 2) layer link is \prod_{j=1}^{i} n/2."
///
/// (The scan ends in a dot and an exponent -1. That is the mark of footnote 1, which has no other
/// place in the text; and the paper's example, n = 4, visits each link of layer 1 every second
/// packet.) Distances are in packets of one pair, from one visit to the next: a distance of 1 is
/// twice in a row. Proven from every start, over the end of a round, and for the links down to the
/// receiver as well, between TORs in different pods of a Fat-tree that is wired as in Figure 1(a).
#[test]
fn theorem_2_in_fat_trees_of_4_to_24_ports() {
    for n in fat_trees() {
        let fabric = Fabric::fat_tree(n.into());
        let half = usize::from(n / 2);
        let order = drb(Shape::fat_tree(n).unwrap());
        let tors = [1, fabric.tors.len() - 1];
        for start in 0..fabric.cores as u64 {
            let layers = links_by_layer(&fabric, order, start, tors);
            let expected = [half, half * half, half, half * half];
            for (links, expected) in layers.into_iter().zip(expected) {
                // Every link is used: their number equals the distance.
                assert_eq!(links.iter().collect::<BTreeSet<_>>().len(), expected);
                assert_eq!(distances(links), BTreeSet::from([expected]), "{n} ports");
            }
        }
    }
}

/// The same in VL2s that are extended by virtual spine switches, where there are d0 uplinks at the
/// TOR and d1 / 2 above. The paper says that "DRB now can be directly applied".
#[test]
fn theorem_2_in_vl2s_with_virtual_spines() {
    for [d0, d1, d2] in VL2S {
        let fabric = Fabric::vl2(d0.into(), d1.into(), d2.into());
        let order = drb(Shape::vl2(d0, d1, d2).unwrap());
        let ways = usize::from(d0);
        let all = usize::from(d0 * d1 / 2);
        for start in 0..fabric.cores as u64 {
            let tors = [0, fabric.tors.len() - 1];
            let layers = links_by_layer(&fabric, order, start, tors);
            for (links, expected) in layers.into_iter().zip([ways, all, ways, all]) {
                assert_eq!(distances(links), BTreeSet::from([expected]), "{order}");
            }
        }
    }
}

#[test]
fn round_robin_takes_one_uplink_many_times_in_a_row() {
    // The problem that DRB solves (section 3.1.2): n / 2 packets in a row, and so distances of 1 and
    // of all but one turn of a round.
    let fabric = Fabric::fat_tree(8);
    let layers = links_by_layer(&fabric, Order::RoundRobin, 0, [0, fabric.tors.len() - 1]);
    assert_eq!(distances(layers[0].iter()), BTreeSet::from([1, 13]));
    assert_eq!(distances(layers[1].iter()), BTreeSet::from([16]));
}

/// "THEOREM 3. In an extended VL2 network, given a source server i and a destination server j,
/// which are in two different aggregation groups, and a virtual spine switch r, there is one and
/// only one shortest-path from i to j via r."
///
/// Shortest paths are counted in the graph, for all pairs of TORs. Each server has one TOR.
#[test]
fn theorem_3_in_vl2s() {
    for [d0, d1, d2] in VL2S.map(|ports| ports.map(usize::from)) {
        let fabric = Fabric::vl2(d0, d1, d2);
        let shape = Shape::vl2(d0 as u16, d1 as u16, d2 as u16).unwrap();
        assert_eq!((fabric.cores, fabric.aggregations.len()), (shape.paths(), d2));
        assert_eq!(fabric.tors.len(), d1 * d2 / (2 * d0));
        let group = |tor: usize| fabric.tors[tor][0] / d0;
        let pairs: Vec<(usize, usize)> = (0..fabric.tors.len())
            .flat_map(|i| (0..fabric.tors.len()).map(move |j| (i, j)))
            .filter(|&(i, j)| group(i) != group(j))
            .collect();
        assert!(!pairs.is_empty());
        let apart: Vec<Vec<(usize, usize)>> =
            (0..fabric.tors.len()).map(|tor| fabric.shortest_to_tor(tor)).collect();
        for spine in 0..fabric.cores {
            let found = fabric.shortest_to_core(spine);
            for &(i, j) in &pairs {
                let (up, ways_up) = found[i];
                let (down, ways_down) = found[j];
                assert_eq!(ways_up * ways_down, 1, "{i} to {j} via {spine}");
                assert_eq!(up + down, apart[i][j].0, "a detour from {i} to {j} via {spine}");
            }
        }
    }
}

#[test]
fn through_a_whole_spine_of_a_vl2_there_are_many_ways() {
    // Section 3.2: "the number of paths between two servers via a spine switch is d_0^2".
    for [d0, d1, d2] in VL2S.map(|ports| ports.map(usize::from)) {
        let fabric = Fabric::vl2(d0, d1, d2).without_virtual_spines(d1);
        assert_eq!(fabric.cores, d1 / 2);
        for spine in 0..fabric.cores {
            let found = fabric.shortest_to_core(spine);
            let (_, ways_up) = found[0];
            let (_, ways_down) = found[fabric.tors.len() - 1];
            assert_eq!(ways_up * ways_down, d0 * d0);
        }
    }
}

#[test]
fn a_path_of_a_vl2_is_the_virtual_spine_and_the_uplink_that_its_shape_says() {
    for [d0, d1, d2] in VL2S.map(|ports| ports.map(usize::from)) {
        let fabric = Fabric::vl2(d0, d1, d2);
        let half = d1 / 2;
        for path in 0..fabric.cores {
            let [(_, at_tor), (_, above)] = fabric.links(0, path);
            assert_eq!((at_tor, above), (path / half, path % half));
        }
    }
}

#[test]
fn random_paths_are_seeded_and_uniform() {
    let draws = |seed| sequence(Order::Random, 16, seed).take(16_000).collect::<Vec<_>>();
    assert_eq!(draws(5), draws(5));
    assert_ne!(draws(5), draws(6));
    for seed in 0..4 {
        let drawn = draws(seed);
        let mut pairs = [[0; 16]; 16];
        drawn.windows(2).for_each(|pair| pairs[pair[0]][pair[1]] += 1);
        for path in 0..16 {
            // Five standard deviations: 31 of 1,000, 7.9 of 62.5.
            let count = drawn.iter().filter(|&&drawn| drawn == path).count();
            assert!((850..=1150).contains(&count), "path {path}: {count}");
            assert!(pairs[path].iter().all(|count| (23..=102).contains(count)), "{pairs:?}");
        }
    }
}

#[test]
fn pairs_start_at_random_places() {
    for order in ["rrb", "drb:fat-tree:8", "rb"] {
        let order: Order = order.parse().unwrap();
        let mut rng = SplitMix64::new(1);
        let mut starts = [0; 16];
        for _ in 0..1600 {
            starts[sequence(order, 16, rng.next_u64()).next().unwrap()] += 1;
        }
        // Five standard deviations of 9.7 around 100.
        assert!(starts.iter().all(|count| (52..=148).contains(count)), "{order}: {starts:?}");
    }
}

#[test]
fn a_sequence_is_refused_for_other_paths_than_its_orders() {
    let order = drb(Shape::fat_tree(6).unwrap());
    let refused = Sequence::new(order, 8, 0).unwrap_err();
    assert_eq!(refused, OrderError::Paths { order, expected: 9, paths: 8 });
    assert_eq!(Sequence::new(Order::Random, 0, 0).unwrap_err(), OrderError::NoPaths);
}
