//! The claims and their rules.

use super::judges;
use crate::report::names::{TCP, with_settings};
use crate::report::points::ExperimentResults;
use cloudburst_report::claims::Finding;
use cloudburst_workload::paper;

/// A claim, and the rule by which an experiment judges it for given settings of Cloudburst.
pub(super) struct Rule {
    pub(super) experiment: &'static str,
    pub(super) claim: &'static str,
    pub(super) paper: &'static str,
    pub(super) rule: &'static str,
    /// Returns the findings for the settings; none if the run lacks the data.
    pub(super) judge: fn(&ExperimentResults<'_>, &str) -> Vec<Finding>,
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        experiment: "schemes",
        claim: "Cloudburst's p99 is at least 60 % below that of each TCP scheme, and below those \
                of QUIC and MPTCP",
        paper: paper::TAIL,
        rule: "The p99 at the highest load, averaged over sizes. Targets: at least 60 % below each \
               TCP scheme, and below QUIC and MPTCP. Partial targets: below each TCP scheme.",
        judge: judges::tail,
    },
    Rule {
        experiment: "schemes",
        claim: "The median is at most 10 % above that of the best other scheme",
        paper: "average completion times similar to those of PIAS (Figure 12)",
        rule: "The p50 at the highest load, averaged over sizes. Target: at most 1.10 times that \
               of the best other scheme. Partial target: at most 1.25 times.",
        judge: judges::median,
    },
    Rule {
        experiment: "schemes",
        claim: paper::REDUNDANCY.claim,
        paper: paper::REDUNDANCY.figures,
        rule: "The mean over sizes and loads, as in Table 14. Target: at most 1.49. There is no \
               partial target. The project aims at 1.2.",
        judge: judges::redundancy,
    },
    Rule {
        experiment: "design-choices",
        claim: paper::ALL_CHOICES.claim,
        paper: paper::ALL_CHOICES.figures,
        rule: "The p99 at the highest load, averaged over sizes. Target: at least 75.32 % below \
               TCP cubic. Partial target: below TCP cubic.",
        judge: |e, settings| {
            judges::sizes_below(e, &with_settings("d", settings), TCP, paper::D_BELOW_DCTCP)
        },
    },
    Rule {
        experiment: "design-choices",
        claim: paper::CODING_ALONE.claim,
        paper: paper::CODING_ALONE.figures,
        rule: "The p99 at the highest load, averaged over sizes. Target: at least 51.12 % above \
               TCP cubic. Partial target: above TCP cubic.",
        judge: judges::coding_alone,
    },
    Rule {
        experiment: "design-choices",
        claim: paper::MANY_PATHS.claim,
        paper: paper::MANY_PATHS.figures,
        rule: "The p99 of a size, averaged over loads. Targets: at least 44.52 % below A for 5 KB, \
               and at least 23.88 % below A for 93 KB. Partial targets: below A.",
        judge: judges::many_paths,
    },
    Rule {
        experiment: "design-choices",
        claim: paper::TINY_QUEUES.claim,
        paper: paper::TINY_QUEUES.figures,
        rule: "The p99 of 5 KB, averaged over loads. Target: at least 51.42 % below TCP cubic. \
               Partial target: below TCP cubic.",
        judge: |e, settings| {
            judges::size_below(e, &with_settings("c", settings), TCP, 5_000, paper::C_BELOW_DCTCP)
                .into_iter()
                .collect()
        },
    },
    Rule {
        experiment: "incast",
        claim: "The time of an incast grows linearly with N",
        paper: paper::INCAST,
        rule: "The mean time until the last flow is complete. Target: it grows, a least-squares \
               line has an R² of at least 0.95, and all flows arrived. Partial target: the same \
               with an R² of at least 0.80.",
        judge: judges::incast_is_linear,
    },
    Rule {
        experiment: "incast",
        claim: "An incast of more than 8 flows takes less time than TCP's",
        paper: paper::INCAST,
        rule: "The mean time until the last flow is complete, which is infinite if a flow did not \
               arrive. Target: below TCP cubic at every N above 8. Partial target: below it at \
               some N above 8.",
        judge: judges::incast_below_tcp,
    },
    Rule {
        experiment: "failures",
        claim: "With three of four paths dead, the p99 is at most 1.5 times that with none dead",
        paper: paper::DEAD_PATHS,
        rule: "The p99 of all messages at the highest load. Target: at most 1.5 times. Partial \
               target: at most 2 times.",
        judge: judges::dead_paths,
    },
    Rule {
        experiment: "rate",
        claim: paper::RATE.claim,
        paper: paper::RATE.figures,
        rule: "The p99 at the highest load. Targets: the r with the least mean over sizes is from \
               0.4 to 0.6; at the r nearest to 0.5, every size is at least 12.88 % below TCP \
               cubic. Partial targets: from 0.25 to 0.75; every size is below TCP cubic.",
        judge: judges::rate,
    },
    Rule {
        experiment: "friendly",
        claim: "The background keeps at least 90 % of the goodput it has beside short TCP flows",
        paper: "no figure",
        rule: "The goodput of the background at the highest load. Target: at least 90 % of that \
               beside TCP cubic. Partial target: at least 80 %.",
        judge: judges::background,
    },
];
