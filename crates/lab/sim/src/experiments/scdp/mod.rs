//! Pulled messages in the experiments of SCDP (arXiv 1909.08928, sections V-F and V-I).
//!
//! | file | experiment | source |
//! |---|---|---|
//! | [`window`] | the window of symbols, at several link rates | V-F and V-I, Figures 13 and 15 |
//! | [`shares`] | five senders that start one after the other | V-I, Figure 17 |
//!
//! # Readings
//!
//! * *Trimming.* SCDP's switches trim packets that they cannot queue. The switches here drop them, and receivers detect
//!   the losses by the numbers of later packets, or by a timeout. Symbols beyond those that a message needs correspond
//!   to trimmed packets.
//! * *Queues.* The paper has a buffer of 20 packets and five queues. Here control packets have a queue of 30 KB, served
//!   first, and four classes of symbols have 20 packets each. SCDP lowers the priority of a session after 10 KB,
//!   100 KB, 1 MB and 10 MB; the last of these is left out.

pub mod shares;
pub mod window;

use crate::engine::US;
use crate::fabric::Link;
use crate::queue::{Classes, Depth, Discipline, Limits, Strict};
use crate::transport::cloudburst::{Sessions, Settings};
use cloudburst_core::config::{self, BurstPolicy, Config, ConfigError, Fabric, Thresholds};

/// Bytes that a message has sent when it moves to the next class.
const DEMOTED_AT: [u32; 3] = [10_000, 100_000, 1_000_000];
/// The queue limit of a class of symbols, in packets.
const QUEUE: usize = 20;
/// The queue limit of control packets, in bytes.
const CONTROL: usize = 30_000;

/// A link of the paper at this rate in bits per second.
const fn link(rate: u64) -> Link {
    Link { rate, delay: 10 * US }
}

/// The settings of hosts with links of this rate.
fn settings(
    rate: u64,
    policy: BurstPolicy,
    pairs: Vec<(u16, u16)>,
) -> Result<Settings, ConfigError> {
    let classes = config::Classes::BySent(Thresholds::new(&DEMOTED_AT)?);
    let fabric = Fabric { classes, ..Fabric::default() };
    let config = Config { capacity: rate.into(), policy, fabric, ..Config::default() };
    let sessions = Sessions::Between(pairs);
    Ok(Settings { sessions, control_apart: true, ..Settings::new(config) })
}

/// The queue of a host's port.
fn nic(link: Link) -> Discipline {
    Strict::new(Classes::new(link, &[Limits::NONE; DEMOTED_AT.len() + 2])).into()
}

/// The queue of a switch port.
fn queue(link: Link) -> Discipline {
    let mut limits = vec![Limits::new(Depth::Bytes(CONTROL))];
    limits.extend([Limits::new(Depth::Packets(QUEUE)); DEMOTED_AT.len() + 1]);
    Strict::new(Classes::new(link, &limits)).into()
}
