//! Encoding and decoding times, to be added to flow completion times as in the paper (V-D).

use crate::engine::{NS, Time};
use cloudburst_core::code::{Code, Degree};

/// The measured block sizes, in source symbols.
const SYMBOLS: [u64; 3] = [4, 14, 64];

/// The time to encode the first repair symbol of a block of `symbols` source symbols plus the time to decode the
/// block. Coding adds this to the completion time of a one-block message. `None` if the code was not measured.
///
/// The figures are the medians in `crates/lab/docs/codes.md`, "Speed", for symbols of 1,408 bytes, where blocks of systematic
/// codes lost 20 % of their source symbols. Times are interpolated linearly, and extrapolated beyond 64 symbols.
pub fn codec_time(code: Code, symbols: usize) -> Option<Time> {
    let nanoseconds = match code {
        Code::Rlf256 => [170 + 360, 280 + 1_500, 1_300 + 15_000],
        Code::Lt(Degree::Fixed(5)) => [230 + 900, 280 + 4_100, 310 + 22_000],
        Code::Lt(Degree::RobustSoliton) => [230 + 960, 260 + 4_200, 270 + 20_000],
        Code::LtSystematic(Degree::Dense) => [230 + 740, 280 + 2_300, 810 + 14_000],
        _ => return None,
    };
    let symbols = symbols as u64;
    let mut from = 0;
    let mut before = 0;
    for (upto, time) in SYMBOLS.into_iter().zip(nanoseconds.map(|time| time * NS)) {
        if symbols <= upto || upto == SYMBOLS[2] {
            return Some(before + (time - before) * (symbols - from) / (upto - from));
        }
        from = upto;
        before = time;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_times_are_measured_and_interpolated_linearly() {
        let time = |symbols| codec_time(Code::Rlf256, symbols);
        assert_eq!(time(2), Some(265 * NS));
        assert_eq!(time(4), Some(530 * NS));
        assert_eq!(time(9), Some((530 + 1_780) / 2 * NS));
        assert_eq!(time(64), Some(16_300 * NS));
        assert_eq!(time(128), Some((1_780 + (16_300 - 1_780) * 114 / 50) * NS + 600));
        assert_eq!(codec_time(Code::Lt(Degree::Fixed(9)), 64), None);
    }
}
