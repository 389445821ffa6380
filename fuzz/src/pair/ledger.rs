//! What was sent, what came in, how it ended: the promises of the transport.

use super::network::Side;
use bytes::Bytes;
use cloudburst_core::config::Config;
use cloudburst_core::error::{Doubt, Outcome, Receipt, Rejection};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::{Message, SendOptions};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::RejectReason;
use core::time::Duration;
use std::sync::LazyLock;

/// Sessions are forgotten after this long at the earliest: until then, no peer seems to have
/// restarted that has not.
const FORGETFUL_AFTER: Duration = Duration::from_secs(5);

/// The name of a send: the side, its life, and what the endpoint called it.
pub(super) type Name = (Side, u8, MessageId);

/// One message, from its send on.
struct Sent {
    name: Name,
    bytes: Bytes,
    sent_at: Instant,
    deadline: Instant,
    max_redundancy: usize,
    delivered: bool,
    outcome: Option<Outcome>,
}

/// What is true of a side's peer when one of its sends ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) start: Instant,
    pub(super) now: Instant,
    /// The peer has restarted before, or has no room for another session, which looks like it.
    pub(super) peer_restarted: bool,
    /// The peer has closed before.
    pub(super) peer_closed: bool,
    /// The longest message that the peer takes.
    pub(super) peer_max: usize,
    /// The cap on a block's packets holds without exception.
    pub(super) capped: bool,
}

#[derive(Default)]
pub(super) struct Ledger(Vec<Sent>);

impl Ledger {
    /// Bytes for the next message of a side in its life `life`: about `len` of them, so that no
    /// two messages of equal ids are equal.
    pub(super) fn content(&self, life: u8, len: usize) -> Bytes {
        static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut rng = cloudburst_core::rng::SplitMix64::new(1);
            (0..200_000).map(|_| rng.next_u64() as u8).collect()
        });
        if len < 8 && life == 0 {
            return Bytes::copy_from_slice(&PATTERN[..len]);
        }
        let mut bytes = PATTERN[..len.max(8)].to_vec();
        bytes[..8].copy_from_slice(&(self.0.len() as u64).to_be_bytes());
        bytes.into()
    }

    pub(super) fn on_sent(
        &mut self,
        name: Name,
        bytes: Bytes,
        sent_at: Instant,
        options: &SendOptions,
        config: &Config,
    ) {
        assert!(self.find(name).is_none(), "an id was given twice");
        self.0.push(Sent {
            name,
            bytes,
            sent_at,
            deadline: sent_at + options.deadline.unwrap_or(config.deadline),
            max_redundancy: config.max_redundancy as usize,
            delivered: false,
            outcome: None,
        });
    }

    pub(super) fn on_message(&mut self, to: Side, message: &Message) {
        let matching = |sent: &&mut Sent| {
            let (from, _, id) = sent.name;
            from == to.other() && id == message.id && sent.bytes == message.bytes
        };
        let Some(sent) = self.0.iter_mut().find(matching) else {
            panic!("message {} of {} bytes was never sent so", message.id, message.bytes.len());
        };
        assert!(!sent.delivered, "delivered twice: {sent:?}");
        sent.delivered = true;
        let rejected = matches!(sent.outcome, Some(Outcome::Rejected(_)));
        assert!(!rejected, "delivered after it was rejected: {sent:?}");
    }

    pub(super) fn on_ended(&mut self, name: Name, outcome: Outcome, facts: Facts) {
        let Some(sent) = self.0.iter_mut().find(|sent| sent.name == name) else {
            panic!("{name:?} ended and was never sent");
        };
        assert_eq!(sent.outcome, None, "ended twice");
        match &outcome {
            Outcome::Delivered(receipt) => {
                assert!(sent.delivered, "reported as delivered: {sent:?}");
                sent.check_receipt(receipt, facts.capped);
            }
            Outcome::Rejected(rejection) => {
                assert!(!sent.delivered, "{rejection:?}, and it was delivered: {sent:?}");
                sent.check_rejection(*rejection, facts);
            }
            Outcome::Unknown(doubt) => {
                let early = facts.now.saturating_since(facts.start) < FORGETFUL_AFTER;
                match doubt {
                    Doubt::Deadline => assert!(sent.deadline <= facts.now, "{sent:?}"),
                    Doubt::PeerRestarted => {
                        assert!(facts.peer_restarted || !early, "it did not: {sent:?}");
                    }
                    Doubt::Cancelled => {}
                    Doubt::Local(error) => panic!("nobody said so: {error}: {sent:?}"),
                }
            }
        }
        sent.outcome = Some(outcome);
    }

    pub(super) fn outcome(&self, name: Name) -> Option<&Outcome> {
        self.find(name)?.outcome.as_ref()
    }

    /// Sends of a side's life that have not ended, and their deadlines.
    pub(super) fn open(&self, side: Side, life: u8) -> impl Iterator<Item = (Name, Instant)> {
        self.0
            .iter()
            .filter(move |sent| (sent.name.0, sent.name.1) == (side, life))
            .filter(|sent| sent.outcome.is_none())
            .map(|sent| (sent.name, sent.deadline))
    }

    /// The most packets that the sends of a side's life may ever cost.
    pub(super) fn packet_cap(&self, side: Side, life: u8, max_symbol: usize) -> usize {
        let of_life = |sent: &&Sent| (sent.name.0, sent.name.1) == (side, life);
        self.0.iter().filter(of_life).map(|sent| sent.packet_cap(max_symbol)).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn find(&self, name: Name) -> Option<&Sent> {
        self.0.iter().find(|sent| sent.name == name)
    }
}

impl Sent {
    fn packet_cap(&self, max_symbol: usize) -> usize {
        let symbols = self.bytes.len().div_ceil(max_symbol).max(1);
        symbols * self.max_redundancy + symbols.div_ceil(128) * 256
    }

    fn check_receipt(&self, receipt: &Receipt, capped: bool) {
        let Receipt { bytes, blocks, source_symbols, packets, ref arrivals, .. } = *receipt;
        assert_eq!(bytes, self.bytes.len());
        assert_eq!(blocks, source_symbols.div_ceil(128));
        let cap = source_symbols * self.max_redundancy + blocks * 256;
        assert!(packets >= source_symbols && (packets <= cap || !capped), "{receipt:?}");
        let arrived: usize = arrivals.iter().map(|on| usize::from(on.count)).sum();
        assert!(arrived <= packets, "{receipt:?}");
    }

    fn check_rejection(&self, rejection: Rejection, facts: Facts) {
        match rejection {
            Rejection::ByPeer(RejectReason::TooLarge) => {
                assert!(self.bytes.len() > facts.peer_max, "{} bytes", self.bytes.len());
            }
            Rejection::ByPeer(RejectReason::Closing) => assert!(facts.peer_closed, "{self:?}"),
            // Damage is found by the tag; and both sides are of one make.
            Rejection::ByPeer(RejectReason::Corrupt | RejectReason::Unsupported) => {
                panic!("{rejection:?}: {self:?}");
            }
            Rejection::NoAnswer | Rejection::NotStarted => {
                assert!(self.deadline <= facts.now, "too early: {self:?}");
            }
            Rejection::Cancelled => {}
            Rejection::Local(error) => panic!("nobody said so: {error}: {self:?}"),
        }
    }
}

impl core::fmt::Debug for Sent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sent")
            .field("name", &self.name)
            .field("len", &self.bytes.len())
            .field("sent_at", &self.sent_at)
            .field("deadline", &self.deadline)
            .field("delivered", &self.delivered)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
