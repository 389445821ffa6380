//! Handshakes, half-open or recently confirmed, from the responder's side: each initiator has
//! proved that it holds a key and receives at its address.

use crate::id::{PathId, SessionId};
use crate::proto::indexed::Indexed;
use crate::proto::limits::{HALF_OPEN_FOR, MAX_HALF_OPEN};
use crate::time::Instant;
use crate::wire::handshake::{ACCEPT_MESSAGE_LEN, Accept, HelloKey};
use foldhash::HashMap;
use std::net::IpAddr;

/// The IP address and nonce of an initiator, which identify a handshake before its OPEN is
/// decrypted.
pub(in crate::proto) type HandshakeKey = (IpAddr, u64);

/// An OPEN that was accepted. `T` is the session that it opens.
#[derive(Debug)]
pub(in crate::proto) struct Pending<T> {
    /// The session; `None` once it has been confirmed.
    pub(in crate::proto) session: Option<Box<T>>,
    /// The number of the newest authentic packet that was refused for lack of capacity for the
    /// session.
    pub(in crate::proto) refused: Option<u64>,
    opened_by: HandshakeKey,
    message: [u8; ACCEPT_MESSAGE_LEN],
    /// The key that the handshake is under: the endpoint may have others by now.
    key: HelloKey,
}

#[derive(Debug)]
pub(in crate::proto) struct HalfOpen<T> {
    pending: HashMap<SessionId, Pending<T>>,
    /// By initiator and nonce, so that a repeated OPEN gets the same answer.
    by_handshake: HashMap<HandshakeKey, SessionId>,
    /// By when each began, or its newest packet was refused.
    order: Indexed<SessionId, Instant>,
}

impl<T> Pending<T> {
    /// The ACCEPT that answers an OPEN that arrived on `path`, and its key. Returns `None` if the
    /// session was confirmed, because its initiator then has an ACCEPT.
    pub(in crate::proto) fn accept(&self, path: PathId) -> Option<(HelloKey, Accept)> {
        self.session.as_ref()?;
        let (_, nonce) = self.opened_by;
        Some((self.key.clone(), Accept { path, nonce, message: self.message }))
    }
}

impl<T> Default for HalfOpen<T> {
    fn default() -> Self {
        let pending = HashMap::default();
        let by_handshake = HashMap::default();
        Self { pending, by_handshake, order: Indexed::default() }
    }
}

impl<T> HalfOpen<T> {
    /// The handshake of an OPEN that has arrived before.
    pub(in crate::proto) fn known(&self, opened_by: HandshakeKey) -> Option<&Pending<T>> {
        self.pending.get(self.by_handshake.get(&opened_by)?)
    }

    /// Whether a session has this id.
    pub(in crate::proto) fn contains(&self, id: SessionId) -> bool {
        self.pending.contains_key(&id)
    }

    /// The session with this id, unless it was confirmed.
    pub(in crate::proto) fn get(&self, id: SessionId) -> Option<&T> {
        self.pending.get(&id)?.session.as_deref()
    }

    pub(in crate::proto) fn insert(
        &mut self,
        now: Instant,
        id: SessionId,
        opened_by: HandshakeKey,
        session: T,
        key: HelloKey,
        message: [u8; ACCEPT_MESSAGE_LEN],
    ) {
        if self.pending.len() >= MAX_HALF_OPEN {
            self.pop();
        }
        self.by_handshake.insert(opened_by, id);
        let session = Some(Box::new(session));
        self.order.set(id, Some(now));
        self.pending.insert(id, Pending { session, refused: None, opened_by, message, key });
    }

    /// A handshake that can still be confirmed. Checks its age, because a process that slept may be
    /// late to forget it.
    pub(in crate::proto) fn get_mut(
        &mut self,
        now: Instant,
        id: SessionId,
    ) -> Option<&mut Pending<T>> {
        let since = self.order.rank(id)?;
        self.pending.get_mut(&id).filter(|_| now < since + HALF_OPEN_FOR)
    }

    /// Records that an authentic packet, newer than all before, was refused for lack of capacity
    /// for the session. The handshake's lifetime starts over.
    pub(in crate::proto) fn refuse(&mut self, now: Instant, id: SessionId, number: u64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.refused = Some(number);
            self.order.set(id, Some(now));
        }
    }

    /// When the oldest handshake is forgotten.
    pub(in crate::proto) fn next_expiry(&self) -> Option<Instant> {
        self.order.first_rank().map(|since| since + HALF_OPEN_FOR)
    }

    pub(in crate::proto) fn expire(&mut self, now: Instant) {
        while self.next_expiry().is_some_and(|at| at <= now) {
            self.pop();
        }
    }

    pub(in crate::proto) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Panics unless each handshake can be found by its OPEN and has a place in the order.
    pub(in crate::proto) fn check_invariants(&self) {
        let handshakes = self.pending.len();
        assert!(handshakes <= MAX_HALF_OPEN, "{handshakes} handshakes");
        assert_eq!((self.by_handshake.len(), self.order.len()), (handshakes, handshakes));
        for (id, pending) in &self.pending {
            let found = self.by_handshake.get(&pending.opened_by);
            assert_eq!(found, Some(id), "{id:?} is not found by its OPEN");
            assert!(self.order.contains(*id), "{id:?} is not in the order");
        }
    }

    fn pop(&mut self) {
        if let Some(oldest) = self.order.pop_first()
            && let Some(pending) = self.pending.remove(&oldest)
        {
            self.by_handshake.remove(&pending.opened_by);
        }
    }
}
