//! The degree of LT symbols, and their index sets.

use super::index_set::IndexSet;
use super::soliton;
use crate::rng::SplitMix64;

/// The distribution of the degree: the number of source symbols that a coded symbol combines (III-A).
///
/// Every distribution reaches full rank for every number n of source symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Degree {
    /// Always the degree d, if d is odd and 2 d <= n.
    ///
    /// Symbols of one even degree never reach full rank, so an even d stands for d or d + 1, with
    /// probability 1/2 each. Symbols of degree n or more are all equal, and above n / 2 a fixed
    /// degree needs more and more symbols, so there it stands for [`Dense`](Self::Dense). 0 stands
    /// for 1.
    Fixed(u8),
    /// Each degree from 1 to d (to n, if n is less) equally likely. 0 stands for 1.
    Uniform(u8),
    /// 1/n for degree 1, 1/(k (k - 1)) for degree k (Luby, FOCS 2002, definition 9).
    IdealSoliton,
    /// The ideal soliton and a second term that keeps peeling alive (Luby, definition 11), with
    /// c = 0.1 and delta = 0.5.
    RobustSoliton,
    /// Each source symbol with probability 1/2, but never none: about 1.6 symbols more than n are
    /// needed for every n, also after systematic symbols.
    Dense,
}

impl Degree {
    /// Draws an index set of a block of n source symbols; never empty.
    pub(super) fn draw(self, n: usize, rng: &mut SplitMix64) -> IndexSet {
        let degree = match self {
            Self::Fixed(d) => match usize::from(d.max(1)) {
                d if 2 * d > n => return draw_dense(n, rng),
                d if d % 2 == 0 => d + rng.below(2) as usize,
                d => d,
            },
            Self::Uniform(d) => 1 + rng.below(usize::from(d.max(1)).min(n) as u64) as usize,
            Self::IdealSoliton => draw_weighted(soliton::ideal(n), rng),
            Self::RobustSoliton => draw_weighted(soliton::robust(n), rng),
            Self::Dense => return draw_dense(n, rng),
        };
        draw_subset(n, degree, rng)
    }
}

/// Draws a degree. Entry k - 1 of `cumulative` is the weight of all degrees up to k.
// Integer weights and a binary search: floating point could draw other degrees on other machines,
// and the draw is part of the wire contract.
fn draw_weighted(cumulative: &[u64], rng: &mut SplitMix64) -> usize {
    let drawn = rng.below(cumulative[cumulative.len() - 1]);
    1 + cumulative.partition_point(|&weight| weight <= drawn)
}

/// Draws each index with probability 1/2; again if none was drawn.
fn draw_dense(n: usize, rng: &mut SplitMix64) -> IndexSet {
    loop {
        let high = rng.next_u64();
        let low = rng.next_u64();
        let set = IndexSet::from_words(high, low) & IndexSet::all(n);
        if !set.is_empty() {
            return set;
        }
    }
}

/// Draws a uniformly random set of `size` of the indices below n, by Floyd's method
/// (Bentley and Floyd, CACM 30(9), 1987): `size` draws, no rejection.
fn draw_subset(n: usize, size: usize, rng: &mut SplitMix64) -> IndexSet {
    let mut set = IndexSet::EMPTY;
    for last in n - size..n {
        let index = rng.below(last as u64 + 1) as usize;
        set.insert(if set.contains(index) { last } else { index });
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(degree: Degree, n: usize) -> Vec<usize> {
        let mut rng = SplitMix64::new(3);
        (0..2000).map(|_| degree.draw(n, &mut rng).len()).collect()
    }

    #[test]
    fn the_degree_of_the_paper_is_exact() {
        assert!(degrees(Degree::Fixed(5), 64).iter().all(|&d| d == 5));
        assert!(degrees(Degree::Fixed(5), 10).iter().all(|&d| d == 5));
    }

    #[test]
    fn an_even_degree_is_mixed_with_the_odd_one_above() {
        let drawn = degrees(Degree::Fixed(4), 64);
        assert!(drawn.iter().all(|&d| d == 4 || d == 5));
        assert!(drawn.iter().filter(|&&d| d == 5).count().abs_diff(1000) < 100);
    }

    #[test]
    fn uniform_degrees_reach_from_one_to_the_bound() {
        let drawn = degrees(Degree::Uniform(9), 7);
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&1), Some(&7)));
    }

    #[test]
    fn sets_are_never_empty_and_never_reach_beyond_n() {
        let all = [
            Degree::Fixed(0),
            Degree::Fixed(5),
            Degree::Fixed(255),
            Degree::Uniform(0),
            Degree::Uniform(255),
            Degree::IdealSoliton,
            Degree::RobustSoliton,
            Degree::Dense,
        ];
        for degree in all {
            for n in 1..=128 {
                let mut rng = SplitMix64::new(n as u64);
                for _ in 0..50 {
                    let set = degree.draw(n, &mut rng);
                    assert!(!set.is_empty());
                    assert_eq!(set & IndexSet::all(n), set);
                }
            }
        }
    }

    #[test]
    fn every_subset_is_equally_likely() {
        let mut rng = SplitMix64::new(11);
        let mut hits = [0_u32; 5];
        for _ in 0..5000 {
            draw_subset(5, 2, &mut rng).iter().for_each(|i| hits[i] += 1);
        }
        assert!(hits.iter().all(|&h| h.abs_diff(2000) < 150), "{hits:?}");
    }
}
