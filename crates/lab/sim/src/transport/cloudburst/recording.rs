//! Recordings of the inputs and outputs of an endpoint, for replay by another driver.

use super::recipe::Recipe;
use bytes::Bytes;
use cloudburst_core::path::Via;
use cloudburst_core::proto::Transceiver;
use cloudburst_core::time::Instant;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The inputs and outputs of one host's endpoint, in order. Clones refer to the same recording.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    recipe: Option<Recipe>,
    steps: Vec<(Instant, Step)>,
}

/// An input of an endpoint, or an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Input: open a session with a peer.
    Connect(SocketAddr),
    /// Input: send a message to a peer.
    Send(SocketAddr, Bytes),
    /// Input: a datagram, with a CE mark or without.
    Datagram(Via, bool, Vec<u8>),
    /// Input: a timeout.
    Timeout,
    /// Output: a message read by the application.
    Taken(Bytes),
    /// Output: a datagram.
    Sent(Via, Vec<u8>),
}

impl Recording {
    /// A new endpoint in the initial state of the recorded one; `None` before the simulation starts.
    pub fn endpoint(&self) -> Option<Transceiver> {
        self.lock().recipe.as_ref()?.endpoint().ok()
    }

    /// The steps so far, with the endpoint's time.
    pub fn steps(&self) -> Vec<(Instant, Step)> {
        self.lock().steps.clone()
    }

    pub(super) fn begin(&self, recipe: Recipe) {
        self.lock().recipe = Some(recipe);
    }

    pub(super) fn push(&self, now: Instant, step: Step) {
        self.lock().steps.push((now, step));
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
