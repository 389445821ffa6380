//! The sums over the trials of one point.

/// Whole numbers only, so that the result does not depend on the order of the trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entry i is the number of trials that needed n + i symbols.
    extra: Vec<u64>,
    decode_xors: u64,
    encode_xors: u64,
}

impl Totals {
    /// Adds a trial: the symbols beyond n, and the XORs of payloads at either end.
    pub(crate) fn add(&mut self, extra: usize, decode_xors: u64, encode_xors: u64) {
        if self.extra.len() <= extra {
            self.extra.resize(extra + 1, 0);
        }
        self.extra[extra] += 1;
        self.decode_xors += decode_xors;
        self.encode_xors += encode_xors;
    }

    pub(crate) fn trials(&self) -> u64 {
        self.extra.iter().sum()
    }

    /// Returns the mean of the symbols beyond n.
    pub(crate) fn mean(&self) -> f64 {
        self.per_trial(self.extra.iter().zip(0..).map(|(&trials, extra)| trials * extra).sum())
    }

    /// Returns the minimum number of symbols beyond n that suffices in at least `part` of `whole`
    /// trials.
    pub(crate) fn percentile(&self, part: u64, whole: u64) -> usize {
        let enough = (self.trials() * part).div_ceil(whole);
        let mut trials = 0;
        self.extra
            .iter()
            .position(|&more| {
                trials += more;
                trials >= enough
            })
            .unwrap_or_default()
    }

    /// Returns the maximum number of symbols beyond n that a trial needed.
    pub(crate) fn max(&self) -> usize {
        self.extra.len().saturating_sub(1)
    }

    pub(crate) fn mean_decode_xors(&self) -> f64 {
        self.per_trial(self.decode_xors)
    }

    /// Returns the mean XORs to make the symbols that were needed.
    pub(crate) fn mean_encode_xors(&self) -> f64 {
        self.per_trial(self.encode_xors)
    }

    fn per_trial(&self, sum: u64) -> f64 {
        sum as f64 / self.trials() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(extras: impl IntoIterator<Item = usize>) -> Totals {
        let mut totals = Totals::default();
        extras.into_iter().for_each(|extra| totals.add(extra, 3, 5));
        totals
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let hundred = totals((1..=100).rev());
        assert_eq!(hundred.percentile(99, 100), 99);
        assert_eq!(hundred.percentile(999, 1000), 100);
        assert_eq!(hundred.percentile(1, 2), 50);
        assert_eq!(hundred.max(), 100);
        let ten = totals([0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
        assert_eq!((ten.percentile(9, 10), ten.percentile(99, 100)), (0, 4));
        assert_eq!(totals([6]).percentile(1, 100), 6);
    }

    #[test]
    fn means_are_over_all_trials() {
        let totals = totals([0, 1, 1, 4]);
        assert_eq!((totals.trials(), totals.mean()), (4, 1.5));
        assert_eq!((totals.mean_decode_xors(), totals.mean_encode_xors()), (3.0, 5.0));
    }

    #[test]
    fn the_result_does_not_depend_on_the_order_of_trials() {
        assert_eq!(totals([0, 3, 1, 0]), totals([3, 0, 0, 1]));
    }
}
