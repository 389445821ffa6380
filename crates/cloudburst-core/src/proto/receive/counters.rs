//! The counters of a receiver.

use super::answers::{Report, Verdict};

/// Counters of what a receiver has done and seen since it was created.
///
/// # Example
///
/// ```
/// # use cloudburst_core::proto::ReceiverCounters;
/// fn check(receiver: &ReceiverCounters) {
///     if receiver.refused_handshakes > 0 {
///         eprintln!("{} handshakes were under another key", receiver.refused_handshakes);
///     }
///     if receiver.messages_dropped > 0 {
///         eprintln!("{} messages found no room", receiver.messages_dropped);
///     }
/// }
/// # check(&ReceiverCounters::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are self-explanatory; docs/spec.md lists them")]
#[non_exhaustive]
pub struct ReceiverCounters {
    pub symbols_received: u64,
    pub useful_symbols: u64,
    pub late_symbols: u64,
    pub symbols_trimmed: u64,
    pub symbols_lost: u64,
    pub messages_delivered: u64,
    pub bytes_delivered: u64,
    pub sessions_confirmed: u64,
    pub stops_sent: u64,
    pub statuses_sent: u64,
    pub pulls_sent: u64,
    pub busies_sent: u64,
    pub rejects_sent: u64,
    pub forgottens_sent: u64,
    pub answers_dropped: u64,
    pub decoders_expired: u64,
    pub messages_dropped: u64,
    pub corrupt_blocks: u64,
    pub nonsense: u64,
    pub malformed: u64,
    pub unknown_session: u64,
    pub forged: u64,
    pub replayed: u64,
    pub refused_handshakes: u64,
    pub misdirected: u64,
    pub peers_refused: u64,
}

impl ReceiverCounters {
    /// Counts reports that leave in an ANSWER.
    pub(super) fn on_reports<'a>(&mut self, reports: impl IntoIterator<Item = &'a Report>) {
        for report in reports {
            let Report::Message(answer) = report else { continue };
            let sent = match answer.verdict {
                Verdict::BlockDone { .. } | Verdict::Delivered { .. } => &mut self.stops_sent,
                Verdict::Status { .. } => &mut self.statuses_sent,
                Verdict::Pull { .. } => &mut self.pulls_sent,
                Verdict::Busy => &mut self.busies_sent,
                Verdict::Forgotten => &mut self.forgottens_sent,
                Verdict::Reject(_) => &mut self.rejects_sent,
            };
            *sent += 1;
        }
    }
}
