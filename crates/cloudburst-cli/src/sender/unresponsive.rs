//! Finds out early why a receiver does not respond, while the endpoint still tries to reach it.

use super::address::refusal;
use super::failure::Failure;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Instant;

/// How long the receiver may be unresponsive before it is probed for a cause, and again after each time that none was
/// found.
const EARLY: Duration = Duration::from_secs(1);
/// How long to probe. Packets to a port that was just closed use up most of the ICMP messages that its host sends.
const PROBE_FOR: Duration = Duration::from_millis(500);

/// Watches for signs of life from the receiver while some are due.
pub(super) struct Unresponsive {
    /// The signs of life that were counted.
    signs: u64,
    /// Since when the receiver has been unresponsive, or a probe has found nothing.
    since: Instant,
    /// The result of a thread that probes.
    probe: Option<Receiver<Option<Failure>>>,
    /// Whether the cause was reported, or need not be.
    is_over: bool,
}

impl Unresponsive {
    /// Begins to watch, unless `deadline` is so short that the endpoint's own error comes early enough.
    pub(super) const fn new(now: Instant, deadline: Duration) -> Self {
        let is_over = deadline.as_millis() <= 3 * EARLY.as_millis();
        Self { signs: 0, since: now, probe: None, is_over }
    }

    /// Returns the likely cause why `peer` does not respond, once. `signs`: how many signs of life there were.
    /// `is_pending`: whether another is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        signs: u64,
        is_pending: bool,
    ) -> Option<Failure> {
        if self.is_over {
            return None;
        }
        if signs != self.signs || !is_pending {
            self.signs = signs;
            self.since = now;
            self.probe = None;
            return None;
        }
        let Some(probe) = &self.probe else {
            if now.duration_since(self.since) >= EARLY {
                let (send, probe) = mpsc::sync_channel(1);
                // If there is no thread, there is no cause.
                let _ = thread::Builder::new()
                    .name("probe".into())
                    .spawn(move || send.send(refusal(peer, PROBE_FOR)));
                self.probe = Some(probe);
            }
            return None;
        };
        let cause = match probe.try_recv() {
            Ok(cause) => cause,
            Err(TryRecvError::Empty) => return None,
            // The system refused a thread.
            Err(TryRecvError::Disconnected) => None,
        };
        self.since = now;
        self.probe = None;
        // A receiver that has answered before has the right key, and is probed again.
        let cause = cause.or((signs == 0).then_some(Failure::NoAnswer { peer, waited: EARLY }));
        self.is_over = cause.is_some();
        cause
    }
}
