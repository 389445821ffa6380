//! Section V of the Cloudburst paper (Cutting Tail Latency in Commodity Datacenters with Cloudburst, INFOCOM 2022):
//! what its hosts send, and what it claims.

/// Bytes of a request (V-A).
pub const REQUEST: u64 = 1_500;
/// Bytes of responses, all equally likely (V-A).
pub const RESPONSES: [u64; 5] = [5_000, 10_000, 20_000, 50_000, 93_000];
/// Bytes of a background flow (V-A).
pub const BACKGROUND: u64 = 10_000_000;
/// Requests per second of all hosts together (V-A, V-B).
pub const LOADS: [f64; 3] = [800.0, 1_600.0, 2_000.0];
/// Packets of a message in an incast (V-C).
pub const INCAST_PACKETS: u64 = 60;

/// What the paper says about its results, and the figures that it gives.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The claim, as a sentence without a full stop.
    pub claim: &'static str,
    /// The figures.
    pub figures: &'static str,
}

/// V-A, Figures 9 to 11. The reduction is [`D_BELOW_DCTCP`].
pub const ALL_CHOICES: Statement = Statement {
    claim: "All three choices together (D) cut the tail by 75.32 % compared with DCTCP",
    figures: "75.32 % lower, averaged over sizes",
};
/// V-A: the increase is [`A_ABOVE_DCTCP`].
pub const CODING_ALONE: Statement = Statement {
    claim: "Coding alone (A) is worse than DCTCP",
    figures: "51.12 % longer over all sizes, at 2000 r/s",
};
/// V-A: the reductions are [`B_BELOW_A`].
pub const MANY_PATHS: Statement = Statement {
    claim: "Many paths (B) are better than one (A)",
    figures: "44.52 % lower for 5 KB and 23.88 % lower for 93 KB, over all loads",
};
/// V-A: the reduction is [`C_BELOW_DCTCP`].
pub const TINY_QUEUES: Statement = Statement {
    claim: "Tiny queues on one path (C) cut the tail of 5 KB messages",
    figures: "51.42 % below DCTCP for 5 KB",
};
/// V-B, Table 14: the ratio is [`SENT_PER_NEEDED`].
pub const REDUNDANCY: Statement = Statement {
    claim: "Cloudburst sends at most 1.49 packets per packet needed",
    figures: "1.490, averaged over sizes and loads (Table 14)",
};
/// V-D, Figure 18: the reduction is [`SLOWER_BELOW_DCTCP`].
pub const RATE: Statement = Statement {
    claim: "At an over-subscription of 2:1, a rate r near 0.5 is best",
    figures: "best near 0.5, and at least 12.88 % below DCTCP for all sizes",
};

/// The share by which the p99 of design D is below that of DCTCP, averaged over sizes.
pub const D_BELOW_DCTCP: f64 = 0.7532;
/// The share by which the p99 of design A is above that of DCTCP, averaged over sizes.
pub const A_ABOVE_DCTCP: f64 = 0.5112;
/// The shares by which the p99 of design B is below that of A, by bytes of the response.
pub const B_BELOW_A: [(u64, f64); 2] = [(5_000, 0.4452), (93_000, 0.2388)];
/// The share by which the p99 of 5 KB of design C is below that of DCTCP.
pub const C_BELOW_DCTCP: f64 = 0.5142;
/// Packets sent for each packet needed.
pub const SENT_PER_NEEDED: f64 = 1.49;
/// The share by which each size is below DCTCP at r = 0.5, with an over-subscription of 2:1.
pub const SLOWER_BELOW_DCTCP: f64 = 0.1288;

/// The paper's figures for the p99 of Cloudburst at 2000 r/s (V-B, Figure 13).
pub const TAIL: &str = "63.69 % below DCTCP with ECMP and 60.06 % below PIAS, at 2000 r/s";
/// The paper's figures for incasts (V-C, Figure 15).
pub const INCAST: &str =
    "almost linear, whereas DCTCP and PIAS take increasingly longer (Figure 15)";
/// The paper's figures for three dead paths of four (V-C, Figure 16).
pub const DEAD_PATHS: &str = "6907 us instead of 5412 us at 2000 r/s, which is 1.28 times";
