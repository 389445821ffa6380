//! Fair shares of what is limited.

/// One part in this many of what the others leave stays free.
const RESERVE: usize = 8;

/// What one holder may take of `limit` while all the others together hold `others`: seven eighths of the
/// rest (a dynamic threshold, Choudhury and Hahne 1998). One alone thus has nearly all, and whoever
/// comes later finds some, without waiting for anything to be given back; then the share of the first
/// shrinks, and it begins nothing until it is below.
// To take away what has begun would throw away work, and let newcomers do so to everybody. Fixed shares
// would leave most of the memory unused.
pub(super) const fn share(limit: usize, others: usize) -> usize {
    let rest = limit.saturating_sub(others);
    rest - rest / RESERVE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_finds_an_eighth_of_what_the_one_before_found() {
        let mut held = 0;
        for left in [125_000, 15_625, 1_953] {
            held += share(1_000_000, held);
            assert_eq!(1_000_000 - held, left);
        }
        assert_eq!([1, 2, 7, 8].map(|limit| share(limit, 0)), [1, 2, 7, 7], "few are not divided");
        assert_eq!(share(10, 20), 0);
    }
}
