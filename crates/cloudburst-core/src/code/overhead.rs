//! The symbols beyond n that the LT distributions need, as measured.

use super::degree::Degree;

/// Tenths of a symbol beyond n, for n = 1, 2, 4, 8, 16, 32, 64 and 128: the mean of 20,000 blocks,
/// not systematic, without loss.
type Row = [u32; 8];

/// By mean degree (in halves), ascending. Between two of them, the one with more overhead applies.
const BY_MEAN_DEGREE: [(u32, Row); 8] = [
    (2, [0, 10, 43, 137, 380, 976, 2393, 5660]),
    (3, [0, 7, 19, 67, 202, 548, 1385, 3354]),
    (5, [0, 5, 19, 24, 66, 205, 580, 1505]),
    (6, [0, 5, 12, 21, 40, 121, 376, 1044]),
    (9, [0, 5, 12, 18, 19, 31, 88, 298]),
    (10, [0, 7, 17, 24, 19, 27, 59, 182]),
    (14, [0, 5, 12, 16, 17, 17, 19, 33]),
    (18, [0, 5, 12, 16, 17, 17, 17, 18]),
];
const IDEAL: Row = [0, 7, 13, 22, 36, 61, 104, 180];
const ROBUST: Row = [0, 6, 13, 22, 30, 40, 47, 52];
const DENSE: Row = [0, 5, 12, 16, 17, 17, 17, 17];

/// Returns the symbols needed on average for n source symbols, rounded up.
pub(super) fn expected_symbols(degree: Degree, source_symbols: usize) -> usize {
    let row = match degree {
        Degree::Fixed(d) if 2 * usize::from(d) > source_symbols => &DENSE,
        Degree::Fixed(d) if d % 2 == 0 => by_mean_degree(2 * u32::from(d.max(1)) + 1),
        Degree::Fixed(d) => by_mean_degree(2 * u32::from(d)),
        Degree::Uniform(d) => by_mean_degree(u32::from(d.max(1)) + 1),
        Degree::IdealSoliton => &IDEAL,
        Degree::RobustSoliton => &ROBUST,
        Degree::Dense => &DENSE,
    };
    source_symbols + interpolate(row, source_symbols as u32).div_ceil(10) as usize
}

fn by_mean_degree(halves: u32) -> &'static Row {
    let next = BY_MEAN_DEGREE.partition_point(|&(mean, _)| mean <= halves);
    &BY_MEAN_DEGREE[next.max(1) - 1].1
}

/// Returns the value of the row at n, by linear interpolation.
fn interpolate(row: &Row, n: u32) -> u32 {
    let below = n.ilog2() as usize;
    let Some(&above) = row.get(below + 1) else { return row[row.len() - 1] };
    let rise = above.saturating_sub(row[below]);
    row[below] + (rise * (n - (1 << below))).div_ceil(1 << below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_code_needs_six_more_than_sixty_four() {
        assert_eq!(expected_symbols(Degree::Fixed(5), 64), 70);
        assert_eq!(expected_symbols(Degree::Fixed(5), 4), 6);
        assert_eq!(expected_symbols(Degree::Fixed(5), 1), 1);
    }

    #[test]
    fn every_degree_and_every_n_has_a_figure() {
        for n in 1..=128 {
            for d in 0..=255 {
                for degree in [Degree::Fixed(d), Degree::Uniform(d)] {
                    let expected = expected_symbols(degree, n);
                    assert!((n..6 * n).contains(&expected), "{degree:?}, {n}: {expected}");
                }
            }
        }
    }
}
