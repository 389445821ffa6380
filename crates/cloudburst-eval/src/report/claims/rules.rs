//! The claims and their rules.

use super::judges;
use crate::report::names::{TCP, with_settings};
use crate::report::points::Experiment;
use cloudburst_report::claims::Finding;

/// A claim and how it is judged, by one experiment and for one settings of Cloudburst.
pub(super) struct Rule {
    pub(super) experiment: &'static str,
    pub(super) claim: &'static str,
    pub(super) paper: &'static str,
    pub(super) rule: &'static str,
    /// Nothing, where the run has not what it takes.
    pub(super) judge: fn(&Experiment<'_>, &str) -> Vec<Finding>,
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        experiment: "schemes",
        claim: "Cloudburst's p99 is at least 60 % below that of each TCP scheme, and below those \
                of QUIC and MPTCP",
        paper: "at 2000 r/s 60.06 % below PIAS, 63.69 % below DCTCP with ECMP",
        rule: "p99 at the highest load, mean over sizes. Mark: 60 % less than each TCP scheme's, \
               less than QUIC's and MPTCP's. Part: less than the TCP scheme's.",
        judge: judges::tail,
    },
    Rule {
        experiment: "schemes",
        claim: "The median is no worse than 10 % above the best scheme's",
        paper: "average completion times similar to those of PIAS (Figure 12)",
        rule: "p50 at the highest load, mean over sizes. Mark: at most 1.10 times the best other \
               scheme's. Part: at most 1.25 times.",
        judge: judges::median,
    },
    Rule {
        experiment: "schemes",
        claim: "Mean of packets sent over original packets is at most 1.49",
        paper: "1.490 (Table 14)",
        rule: "Mean over sizes and loads, as in Table 14. Mark: at most 1.49. The project aims at \
               1.2.",
        judge: judges::redundancy,
    },
    Rule {
        experiment: "design-choices",
        claim: "All three choices together (D) cut the tail by 75.32 % against DCTCP",
        paper: "75.32 % less, averaged over sizes",
        rule: "p99 at the highest load, mean over sizes. Mark: 75.32 % less than TCP cubic's. \
               Part: less.",
        judge: |e, settings| judges::sizes_below(e, &with_settings("d", settings), TCP, 0.7532),
    },
    Rule {
        experiment: "design-choices",
        claim: "Coding alone (A) is worse than DCTCP",
        paper: "51.12 % longer, over all sizes at 2000 r/s",
        rule: "p99 at the highest load, mean over sizes. Mark: at least 51.12 % longer than TCP \
               cubic's. Part: longer.",
        judge: judges::coding_alone,
    },
    Rule {
        experiment: "design-choices",
        claim: "Many paths (B) are better than one (A)",
        paper: "44.52 % less for 5 KB, 23.88 % less for 93 KB, over all loads",
        rule: "p99 of a size, mean over loads. Mark: 44.52 % less than A's for 5 KB, 23.88 % less \
               for 93 KB. Part: less.",
        judge: judges::many_paths,
    },
    Rule {
        experiment: "design-choices",
        claim: "Tiny queues on one path (C) cut the tail of 5 KB messages",
        paper: "51.42 % less than DCTCP for 5 KB",
        rule: "p99 of 5 KB, mean over loads. Mark: 51.42 % less than TCP cubic's. Part: less.",
        judge: |e, settings| {
            judges::size_below(e, &with_settings("c", settings), TCP, "5 KB", 0.5142)
                .into_iter()
                .collect()
        },
    },
    Rule {
        experiment: "incast",
        claim: "An incast takes a time that grows linearly with N",
        paper: "almost linear (Figure 15)",
        rule: "Completion of the last flow, mean. Mark: it grows, a straight line by least squares \
               has R² of at least 0.95, and no flow is missing. Part: R² of at least 0.80.",
        judge: judges::incast_is_linear,
    },
    Rule {
        experiment: "incast",
        claim: "An incast of more than 8 flows takes less time than TCP's",
        paper: "DCTCP and PIAS take increasingly longer (Figure 15)",
        rule: "Completion of the last flow, mean. Mark: below TCP cubic's at every N above 8, no \
               flow missing. Part: below at some N.",
        judge: judges::incast_below_tcp,
    },
    Rule {
        experiment: "failures",
        claim: "With three of four paths dead the p99 is at most 1.5 times that with none dead",
        paper: "5412 us to 6907 us at 2000 r/s: 1.28 times",
        rule: "p99 of all messages at the highest load. Mark: at most 1.5 times. Part: at most 2 \
               times.",
        judge: judges::dead_paths,
    },
    Rule {
        experiment: "rate",
        claim: "At an over-subscription of 2:1 a rate r near 0.5 is best",
        paper: "best near 0.5, at least 12.88 % less than DCTCP for all sizes",
        rule: "p99 at the highest load. Marks: the r with the least mean over sizes is 0.4 to 0.6; \
               at the r nearest to 0.5 every size is at least 12.88 % below TCP cubic's. Parts: \
               0.25 to 0.75; every size below.",
        judge: judges::rate,
    },
    Rule {
        experiment: "friendly",
        claim: "The background keeps at least 90 % of its goodput beside TCP short flows",
        paper: "no figure",
        rule: "Goodput of the background at the highest load. Mark: at least 90 % of that beside \
               TCP cubic. Part: at least 80 %.",
        judge: judges::background,
    },
];
