//! When a receiver that serves one sender has served it.

use crate::protocol::InvocationId;
use core::time::Duration;
use std::net::SocketAddr;
use std::time::Instant;

/// How long to wait for BYE when all files have ended.
const BYE_TIMEOUT: Duration = Duration::from_secs(1);

/// The one session of a receiver with `--once`.
#[derive(Debug)]
pub(super) struct Once {
    patience: Duration,
    session: Option<Session>,
}

#[derive(Debug)]
struct Session {
    peer: SocketAddr,
    id: InvocationId,
    files: u32,
    done: u32,
    ended: u32,
    bye: bool,
    last_heard: Instant,
}

impl Once {
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience, session: None }
    }

    /// Whether a file of this session is admitted: the first session is the only one.
    pub(super) fn admits(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        id: InvocationId,
        files: u32,
    ) -> bool {
        let first = Session { peer, id, files, done: 0, ended: 0, bye: false, last_heard: now };
        let session = self.session.get_or_insert(first);
        (session.peer, session.id) == (peer, id)
    }

    /// Handles the arrival of a frame of some session.
    pub(super) fn on_frame(&mut self, now: Instant, peer: SocketAddr, id: InvocationId) {
        if let Some(session) = self.of(peer, id) {
            session.last_heard = now;
        }
    }

    /// Handles the end of a file of some session.
    pub(super) fn on_ended(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        id: InvocationId,
        done: bool,
    ) {
        if let Some(session) = self.of(peer, id) {
            session.last_heard = now;
            session.ended += 1;
            session.done += u32::from(done);
        }
    }

    /// Handles BYE of some session.
    pub(super) fn on_bye(&mut self, peer: SocketAddr, id: InvocationId) {
        if let Some(session) = self.of(peer, id) {
            session.bye = true;
        }
    }

    /// Whether all files were received, once it is over.
    pub(super) fn result(&self, now: Instant) -> Option<bool> {
        let session = self.session.as_ref()?;
        let all_ended = session.ended >= session.files;
        let patience = if all_ended { BYE_TIMEOUT } else { self.patience };
        let over = session.bye || now.duration_since(session.last_heard) >= patience;
        over.then_some(all_ended && session.done >= session.files)
    }

    fn of(&mut self, peer: SocketAddr, id: InvocationId) -> Option<&mut Session> {
        self.session.as_mut().filter(|session| (session.peer, session.id) == (peer, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: InvocationId = InvocationId([1; 16]);
    const PATIENCE: Duration = Duration::from_secs(10);

    fn peer() -> SocketAddr {
        ([127, 0, 0, 1], 1).into()
    }

    fn serving(files: u32) -> (Once, Instant) {
        let mut once = Once::new(PATIENCE);
        let now = Instant::now();
        assert_eq!(once.result(now + PATIENCE * 100), None, "nobody came");
        assert!(once.admits(now, peer(), ID, files));
        (once, now)
    }

    #[test]
    fn once_ends_at_the_senders_bye() {
        let (mut once, now) = serving(2);
        once.on_ended(now, peer(), ID, true);
        once.on_ended(now, peer(), ID, true);
        assert_eq!(once.result(now), None);
        once.on_bye(peer(), ID);
        assert_eq!(once.result(now), Some(true));
    }

    #[test]
    fn once_fails_if_a_file_failed_or_did_not_arrive() {
        let (mut once, now) = serving(2);
        once.on_ended(now, peer(), ID, true);
        once.on_bye(peer(), ID);
        assert_eq!(once.result(now), Some(false));
        let (mut once, now) = serving(1);
        once.on_ended(now, peer(), ID, false);
        once.on_bye(peer(), ID);
        assert_eq!(once.result(now), Some(false));
    }

    #[test]
    fn once_ends_when_its_sender_is_silent_for_too_long() {
        let (mut once, now) = serving(1);
        assert_eq!(once.result(now + PATIENCE / 2), None);
        assert_eq!(once.result(now + PATIENCE), Some(false));
        once.on_ended(now + PATIENCE, peer(), ID, true);
        assert_eq!(once.result(now + PATIENCE + BYE_TIMEOUT), Some(true), "BYE was lost");
    }

    #[test]
    fn other_senders_are_not_admitted_and_do_not_end_once() {
        let (mut once, now) = serving(1);
        let other = InvocationId([2; 16]);
        assert!(!once.admits(now, peer(), other, 1));
        assert!(!once.admits(now, ([127, 0, 0, 1], 2).into(), ID, 1));
        once.on_bye(peer(), other);
        assert_eq!(once.result(now), None);
    }
}
