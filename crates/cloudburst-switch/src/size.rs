//! The limit of the tiny queue: as requested, and as the switch can set it.

use super::error::Refusal;
use super::platform::{Platform, Step};
use cloudburst_program::Bytes;
use core::fmt;
use core::str::FromStr;
use serde::Serialize;

/// A limit as users write it: "8 packets", "10192 bytes", "1 %" of the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RequestedLimit {
    Packets(u64),
    Bytes(u64),
    Percent(f64),
}

/// A limit as the switch has it: rounded down, and so never more than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Limit {
    /// Packets of the MTU that the queue holds.
    pub(crate) packets: u64,
    /// Bytes, in whole cells.
    pub(crate) bytes: u64,
    pub(crate) cells: u64,
    pub(crate) kilobytes: u64,
    /// Thousandths of one MMU's buffer, if its size is known.
    pub(crate) permille: u64,
    /// Whether the configuration counts packets instead of bytes.
    pub(crate) in_packets: bool,
}

/// The sizes of packets and of the buffer in which they wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) mtu: u64,
    pub(crate) cell: u64,
    /// Bytes of all MMUs together.
    pub(crate) total: Option<u64>,
    /// The number of memory management units, which do not share memory.
    pub(crate) mmus: u64,
}

/// Bytes of the Ethernet header, which counts in queues.
const ETHERNET: u64 = 14;

/// The largest limit, in bytes: the paper's whole buffer. Every platform's range for a queue's limit is larger.
const MAX_LIMIT: u64 = 4_000_000;

impl Buffer {
    /// Returns the bytes of the largest frame.
    pub(crate) const fn frame(self) -> u64 {
        self.mtu + ETHERNET
    }

    /// Returns the bytes of one MMU, of which a queue can have a share, if the size is known.
    // Packets of a queue are in one MMU: 1 % of a Tomahawk's 16 MB is 39,936 bytes and not 159,952.
    pub(crate) fn memory(self) -> Option<u64> {
        self.total.map(|total| total / self.mmus)
    }

    /// Returns the bytes that the largest frame takes in the buffer.
    pub(crate) const fn frame_in_cells(self) -> u64 {
        self.frame().div_ceil(self.cell) * self.cell
    }
}

impl FromStr for RequestedLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "\"8 packets\", \"10192 bytes\" or \"1 %\" of the buffer".to_owned();
        let split = text.find(['%', ' ']).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        match unit.trim() {
            "packets" | "packet" => number.parse().map(Self::Packets).map_err(|_| expected()),
            "bytes" | "B" => {
                number.parse::<Bytes>().map(|n| Self::Bytes(n.0)).map_err(|_| expected())
            }
            "%" | "percent" => {
                let percent = number.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
                percent.map(Self::Percent).ok_or_else(expected)
            }
            _ => Err(expected()),
        }
    }
}

impl fmt::Display for RequestedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => write!(f, "{n} bytes"),
            Self::Percent(n) => write!(f, "{n} %"),
        }
    }
}

impl Limit {
    /// Rounds the limit `requested` down to one that the platform can set.
    ///
    /// # Errors
    ///
    /// If no packet would fit, if the buffer is smaller, or if its size must be known and is not.
    pub(crate) fn new(
        requested: RequestedLimit,
        platform: Platform,
        buffer: Buffer,
    ) -> Result<Self, Refusal> {
        let text = || requested.to_string();
        let least = match platform {
            // OS10's queue-len is one kilobyte less than the limit, and must not be 0.
            Platform::Os10 => buffer.frame_in_cells().max(2048),
            _ => buffer.frame_in_cells(),
        };
        let in_packets =
            platform.counts_packets() && matches!(requested, RequestedLimit::Packets(_));
        let bytes = match requested {
            RequestedLimit::Packets(n) => n.saturating_mul(buffer.frame_in_cells()),
            RequestedLimit::Bytes(n) => n,
            RequestedLimit::Percent(percent) => {
                let total = buffer.memory().ok_or_else(|| Refusal::NoBuffer(text()))?;
                (total as f64 * percent / 100.0) as u64
            }
        };
        if bytes == 0 && platform == Platform::Sonic {
            return Err(Refusal::SonicZero { requested: text() });
        }
        // Always down: a queue that is smaller than requested costs redundancy, a larger one costs
        // all other traffic.
        let bytes = bytes - bytes % buffer.cell;
        let (bytes, unit) = match platform.step() {
            Step::Bytes(1) => (bytes, format!("cells of {} bytes", buffer.cell)),
            Step::Bytes(step) => (bytes - bytes % step, format!("units of {step} bytes")),
            Step::Permille => {
                let total = buffer.memory().ok_or(Refusal::BufferOfCumulus4)?;
                let permille = (total / 1000).max(1);
                (bytes - bytes % permille, "tenths of a percent of the buffer".into())
            }
        };
        if bytes < least {
            let requested = text();
            let mtu = buffer.mtu;
            return Err(Refusal::BelowMtu { requested, bytes, unit, mtu, least });
        }
        if let Some(total) = buffer.memory().filter(|&total| bytes > total) {
            return Err(Refusal::AboveBuffer { requested: text(), bytes, buffer: total });
        }
        if bytes > MAX_LIMIT {
            return Err(Refusal::NotTiny { requested: text(), bytes, most: MAX_LIMIT });
        }
        let permille = buffer.memory().map_or(0, |total| bytes / (total / 1000).max(1));
        Ok(Self {
            packets: bytes / buffer.frame_in_cells(),
            bytes,
            cells: bytes / buffer.cell,
            kilobytes: bytes / 1024,
            permille,
            in_packets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIDENT: Buffer = Buffer { mtu: 1500, cell: 208, total: Some(4_000_000), mmus: 1 };

    fn limit(requested: &str, platform: Platform) -> Result<Limit, Refusal> {
        Limit::new(requested.parse().unwrap(), platform, TRIDENT)
    }

    #[test]
    fn limits_are_rounded_down_to_whole_cells() {
        for (requested, bytes, cells, packets) in [
            ("8 packets", 13_312, 64, 8),
            ("10200 bytes", 10_192, 49, 6),
            ("10.2k bytes", 10_192, 49, 6),
            ("1 %", 39_936, 192, 24),
            ("1%", 39_936, 192, 24),
        ] {
            let limit = limit(requested, Platform::Sonic).unwrap();
            assert_eq!(
                (limit.bytes, limit.cells, limit.packets),
                (bytes, cells, packets),
                "{requested}"
            );
        }
    }

    #[test]
    fn coarser_platforms_round_further_down() {
        let os10 = limit("8 packets", Platform::Os10).unwrap();
        assert_eq!((os10.bytes, os10.kilobytes), (13_312, 13));
        let os10 = limit("10192 bytes", Platform::Os10).unwrap();
        assert_eq!((os10.bytes, os10.kilobytes), (9_216, 9));
        let cumulus = limit("8 packets", Platform::Cumulus4).unwrap();
        assert_eq!((cumulus.bytes, cumulus.permille, cumulus.packets), (12_000, 3, 7));
    }

    #[test]
    fn a_limit_below_one_packet_is_refused() {
        let below = |requested, platform| limit(requested, platform).unwrap_err().to_string();
        assert!(below("1000 bytes", Platform::Eos).contains("takes 1664"));
        assert!(below("0 packets", Platform::Eos).contains("drop everything"));
        assert!(below("1 packets", Platform::Os10).contains("units of 1024 bytes"));
        assert!(below("0 bytes", Platform::Sonic).contains("no limit at all"));
        assert!(below("5M bytes", Platform::Eos).contains("more than the whole buffer"));
    }

    #[test]
    fn a_limit_in_percent_is_a_share_of_one_mmu() {
        let tomahawk = Buffer { total: Some(16_000_000), mmus: 4, ..TRIDENT };
        let limit =
            |requested: &str| Limit::new(requested.parse().unwrap(), Platform::Eos, tomahawk);
        assert_eq!(limit("1 %").unwrap().bytes, 39_936, "of 4 MB");
        assert!(limit("4.1M bytes").unwrap_err().to_string().contains("buffer of 4000000"));
    }

    #[test]
    fn invalid_limits_are_refused() {
        for text in ["", "8", "packets", "-1 packets", "8 cells", "101 %", "1.5 packets", "% 1"] {
            assert!(text.parse::<RequestedLimit>().is_err(), "{text}");
        }
    }
}
