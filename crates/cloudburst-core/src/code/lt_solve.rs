//! Solving an LT block of full rank: peel; where that stalls, set indices aside; eliminate on
//! what was set aside.
//!
//! Peeling finds a set with one unknown index, which then is known, and so on (Figure 5). Where
//! every set has two or more, all but one of a set are *set aside*: treated as known, to be filled
//! in later. When all indices are known or set aside, the sets not used for peeling involve only
//! what was set aside, and as many of them are left as that: a small dense system. (The same idea
//! as inactivation decoding in RFC 6330, 5.4.2.)
//!
//! Here are only index sets: the outcome is a list of additions of payloads, in which no addition
//! is made that the result does not need.

use super::block::MAX_SOURCE_SYMBOLS;
use super::index_set::IndexSet;
use super::slab::Addition;

/// How payloads become source symbols, in place.
pub(super) struct Solution {
    /// The additions to make, in this order.
    pub(super) additions: Vec<Addition>,
    /// The index of the source symbol that each slot holds in the end.
    pub(super) owner: Vec<u8>,
}

/// Solves a block: the payload in slot i is the XOR of the source symbols in `sets[i]`, and the
/// sets, as many as there are source symbols, are linearly independent.
pub(super) fn solve(sets: &[IndexSet]) -> Solution {
    let plan = Plan::new(sets);
    let mut solver = Solver::new(plan.aside);
    for &(slot, index) in &plan.peeled {
        solver.lacks[index] = solver.substitute(slot, sets[slot]);
        solver.slot_of[index] = slot;
        solver.known.insert(index);
    }
    let dense = plan.left.iter().map(|&slot| (slot, solver.substitute(slot, sets[slot]))).collect();
    solver.eliminate(dense);
    for &(slot, index) in &plan.peeled {
        for aside in solver.lacks[index].iter() {
            solver.add(solver.slot_of[aside], slot);
        }
    }
    let mut owner = vec![0; sets.len()];
    for (&slot, index) in solver.slot_of[..sets.len()].iter().zip(0..) {
        owner[slot] = index;
    }
    Solution { additions: solver.additions, owner }
}

/// In which order indices become known.
struct Plan {
    /// (slot, index): the set of this slot yields this index, given those before it.
    peeled: Vec<(usize, usize)>,
    /// The indices set aside.
    aside: IndexSet,
    /// The slots that peel nothing: as many as there are indices set aside.
    left: Vec<usize>,
}

impl Plan {
    fn new(sets: &[IndexSet]) -> Self {
        let mut unknown = IndexSet::all(sets.len());
        let mut aside = IndexSet::EMPTY;
        let mut peeled = Vec::with_capacity(sets.len());
        let mut left: Vec<usize> = (0..sets.len()).collect();
        while !unknown.is_empty() {
            let before = left.len();
            left.retain(|&slot| match (sets[slot] & unknown).only() {
                Some(index) => {
                    unknown.remove(index);
                    peeled.push((slot, index));
                    false
                }
                None => true,
            });
            if left.len() == before {
                let chosen = choose(sets, &left, unknown);
                unknown ^= chosen;
                aside ^= chosen;
            }
        }
        Self { peeled, aside, left }
    }
}

/// What to set aside so that peeling goes on: all unknown indices but one of the smallest set. Of
/// two, the one that fewer sets hold is kept.
fn choose(sets: &[IndexSet], left: &[usize], unknown: IndexSet) -> IndexSet {
    let smallest = left
        .iter()
        .map(|&slot| sets[slot] & unknown)
        .filter(|set| !set.is_empty())
        .min_by_key(|set| set.len())
        .expect("independent sets, as many as indices, leave no index out");
    let holders = |index: &usize| left.iter().filter(|&&slot| sets[slot].contains(*index)).count();
    let kept = match smallest.len() {
        2 => smallest.iter().min_by_key(holders),
        _ => smallest.first(),
    };
    smallest ^ kept.map_or(IndexSet::EMPTY, IndexSet::single)
}

struct Solver {
    additions: Vec<Addition>,
    /// The indices set aside.
    aside: IndexSet,
    /// The indices peeled so far.
    known: IndexSet,
    /// The slot whose payload is (or will become) the source symbol of this index.
    slot_of: [usize; MAX_SOURCE_SYMBOLS],
    /// What still has to be added to the payload of a peeled index: a set of those set aside.
    lacks: [IndexSet; MAX_SOURCE_SYMBOLS],
}

impl Solver {
    fn new(aside: IndexSet) -> Self {
        Self {
            additions: Vec::new(),
            aside,
            known: IndexSet::EMPTY,
            slot_of: [0; MAX_SOURCE_SYMBOLS],
            lacks: [IndexSet::EMPTY; MAX_SOURCE_SYMBOLS],
        }
    }

    fn add(&mut self, from: usize, to: usize) {
        self.additions.push(Addition { from: from as u8, to: to as u8 });
    }

    /// Adds what is known of `set` to the payload; the indices set aside that it then lacks.
    fn substitute(&mut self, slot: usize, set: IndexSet) -> IndexSet {
        let mut lacks = set & self.aside;
        for index in (set & self.known).iter() {
            self.add(self.slot_of[index], slot);
            lacks ^= self.lacks[index];
        }
        lacks
    }

    /// Gauss-Jordan elimination: the rows (slot, set) become the indices set aside.
    fn eliminate(&mut self, mut rows: Vec<(usize, IndexSet)>) {
        for (done, index) in self.aside.iter().enumerate() {
            let pivot = (done..rows.len())
                .find(|&row| rows[row].1.contains(index))
                .expect("independent sets leave a row for every index set aside");
            rows.swap(done, pivot);
            let (from, set) = rows[done];
            for (to, other) in &mut rows {
                if *to != from && other.contains(index) {
                    *other ^= set;
                    self.add(from, *to);
                }
            }
            self.slot_of[index] = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(lists: &[&[usize]]) -> Vec<IndexSet> {
        let set =
            |list: &&[usize]| list.iter().fold(IndexSet::EMPTY, |s, &i| s ^ IndexSet::single(i));
        lists.iter().map(set).collect()
    }

    /// What each slot holds after the additions, as a set of source symbols.
    fn outcome(sets: &[IndexSet], solution: &Solution) -> Vec<IndexSet> {
        let mut slots = sets.to_vec();
        for addition in &solution.additions {
            let from = slots[usize::from(addition.from)];
            slots[usize::from(addition.to)] ^= from;
        }
        slots
    }

    fn check(lists: &[&[usize]], additions: usize) {
        let sets = sets(lists);
        let solution = solve(&sets);
        for (slot, set) in outcome(&sets, &solution).into_iter().enumerate() {
            assert_eq!(set, IndexSet::single(solution.owner[slot].into()), "slot {slot}");
        }
        assert_eq!(solution.additions.len(), additions);
    }

    #[test]
    fn source_symbols_need_no_addition() {
        check(&[&[2], &[0], &[1]], 0);
    }

    #[test]
    fn peeling_costs_what_the_degrees_say() {
        // Figure 5: x1 is known, so x2 is, so x3 is.
        check(&[&[0, 1, 2], &[0, 1], &[0]], 3);
    }

    #[test]
    fn one_index_set_aside_breaks_a_cycle() {
        check(&[&[0, 1], &[1, 2], &[0, 1, 2]], 4);
    }

    #[test]
    fn every_block_of_four_that_can_be_solved_is() {
        for code in 0_u32..1 << 16 {
            let rows: Vec<_> = (0..4)
                .map(|row| u64::from(code >> (4 * row) & 15) << 60)
                .map(|bits| IndexSet::from_words(bits, 0))
                .collect();
            if rank(&rows) == 4 {
                let solution = solve(&rows);
                for (slot, set) in outcome(&rows, &solution).into_iter().enumerate() {
                    assert_eq!(set.only(), Some(solution.owner[slot].into()));
                }
            }
        }
    }

    /// The rank, by counting the sums of all subsets that are not zero.
    fn rank(rows: &[IndexSet]) -> usize {
        let sum = |subset: usize| {
            let chosen = (0..rows.len()).filter(|row| subset >> row & 1 == 1);
            chosen.fold(IndexSet::EMPTY, |sum, row| sum ^ rows[row])
        };
        let zeros = (0..1 << rows.len()).filter(|&subset| sum(subset).is_empty()).count();
        rows.len() - zeros.ilog2() as usize
    }
}
