//! Settings for experiments and tests.

use super::PullOrder;
use crate::path::MAX_TRAIN;
use core::time::Duration;

/// Settings for experiments and tests. They may change or vanish in any version.
///
/// Write it with `..Tuning::default()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The longest packet train, in packets: packets sent back to back on one path by one system call.
    /// Default 64, 1 to 64; Algorithm 1 uses 1.
    ///
    /// This is an upper limit: the length is learned for each path
    /// ([`PathStats::train`](crate::path::PathStats::train)). It starts at 4, doubles while no packet
    /// is missing, halves for one or two missing packets, and falls back to 4 for more. No train takes
    /// longer than 200 us at the rate, except that 4 packets are always allowed.
    ///
    /// Longer trains save system calls, but need room in the queues of switches, where trains of
    /// several senders meet. A queue of 8 packets hardly ever drops from trains of 4 if each path has
    /// links of its own. With hashed paths, which collide, and in an incast, it drops at any length.
    pub train: usize,
    /// The most packets of one block in bursts: this many times its source symbols, plus 256.
    /// Beyond that, a few leave every 100 ms until the deadline. Default 32, 2 to 1,000.
    pub max_redundancy: u32,
    /// Blocks of one message in flight at a time. Default 2, at most 8.
    pub blocks_in_flight: usize,
    /// The order in which this endpoint pulls messages. Default round robin.
    pub pull_order: PullOrder,
    /// Whether a probe, a small packet in the class of answers, follows the opening of each block
    /// of a budgeted message, if the opening has two packets or more (Aeolus). Default false.
    /// Pulled messages always have probes.
    ///
    /// The receiver answers the probe once the opening has arrived or is overdue, so that the loss
    /// of a whole opening costs a round trip instead of a timeout. Set it where switches do not
    /// drop the class of answers, because it has its own queue or because of
    /// [`EcnMode::Aeolus`](super::EcnMode::Aeolus). It costs one packet per block.
    pub probe: bool,
    /// How long a receiver keeps an incomplete message after its last new symbol, and a complete one
    /// that the application has not taken after the last symbol of any kind from its sender. Default
    /// 15 s: longer than the default deadline, after which its sender has given up.
    pub decode_timeout: Duration,
    /// Replaces the limit of the same name in [`Limits`](super::Limits). At least 1.
    pub send_messages: Option<usize>,
    /// See `send_messages`.
    pub send_bytes: Option<usize>,
    /// See `send_messages`.
    pub receive_messages: Option<usize>,
    /// See `send_messages`.
    pub receive_bytes: Option<usize>,
    /// See `send_messages`. At least twice `max_message`.
    pub decode_bytes: Option<usize>,
    /// See `send_messages`. At least twice `max_message`.
    pub decode_bytes_per_peer: Option<usize>,
    /// See `send_messages`.
    pub max_peers: Option<usize>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            train: MAX_TRAIN,
            max_redundancy: 32,
            blocks_in_flight: 2,
            pull_order: PullOrder::default(),
            probe: false,
            decode_timeout: Duration::from_secs(15),
            send_messages: None,
            send_bytes: None,
            receive_messages: None,
            receive_bytes: None,
            decode_bytes: None,
            decode_bytes_per_peer: None,
            max_peers: None,
        }
    }
}
