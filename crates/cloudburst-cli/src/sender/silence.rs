//! Finds out early why a receiver may be silent, while the endpoint still tries to reach it.

use super::address::explain_silence;
use super::failure::Failure;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Instant;

/// How long to wait for the receiver's first sign of life before a cause is looked for.
const EARLY: Duration = Duration::from_secs(1);

/// Watches for the first sign of life.
pub(super) enum Silence {
    /// No sign of life since this time.
    Since(Instant),
    /// A thread looks for the cause.
    Examined(Receiver<Failure>),
    /// There was a sign of life, or the user was told.
    Over,
}

impl Silence {
    /// Begins to watch, unless `deadline` is so short that the endpoint's own error comes early enough.
    pub(super) fn new(now: Instant, deadline: Duration) -> Self {
        if deadline > 3 * EARLY { Self::Since(now) } else { Self::Over }
    }

    /// Returns the likely cause of the silence of `peer`, once. `heard`: there was a sign of life.
    pub(super) fn look(&mut self, now: Instant, peer: SocketAddr, heard: bool) -> Option<Failure> {
        match self {
            Self::Over => {}
            _ if heard => *self = Self::Over,
            Self::Since(since) if now.duration_since(*since) >= EARLY => {
                let waited = EARLY;
                let (found, cause) = mpsc::sync_channel(1);
                thread::spawn(move || found.send(explain_silence(peer, waited)));
                *self = Self::Examined(cause);
            }
            Self::Since(_) => {}
            Self::Examined(cause) => match cause.try_recv() {
                Err(TryRecvError::Empty) => {}
                found => {
                    *self = Self::Over;
                    return found.ok();
                }
            },
        }
        None
    }
}
