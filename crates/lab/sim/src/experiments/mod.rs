//! The experiments: one file each, or a folder for those of a paper.
//!
//! To add an experiment, add a file and a line in [`ALL`].

pub mod aeolus;
pub mod drb;
pub mod drb_model;
pub mod incast_bound;
pub mod infocom;
pub mod scdp;

use crate::experiment::Experiment;

/// All experiments, in the order in which they are run and reported.
pub static ALL: [Experiment; 17] = [
    incast_bound::EXPERIMENT,
    infocom::DESIGN_CHOICES,
    infocom::RIVALS,
    infocom::INCAST,
    infocom::DEAD_PATHS,
    infocom::PATH_ORDERS,
    infocom::ADAPTIVE_RATE,
    infocom::LARGE,
    infocom::OVERSUBSCRIBED,
    drb_model::EXPERIMENT,
    drb::permutation::EXPERIMENT,
    drb::probes::EXPERIMENT,
    drb::mptcp::EXPERIMENT,
    drb::oversubscribed::EXPERIMENT,
    aeolus::EXPERIMENT,
    scdp::window::EXPERIMENT,
    scdp::shares::EXPERIMENT,
];
