//! The receiver's deadlines: what it forgets, and when.

use super::Receiver;
use super::peers::SEARCH_LIMIT;
use super::quota::HostKey;
use super::session::IDLE_GRAIN;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::proto::limits::{IDLE_AFTER, STALE_AFTER};
use crate::proto::steps::step;
use crate::time::Instant;
use std::net::SocketAddr;

impl Receiver {
    /// Forgets expired messages and handshakes, and delivers messages that waited for the capacity that
    /// this frees. Events and answers can be polled right after.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((session, id)) = self.timers.pop_due(now) {
            step();
            self.message_timeout(now, session, id);
        }
        self.handle_pull_timeout(now);
        self.half_open.expire(now);
        self.recycler.handle_timeout(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let timers = self.timers.first_rank();
        let pool = self.recycler.pool.poll_timeout();
        let half_open = self.half_open.next_expiry();
        let pull = self.pulls.ready_at();
        let pull_timers = self.pulls.timers.first_rank();
        let all = [timers, half_open, self.idle_expiry(), pool, pull, pull_timers];
        all.into_iter().flatten().min()
    }

    /// Handles the timer of a message that may have brought nothing new for too long. The timer
    /// does not move with every symbol, so the message may have brought something since it was set.
    fn message_timeout(&mut self, now: Instant, name: SessionId, id: MessageId) {
        let Some(session) = self.sessions.get_mut(&name) else { return };
        let Some(incoming) = session.window.unended(id) else { return };
        let deadline = incoming.last_wanted() + self.config.decode_timeout;
        if deadline > now {
            self.timers.set((name, id), Some(deadline));
        } else {
            self.forget_message(name, id);
        }
    }

    /// When the session that has been idle for the longest is forgotten.
    fn idle_expiry(&self) -> Option<Instant> {
        self.idle.first_rank()
    }

    /// Makes capacity for another session. Forgets the session that has been idle longest, of `host` if
    /// given, if it has been idle for so long that its peer checks it before using it again.
    pub(super) fn evict_idle_session(&mut self, now: Instant, host: Option<HostKey>) -> bool {
        let is_of = |name: &SessionId| {
            let session = self.sessions.get(name);
            host.is_none_or(|host| session.is_some_and(|session| session.key().host() == host))
        };
        let stale = |at: Instant| at + STALE_AFTER + IDLE_GRAIN < now + IDLE_AFTER;
        let longest = self.idle.iter().take(SEARCH_LIMIT).take_while(|&(_, at)| stale(at));
        let evicted = longest.map(|(name, _)| name).find(is_of);
        step();
        evicted.inspect(|name| self.forget(*name)).is_some()
    }

    /// Forgets the sessions that have been idle for long. `heard` tells when the sending half last heard
    /// from a peer: the peer may rely on both directions of a session while it uses one.
    pub(in crate::proto) fn forget_idle_sessions(
        &mut self,
        now: Instant,
        heard: impl Fn(SocketAddr, Incarnation) -> Option<Instant>,
    ) {
        while self.idle_expiry().is_some_and(|at| at <= now)
            && let Some(name) = self.idle.first()
        {
            step();
            let session = self.sessions.get_mut(&name);
            let last = session.as_ref().and_then(|of| heard(of.peer, of.incarnation));
            match session.filter(|session| last > Some(session.last_heard)).zip(last) {
                Some((session, last)) => {
                    session.last_heard = last;
                    self.idle.set(name, Some(session.forget_at()));
                }
                None => self.forget(name),
            }
        }
    }

    /// Learns that an incarnation has left. Its sessions are forgotten as soon as its packets no longer
    /// arrive, and the application gets no more requests of it.
    pub(in crate::proto) fn on_left(&mut self, peer: SocketAddr, incarnation: Incarnation) {
        for name in self.sessions_of(peer, incarnation) {
            let Some(session) = self.sessions.get_mut(&name) else { continue };
            session.has_left = true;
            if self.idle.contains(name) {
                self.idle.set(name, Some(session.forget_at()));
            }
        }
    }
}
