//! Finds out early why a receiver is silent, while the endpoint still tries to reach it.

use super::address::refusal;
use super::failure::Failure;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Instant;

/// How long the receiver may be silent before a cause is looked for, and again after each time that none was found.
const EARLY: Duration = Duration::from_secs(1);
/// How long to look. Packets to a port that was just closed use up most of the ICMP messages that its host sends.
const LOOK: Duration = Duration::from_millis(500);

/// Watches for signs of life from the receiver while it owes some.
pub(super) struct Silence {
    /// The signs of life that were counted.
    signs: u64,
    /// Since when the receiver has been silent, or a look has found nothing.
    since: Instant,
    /// A thread looks for the cause.
    found: Option<Receiver<Option<Failure>>>,
    /// Whether the user was told, or need not be.
    is_over: bool,
}

impl Silence {
    /// Begins to watch, unless `deadline` is so short that the endpoint's own error comes early enough.
    pub(super) const fn new(now: Instant, deadline: Duration) -> Self {
        let is_over = deadline.as_millis() <= 3 * EARLY.as_millis();
        Self { signs: 0, since: now, found: None, is_over }
    }

    /// Returns the likely cause of the silence of `peer`, once. `signs`: how many signs of life there were. `owes`:
    /// whether the receiver is to give one.
    pub(super) fn look(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        signs: u64,
        owes: bool,
    ) -> Option<Failure> {
        if self.is_over {
            return None;
        }
        if signs != self.signs || !owes {
            (self.signs, self.since, self.found) = (signs, now, None);
        } else if let Some(found) = &self.found {
            let cause = match found.try_recv() {
                Ok(cause) => cause,
                Err(TryRecvError::Empty) => return None,
                // The system refused a thread.
                Err(TryRecvError::Disconnected) => None,
            };
            (self.since, self.found) = (now, None);
            // A receiver that has answered before has the right key, and is looked for again.
            let cause = cause.or((signs == 0).then_some(Failure::NoAnswer { peer, waited: EARLY }));
            self.is_over = cause.is_some();
            return cause;
        } else if now.duration_since(self.since) >= EARLY {
            let (give, found) = mpsc::sync_channel(1);
            let look = move || give.send(refusal(peer, LOOK));
            // If there is no thread, there is no cause.
            let _ = thread::Builder::new().name("probe".into()).spawn(look);
            self.found = Some(found);
        }
        None
    }
}
