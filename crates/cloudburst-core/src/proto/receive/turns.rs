//! Turns of messages that share something: of their hosts, then of the sessions of a host, then of the
//! messages of a session.

use super::quota::HostKey;
use crate::id::{MessageId, SessionId};
use crate::proto::indexed::Indexed;
use core::hash::Hash;
use foldhash::HashMap;

/// The name of a message.
pub(super) type Key = (SessionId, MessageId);

/// The most bytes by which a turn is postponed: about 256 packets.
// Without a bound, whoever shares an address with one that sends without turns would wait for as long as
// that lasted, once it is over.
const MAX_POSTPONED: u64 = 400_000;

/// Messages that take turns. What is served has a cost, and all hosts that want something get equally
/// much of it in the long run, from however many sessions and messages; so do the sessions of a host,
/// and the messages of a session.
// By host before all else, because whoever holds the key can make up sessions and messages.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The only message, its host and its cost. While it is alone, nothing is looked up.
    only: Option<(Key, HostKey, u64)>,
    hosts: Level<HostKey>,
    sessions: HashMap<HostKey, Level<SessionId>>,
    messages: HashMap<SessionId, (HostKey, Level<MessageId>)>,
}

/// Those at one level: self-clocked fair queueing (Golestani 1994).
// It remembers nothing of those that leave: whatever they were served lies in the past, and when they
// come back, they wait as if they had just been served. In turns without costs, one with symbols of 65,000
// bytes takes 43 times as much as one with full packets.
#[derive(Debug)]
struct Level<K> {
    /// By the virtual time at which they finish, if each is served once more.
    finish: Indexed<K, u64>,
    /// The virtual time, as a sum of costs: when the one served last finished.
    now: u64,
}

impl<K> Default for Level<K> {
    fn default() -> Self {
        Self { finish: Indexed::default(), now: 0 }
    }
}

impl<K: Copy + Eq + Hash + Ord> Level<K> {
    /// Adds `key`, if it is not there.
    fn enter(&mut self, key: K, cost: u64) {
        if !self.finish.contains(key) {
            self.finish.set(key, Some(self.now + cost));
        }
    }

    /// Records that `key` is served, and next time at this cost. Returns whether it is there.
    fn serve(&mut self, key: K, cost: u64) -> bool {
        let Some(finish) = self.finish.rank(key) else { return false };
        // It may be out of its turn.
        self.now = self.now.max(finish);
        self.finish.set(key, Some(self.now + cost));
        true
    }

    /// Records that `key`, if it is there, has had as much out of its turn.
    fn postpone(&mut self, key: K, cost: u64) {
        if let Some(finish) = self.finish.rank(key)
            && finish < self.now + MAX_POSTPONED
        {
            self.finish.set(key, Some(finish + cost));
        }
    }

    /// Removes `key`. Returns whether none is left.
    fn remove(&mut self, key: K) -> bool {
        self.finish.remove(key);
        self.finish.is_empty()
    }
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.only.is_none() && self.hosts.finish.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        let messages = self.messages.values().map(|(_, level)| level.finish.len());
        usize::from(self.only.is_some()) + messages.sum::<usize>()
    }

    /// The message whose turn it is.
    pub(super) fn first(&self) -> Option<Key> {
        if let Some((key, ..)) = self.only {
            return Some(key);
        }
        let host = self.hosts.finish.first()?;
        let session = self.sessions.get(&host)?.finish.first()?;
        let (_, messages) = self.messages.get(&session)?;
        Some((session, messages.finish.first()?))
    }

    /// The host of `key`, if that is there.
    pub(super) fn host(&self, key: Key) -> Option<HostKey> {
        if let Some((only, host, _)) = self.only {
            return (only == key).then_some(host);
        }
        let (session, message) = key;
        let (host, level) = self.messages.get(&session)?;
        level.finish.contains(message).then_some(*host)
    }

    /// Adds a message of `host`, if it is not there. When it is served, that costs as much.
    pub(super) fn enter(&mut self, host: HostKey, key: Key, cost: u64) {
        match self.only {
            Some((only, ..)) if only == key => {}
            None if self.hosts.finish.is_empty() => self.only = Some((key, host, cost)),
            _ => {
                if let Some((only, host, cost)) = self.only.take() {
                    self.insert(host, only, cost);
                }
                self.insert(host, key, cost);
            }
        }
    }

    fn insert(&mut self, host: HostKey, (session, message): Key, cost: u64) {
        let (_, messages) =
            self.messages.entry(session).or_insert_with(|| (host, Level::default()));
        messages.enter(message, cost);
        self.sessions.entry(host).or_default().enter(session, cost);
        self.hosts.enter(host, cost);
    }

    /// Ends the turn of a message, if it is there: it is served, and that cost as much.
    pub(super) fn serve(&mut self, (session, message): Key, cost: u64) {
        let Some((host, messages)) = self.messages.get_mut(&session) else { return };
        if !messages.serve(message, cost) {
            return;
        }
        if let Some(sessions) = self.sessions.get_mut(host) {
            sessions.serve(session, cost);
        }
        self.hosts.serve(*host, cost);
    }

    /// Postpones the turns of a message of `host`, of its session and of the host, as far as they are
    /// there: it has taken something without a turn.
    pub(super) fn postpone(&mut self, host: HostKey, (session, message): Key, cost: u64) {
        if let Some((_, messages)) = self.messages.get_mut(&session) {
            messages.postpone(message, cost);
        }
        if let Some(sessions) = self.sessions.get_mut(&host) {
            sessions.postpone(session, cost);
        }
        self.hosts.postpone(host, cost);
    }

    /// Removes a message, if it is there.
    pub(super) fn remove(&mut self, key: Key) {
        if self.only.take_if(|(only, ..)| *only == key).is_some() {
            return;
        }
        let (session, message) = key;
        let Some((host, messages)) = self.messages.get_mut(&session) else { return };
        let host = *host;
        if !messages.remove(message) {
            return;
        }
        self.messages.remove(&session);
        if self.sessions.get_mut(&host).is_some_and(|sessions| sessions.remove(session)) {
            self.sessions.remove(&host);
            self.hosts.remove(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn host(last: u8) -> HostKey {
        HostKey::of(IpAddr::from([10, 0, 0, last]))
    }

    fn key(session: u32, message: u64) -> Key {
        (SessionId(session), MessageId(message))
    }

    /// The sessions of the next `count` turns, if all messages stay and each costs `cost`.
    fn serve(turns: &mut Turns, count: usize, cost: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut next = || {
            let key = turns.first().unwrap();
            turns.serve(key, cost(key.0.0));
            key.0.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn hosts_take_turns_whatever_the_number_of_their_sessions_and_messages() {
        let mut turns = Turns::default();
        for message in 0..100 {
            turns.enter(host(1), key(1, message), 10);
        }
        (2..5).for_each(|session| turns.enter(host(1), key(session, 0), 10));
        turns.enter(host(2), key(9, 0), 10);
        let sessions = serve(&mut turns, 80, |_| 10);
        let count = |session| sessions.iter().filter(|it| **it == session).count();
        assert_eq!([1, 2, 3, 4, 9].map(count), [10, 10, 10, 10, 40]);
    }

    #[test]
    fn what_is_larger_is_served_the_less_often_also_beside_those_that_leave_and_come_back() {
        let mut turns = Turns::default();
        turns.enter(host(1), key(1, 0), 650);
        let mut sessions = Vec::new();
        for _ in 0..132 {
            turns.enter(host(2), key(2, 0), 10);
            sessions.extend(serve(&mut turns, 1, |session| if session == 1 { 650 } else { 10 }));
            turns.remove(key(2, 0));
        }
        assert_eq!(sessions.iter().filter(|session| **session == 1).count(), 2);
    }

    #[test]
    fn what_came_without_a_turn_counts() {
        let mut turns = Turns::default();
        (1..3).for_each(|who| turns.enter(host(who), key(who.into(), 0), 10));
        turns.postpone(host(1), key(1, 0), 30);
        assert_eq!(serve(&mut turns, 8, |_| 10), [2, 2, 2, 1, 2, 1, 2, 1]);
        // Also to the host, if the session does not wait for a turn.
        turns.postpone(host(1), key(3, 0), 30);
        assert_eq!(serve(&mut turns, 4, |_| 10), [2, 2, 2, 2]);
    }

    #[test]
    fn what_came_without_a_turn_is_forgotten_beyond_a_bound() {
        let mut turns = Turns::default();
        (1..3).for_each(|who| turns.enter(host(who), key(who.into(), 0), 1_000));
        (0..100_000).for_each(|_| turns.postpone(host(1), key(1, 0), 1_000));
        let sessions = serve(&mut turns, 500, |_| 1_000);
        let waited = sessions.iter().position(|session| *session == 1);
        assert_eq!(waited, Some(399));
    }

    #[test]
    fn messages_of_a_session_take_turns_and_leave_nothing_behind() {
        let mut turns = Turns::default();
        for _ in 0..2 {
            (0..3).for_each(|message| turns.enter(host(1), key(1, message), 1));
            let first: Vec<u64> = core::iter::from_fn(|| {
                let first = turns.first()?;
                turns.serve(first, 1);
                Some(first.1.0)
            })
            .take(6)
            .collect();
            assert_eq!(first, [0, 1, 2, 0, 1, 2]);
            assert_eq!([turns.host(key(1, 2)), turns.host(key(1, 3))], [Some(host(1)), None]);
            (0..3).for_each(|message| turns.remove(key(1, message)));
            assert!(turns.is_empty() && turns.first().is_none());
            assert_eq!(turns.len(), 0);
            assert!(turns.sessions.is_empty() && turns.messages.is_empty());
        }
    }
}
