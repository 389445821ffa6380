//! The counters of a receiver.

use super::answers::{Report, Verdict};

counters! {
/// Counters of what a receiver has done and seen since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverCounters {
    /// Authentic SYMBOL packets, probes and trimmed ones among them.
    pub symbols_received: u64,
    /// Those that were innovative.
    pub useful_symbols: u64,
    /// Those of messages that had ended, or waited for the application.
    pub late_symbols: u64,
    /// Those that were trimmed.
    pub symbols_trimmed: u64,
    /// Symbols of pulled messages that were counted as lost, trimmed ones and those that arrived
    /// later among them.
    pub symbols_lost: u64,
    /// Messages put into the application's queue.
    pub messages_delivered: u64,
    /// The bytes of these messages.
    pub bytes_delivered: u64,
    /// Half-open sessions that were confirmed by their first packet.
    pub sessions_confirmed: u64,
    /// STOP reports, of a block or a message, each time that one was sent.
    pub stops_sent: u64,
    /// NACK reports, each time that one was sent.
    pub nacks_sent: u64,
    /// PULL reports, each time that one was sent.
    pub pulls_sent: u64,
    /// BUSY reports, each time that one was sent.
    pub busy_sent: u64,
    /// REJECT reports, each time that one was sent.
    pub rejects_sent: u64,
    /// FORGOTTEN reports, each time that one was sent.
    pub forgotten_sent: u64,
    /// Reports that were displaced by newer ones before they were sent.
    pub answers_dropped: u64,
    /// Messages that were forgotten before they were complete (`Tuning::decode_timeout`).
    pub decoders_expired: u64,
    /// Complete messages that the application did not take in time, or for which there was no capacity
    /// to wait.
    pub messages_dropped: u64,
    /// Blocks that were decoded and did not match their digest.
    pub corrupt_blocks: u64,
    /// Authentic symbols whose fields contradict each other, or earlier symbols of their message.
    pub nonsense: u64,
    /// Packets for the receiving half whose shape is wrong, and all packets of unknown kinds and
    /// other versions.
    pub malformed: u64,
    /// Symbols of a session that the receiver does not hold.
    pub unknown_session: u64,
    /// Symbols that are not authentic.
    pub forged: u64,
    /// Symbols whose number was seen before or is older than the window.
    pub replayed: u64,
    /// HELLO and OPEN packets under another key.
    pub refused_handshakes: u64,
    /// OPEN packets that were meant for another address: see `Builder::known_as` in
    /// `cloudburst-net`.
    pub misdirected: u64,
    /// Sessions for which there was no capacity.
    pub peers_refused: u64,
}
}

impl ReceiverCounters {
    /// Counts reports that leave in an ANSWER.
    pub(super) fn on_reports<'a>(&mut self, reports: impl IntoIterator<Item = &'a Report>) {
        for report in reports {
            let Report::Message(answer) = report else { continue };
            let sent = match answer.verdict {
                Verdict::BlockDone { .. } | Verdict::Delivered { .. } => &mut self.stops_sent,
                Verdict::Nack { .. } => &mut self.nacks_sent,
                Verdict::Pull { .. } => &mut self.pulls_sent,
                Verdict::Busy | Verdict::Held => &mut self.busy_sent,
                Verdict::Forgotten => &mut self.forgotten_sent,
                Verdict::Reject(_) => &mut self.rejects_sent,
            };
            *sent += 1;
        }
    }
}
