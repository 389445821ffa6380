//! The receiver's deadlines: what it forgets, and when.

use super::Receiver;
use super::peers::SEARCH_LIMIT;
use super::quota::HostKey;
use super::session::IDLE_GRAIN;
use crate::id::{MessageId, SessionId};
use crate::proto::limits::{IDLE_AFTER, STALE_AFTER};
use crate::proto::steps::step;
use crate::time::Instant;

impl Receiver {
    /// Forgets expired messages, handshakes and sessions, and delivers messages that waited for the
    /// capacity that this frees. Events and answers can be polled right after.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((session, id)) = self.timers.pop_due(now) {
            step();
            self.message_timeout(now, session, id);
        }
        self.handle_pull_timeout(now);
        self.half_open.expire(now);
        while self.idle_expiry().is_some_and(|at| at <= now) {
            step();
            self.forget_longest_idle();
        }
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
        self.idle.first_rank().map(|heard| heard + IDLE_AFTER)
    }

    /// Makes capacity for another session. Forgets the session that has been idle longest, of `host` if
    /// given, if it has been idle for so long that its peer checks it before using it again.
    pub(super) fn evict_idle_session(&mut self, now: Instant, host: Option<HostKey>) -> bool {
        let is_of = |name: &SessionId| {
            let session = self.sessions.get(name);
            host.is_none_or(|host| session.is_some_and(|session| session.key().host() == host))
        };
        let stale = |heard: Instant| now.saturating_since(heard) > STALE_AFTER + IDLE_GRAIN;
        let longest = self.idle.iter().take(SEARCH_LIMIT).take_while(|&(_, heard)| stale(heard));
        let evicted = longest.map(|(name, _)| name).find(is_of);
        step();
        evicted.inspect(|name| self.forget(*name)).is_some()
    }

    fn forget_longest_idle(&mut self) {
        if let Some(name) = self.idle.pop_first() {
            self.forget(name);
        }
    }
}
