//! Distributions of packet delays.

use hdrhistogram::Histogram;

/// Histograms that transports record, in nanoseconds. Each is off (`None`) by default, because recording costs
/// time.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Round-trip times: from the sending of a packet to its acknowledgement.
    pub round_trips: Option<Histogram<u64>>,
    /// Delays in re-sequencing buffers.
    pub resequencing: Option<Histogram<u64>>,
    /// Queueing delays of data packets in all switches on their path.
    pub queueing: Option<Histogram<u64>>,
}

impl Measures {
    /// Records a value, if the histogram is on. A histogram of fixed range saturates.
    #[inline]
    pub fn record(histogram: &mut Option<Histogram<u64>>, nanoseconds: u64) {
        if let Some(histogram) = histogram
            && histogram.record(nanoseconds).is_err()
        {
            histogram.saturating_record(nanoseconds);
        }
    }
}
