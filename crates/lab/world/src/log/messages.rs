//! The log of messages: what was sent, what arrived, and how it ended.

use bytes::Bytes;
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::Message;
use cloudburst_core::rng::SplitMix64;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::symbol::MAX_MESSAGE_ID;
use core::time::Duration;
use std::sync::LazyLock;

/// The length from which contents are unique.
pub(crate) const UNIQUE: usize = 8;

/// Identifies a send: the host, its life, and the endpoint's message ID.
pub(crate) type Name = (usize, u8, MessageId);

/// A message that has been sent.
pub(crate) struct Sent {
    pub(crate) name: Name,
    /// The receiver, if its address is that of a host.
    pub(crate) to: Option<usize>,
    pub(crate) bytes: Bytes,
    /// By the clock of the sender, as the deadline.
    pub(crate) sent_at: Instant,
    pub(crate) deadline: Instant,
    pub(crate) max_redundancy: usize,
    /// Whether the cap on a block's packets does not apply: the sender was told BUSY or FORGOTTEN
    /// while it was under way, or the receiver has restarted, and the message may start over.
    pub(crate) uncapped: bool,
    /// Whether it has entered the queue of the receiver's application.
    pub(crate) arrived: bool,
    pub(crate) outcome: Option<Outcome>,
}

/// All messages of a world.
#[derive(Default)]
pub(crate) struct MessageLog(Vec<Sent>);

impl MessageLog {
    /// Unique content for the next message of a host in its life `life`: about `len` bytes. Fewer
    /// than [`UNIQUE`] bytes cannot be unique, so only host 0 sends so few, in its first life.
    pub(crate) fn content(&self, host: usize, life: u8, len: usize) -> Bytes {
        static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut rng = SplitMix64::new(1);
            (0..200_000).map(|_| rng.next_u64() as u8).collect()
        });
        // Two hosts, or two lives, use the same message IDs, so their messages must differ.
        if len < UNIQUE && (host, life) == (0, 0) {
            return Bytes::copy_from_slice(&PATTERN[..len]);
        }
        let mut bytes = PATTERN[..len.max(UNIQUE)].to_vec();
        bytes[..UNIQUE].copy_from_slice(&(self.0.len() as u64).to_be_bytes());
        bytes.into()
    }

    pub(crate) fn on_sent(&mut self, sent: Sent) {
        assert!(self.find(sent.name).is_none(), "message ID used twice: {:?}", sent.name);
        self.0.push(sent);
    }

    /// Handles a message that entered the application's queue at host `at`. Returns its sender.
    pub(crate) fn on_message(&mut self, at: usize, message: &Message) -> usize {
        let is_it = |sent: &&mut Sent| {
            let waited = sent.name.2.0 >= MAX_MESSAGE_ID;
            (waited || sent.name.2 == message.id) && sent.bytes == message.bytes
        };
        let Some(sent) = self.0.iter_mut().find(is_it) else {
            panic!("message {} of these {} bytes was never sent", message.id, message.bytes.len());
        };
        assert_eq!(sent.to, Some(at), "delivered to the wrong host: {sent:?}");
        assert!(!sent.arrived, "delivered twice: {sent:?}");
        sent.arrived = true;
        let rejected = matches!(sent.outcome, Some(Outcome::Rejected(_)));
        assert!(!rejected, "delivered after it was rejected: {sent:?}");
        sent.name.0
    }

    /// Handles the end of a send. Returns it.
    pub(crate) fn on_ended(&mut self, name: Name, outcome: Outcome) -> &Sent {
        let Some(sent) = self.0.iter_mut().find(|sent| sent.name == name) else {
            panic!("{name:?} ended, but was never sent");
        };
        assert_eq!(sent.outcome, None, "ended twice");
        sent.outcome = Some(outcome);
        sent
    }

    pub(crate) fn find(&self, name: Name) -> Option<&Sent> {
        self.0.iter().find(|sent| sent.name == name)
    }

    /// Sends of a host's life that have not ended.
    pub(crate) fn open(&self, host: usize, life: u8) -> impl Iterator<Item = &Sent> {
        let of_life = move |sent: &&Sent| (sent.name.0, sent.name.1) == (host, life);
        self.0.iter().filter(of_life).filter(|sent| sent.outcome.is_none())
    }

    /// Lifts the caps of the sends of a host's life that have not ended.
    pub(crate) fn uncap(&mut self, host: usize, life: u8) {
        let of_life = |sent: &&mut Sent| (sent.name.0, sent.name.1) == (host, life);
        let open = self.0.iter_mut().filter(of_life).filter(|sent| sent.outcome.is_none());
        open.for_each(|sent| sent.uncapped = true);
    }

    /// Lifts the caps of the sends to a host, which has restarted: they may start over.
    pub(crate) fn uncap_to(&mut self, host: usize) {
        let open = self.0.iter_mut().filter(|sent| sent.to == Some(host) && sent.outcome.is_none());
        open.for_each(|sent| sent.uncapped = true);
    }

    /// The maximum number of packets that the sends of a host's life may have cost by `now`; `None`
    /// if some have no cap.
    pub(crate) fn packet_cap(
        &self,
        host: usize,
        life: u8,
        max_symbol: usize,
        now: Instant,
    ) -> Option<usize> {
        let of_life = |sent: &&Sent| (sent.name.0, sent.name.1) == (host, life);
        let cap = |sent: &Sent| {
            let symbols = sent.bytes.len().div_ceil(max_symbol).max(1);
            let time = now.min(sent.deadline).saturating_since(sent.sent_at);
            (!sent.uncapped).then(|| sent.packet_cap(symbols, time))
        };
        self.0.iter().filter(of_life).map(cap).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Sent {
    /// The maximum number of packets that it may cost within `time`, if it has `symbols` source
    /// symbols.
    pub(crate) fn packet_cap(&self, symbols: usize, time: Duration) -> usize {
        /// The shortest time in which a peer becomes unresponsive, or is sent probing symbols.
        const PERIOD: Duration = Duration::from_millis(50);
        /// Probing symbols in that time.
        const PROBES: usize = 16;
        /// The most symbols that a policy opens with, for each source symbol.
        const OPENING: usize = 8;
        let periods = (time.as_nanos() / PERIOD.as_nanos()) as usize;
        let bursts = symbols * self.max_redundancy + symbols.div_ceil(128) * 256;
        bursts + periods * (PROBES + OPENING * symbols)
    }
}

impl core::fmt::Debug for Sent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sent")
            .field("name", &self.name)
            .field("to", &self.to)
            .field("len", &self.bytes.len())
            .field("sent_at", &self.sent_at)
            .field("deadline", &self.deadline)
            .field("arrived", &self.arrived)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
