//! Waits until sockets are readable, and ends the waits of other threads.

use super::epoll::EpollSet;
use super::socket::EgressSocket;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::thread;

/// The most egresses that one wait reports; the next wait reports the others.
const MAX_READY: usize = 16;
/// The data of the event for a token.
const WAKE: u64 = u64::MAX;
/// How often in a row sockets may be ready without a packet before the thread sleeps.
const MAX_FRUITLESS: u32 = 16;
const REST: Duration = Duration::from_millis(1);

/// Waits for all egresses and for tokens. The cost of a wait does not depend on their number.
#[derive(Debug)]
pub(super) struct Poller {
    /// Counts tokens: each ends the wait of one thread.
    wakes: EventFd,
    /// The number of tokens that exist or are about to be added.
    tokens: AtomicUsize,
    /// Reports readable egresses, and tokens.
    ready: EpollSet,
    /// Threads that are waiting.
    waiting: AtomicUsize,
    /// How often in a row sockets were ready without a packet.
    fruitless: AtomicU32,
}

/// The result of a wait.
#[derive(Debug)]
pub struct Ready {
    events: [EpollEvent; MAX_READY],
    count: usize,
    /// Whether the thread could have waited: its timeout was not zero.
    pub(super) waits: bool,
    /// Whether a token ended the wait, or there is one for another thread.
    pub(super) woken: bool,
}

impl Ready {
    pub(super) fn nothing(waits: bool) -> Self {
        Self { events: [EpollEvent::empty(); MAX_READY], count: 0, waits, woken: false }
    }

    /// Whether nothing happened before the timeout.
    pub(super) const fn is_nothing(&self) -> bool {
        self.count == 0
    }

    /// Whether it reports as many events as it can: there may be more.
    pub(super) const fn is_full(&self) -> bool {
        self.count == MAX_READY
    }

    /// The numbers of the egresses that are ready, and whether an error may be the reason.
    pub(super) fn egresses(&self) -> impl Iterator<Item = (u16, bool)> {
        let egresses = self.events[..self.count].iter().filter(|event| event.data() != WAKE);
        let failed = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        egresses.map(move |event| (event.data() as u16, event.events().intersects(failed)))
    }
}

impl Poller {
    pub(super) fn watch<'a>(
        egresses: impl IntoIterator<Item = (u16, &'a EgressSocket)>,
    ) -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        let wakes = EventFd::from_flags(flags)?;
        let ready = EpollSet::new()?;
        ready.add(&wakes, WAKE)?;
        for (number, egress) in egresses {
            ready.add(&egress.socket, number.into())?;
        }
        Ok(Self {
            wakes,
            tokens: AtomicUsize::new(0),
            ready,
            waiting: AtomicUsize::new(0),
            fruitless: AtomicU32::new(0),
        })
    }

    /// A descriptor that is readable when an egress is, or when a wait is to end.
    pub(super) fn readiness(&self) -> io::Result<OwnedFd> {
        self.ready.try_clone()
    }

    /// Waits until an egress is readable, there is a token, or the timeout expires.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Ready, Errno> {
        let mut events = [EpollEvent::empty(); MAX_READY];
        let waits = !timeout.is_zero();
        if waits {
            self.waiting.fetch_add(1, SeqCst);
        }
        // No lock is held here: several threads may wait.
        let ready = self.ready.wait(&mut events, timeout);
        if waits {
            self.waiting.fetch_sub(1, SeqCst);
        }
        let count = match ready {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        let has_token = events[..count].iter().any(|event| event.data() == WAKE);
        // Threads that do not wait take no token: it would be that of a thread that does.
        let woken = has_token && (!waits || self.take_token());
        Ok(Ready { events, count, waits, woken })
    }

    /// Ends the waits of all threads that wait, and of one that is about to.
    pub(super) fn wake(&self) {
        // One more than the threads that wait: another may be about to wait, and must not miss the
        // wake-up because one of them took its token.
        let wanted = self.waiting.load(SeqCst) + 1;
        // No more than that: while threads poll without waiting, tokens would pile up, and each
        // costs an iteration of a loop later.
        let there = self.tokens.fetch_max(wanted, SeqCst);
        if let Some(more @ 1..) = wanted.checked_sub(there) {
            // This fails at 2^64 tokens, with which no thread sleeps.
            let _ = self.wakes.write(more as u64);
        }
    }

    fn take_token(&self) -> bool {
        // Subtracted before it is taken: a thread that adds tokens in between must not count on it.
        let one_less = |there: usize| there.checked_sub(1);
        if self.tokens.fetch_update(SeqCst, SeqCst, one_less).is_err() {
            return false;
        }
        let taken = self.wakes.read().is_ok();
        if !taken {
            self.tokens.fetch_add(1, SeqCst);
        }
        taken
    }

    /// Sleeps if sockets were ready too often in a row without a packet.
    pub(super) fn rest_if_fruitless(&self, fruitful: bool) {
        if fruitful {
            self.fruitless.store(0, Relaxed);
        } else if self.fruitless.fetch_add(1, Relaxed) >= MAX_FRUITLESS {
            thread::sleep(REST);
        }
    }

    /// Sleeps after an error that would recur at once.
    pub(super) fn rest() {
        thread::sleep(REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    fn poller() -> Poller {
        Poller::watch([]).unwrap()
    }

    #[test]
    fn a_wake_up_is_kept_for_a_thread_that_is_about_to_wait() {
        let poller = Arc::new(poller());
        let (woken, ends) = channel();
        let wait = || {
            let poller = poller.clone();
            let woken = woken.clone();
            thread::spawn(move || {
                poller.wait(Duration::from_secs(60)).unwrap();
                woken.send(()).unwrap();
            });
        };
        let ended = || ends.recv_timeout(Duration::from_secs(20)).is_ok();
        wait();
        while poller.waiting.load(SeqCst) == 0 {
            thread::yield_now();
        }
        poller.wake();
        assert!(ended(), "a thread that was waiting");
        poller.wait(Duration::ZERO).unwrap();
        wait();
        assert!(ended(), "a thread that waits from now on, and polled before");
    }

    #[test]
    fn wake_ups_without_a_waiting_thread_do_not_pile_up() {
        let poller = poller();
        (0..1_000).for_each(|_| poller.wake());
        assert!(poller.take_token());
        assert!(!poller.take_token() && poller.wakes.read().is_err());
        poller.wake();
        assert!(poller.take_token(), "and the next one counts");
    }
}
