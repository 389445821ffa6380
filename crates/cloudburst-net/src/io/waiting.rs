//! Waits until sockets have something, and ends the waits of others.

use super::epoll::Readiness;
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

/// Egresses that one wait reports at most; the others' turn is next.
const MAX_READY: usize = 16;
/// What a wait reports for a token.
const WAKE: u64 = u64::MAX;
/// Times in a row that sockets may be ready without a packet before they get a rest.
const MAX_FRUITLESS: u32 = 16;
const REST: Duration = Duration::from_millis(1);

/// What waits for all egresses and for tokens. Its cost does not depend on how many there are.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Counts tokens: each ends the wait of one thread.
    wakes: EventFd,
    /// How many there are, or are about to be.
    tokens: AtomicUsize,
    /// Tells which egresses have something, and of tokens.
    ready: Readiness,
    /// Threads that are waiting.
    waiting: AtomicUsize,
    /// How often in a row sockets were ready and had nothing.
    fruitless: AtomicU32,
}

/// What a wait ended with.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{io::Ready, io::UdpIo};
/// # use cloudburst_core::burst::PacketIo;
/// # use std::time::Duration;
/// /// Counts the bytes that arrive within a millisecond.
/// fn count(io: &UdpIo) -> usize {
///     let ready: Ready = io.wait(Duration::from_millis(1));
///     let mut count = 0;
///     io.take(ready, &mut |datagrams| count += datagrams.bytes.len());
///     count
/// }
/// ```
#[derive(Debug)]
pub struct Ready {
    events: [EpollEvent; MAX_READY],
    count: usize,
    /// Whether a thread that looked for packets would have waited.
    pub(super) waits: bool,
    /// A token ended it, or there is one for another thread.
    pub(super) woken: bool,
}

impl Ready {
    pub(super) fn nothing(waits: bool) -> Self {
        Self { events: [EpollEvent::empty(); MAX_READY], count: 0, waits, woken: false }
    }

    /// Nothing happened before the time was over.
    pub(super) const fn is_nothing(&self) -> bool {
        self.count == 0
    }

    /// Whether it reports as many events as it can: there may be more.
    pub(super) const fn is_full(&self) -> bool {
        self.count == MAX_READY
    }

    /// The numbers of the egresses that are ready, and whether it may be for an error.
    pub(super) fn egresses(&self) -> impl Iterator<Item = (u16, bool)> {
        let egresses = self.events[..self.count].iter().filter(|event| event.data() != WAKE);
        let failed = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        egresses.map(move |event| (event.data() as u16, event.events().intersects(failed)))
    }
}

impl Waiter {
    pub(super) fn watch<'a>(
        egresses: impl IntoIterator<Item = (u16, &'a EgressSocket)>,
    ) -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        let wakes = EventFd::from_flags(flags)?;
        let ready = Readiness::new()?;
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

    /// Readable when an egress has something, or when a wait is to end.
    pub(super) fn readiness(&self) -> io::Result<OwnedFd> {
        self.ready.try_clone()
    }

    /// Waits until an egress has something, a token is there, or the time is over.
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
        let told = events[..count].iter().any(|event| event.data() == WAKE);
        // Not for threads that do not wait: they would take the token of one that does.
        let woken = told && (!waits || self.take_token());
        Ok(Ready { events, count, waits, woken })
    }

    /// Ends the waits of all threads that wait, and of one that is about to.
    pub(super) fn wake(&self) {
        // One more than are waiting: another may be about to, and must not miss it because one of
        // them took its token.
        let wanted = self.waiting.load(SeqCst) + 1;
        // No more than that: while all threads look without waiting, tokens would pile up, and each
        // costs a turn of a loop later.
        let there = self.tokens.fetch_max(wanted, SeqCst);
        if let Some(more @ 1..) = wanted.checked_sub(there) {
            // It fails at 2^64 tokens, with which no thread sleeps.
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

    /// Gives sockets a rest that were ready too often without a packet.
    pub(super) fn rest_if_fruitless(&self, fruitful: bool) {
        if fruitful {
            self.fruitless.store(0, Relaxed);
        } else if self.fruitless.fetch_add(1, Relaxed) >= MAX_FRUITLESS {
            thread::sleep(REST);
        }
    }

    /// Lets everything rest, as trying again at once would not help.
    pub(super) fn rest() {
        thread::sleep(REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    fn waiter() -> Waiter {
        Waiter::watch([]).unwrap()
    }

    #[test]
    fn a_wake_up_is_kept_for_whoever_is_about_to_wait() {
        let waiter = Arc::new(waiter());
        let (woken, ends) = channel();
        let wait = || {
            let (waiter, woken) = (waiter.clone(), woken.clone());
            thread::spawn(move || {
                waiter.wait(Duration::from_secs(60)).unwrap();
                woken.send(()).unwrap();
            });
        };
        let ended = || ends.recv_timeout(Duration::from_secs(20)).is_ok();
        wait();
        while waiter.waiting.load(SeqCst) == 0 {
            thread::yield_now();
        }
        waiter.wake();
        assert!(ended(), "who was waiting");
        waiter.wait(Duration::ZERO).unwrap();
        wait();
        assert!(ended(), "who waits from now on, and looked for packets before");
    }

    #[test]
    fn wake_ups_that_nobody_waits_for_do_not_pile_up() {
        let waiter = waiter();
        (0..1_000).for_each(|_| waiter.wake());
        assert!(waiter.take_token());
        assert!(!waiter.take_token() && waiter.wakes.read().is_err());
        waiter.wake();
        assert!(waiter.take_token(), "and the next one counts");
    }
}
