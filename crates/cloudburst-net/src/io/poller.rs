//! Waits until sockets are readable or a timer expires, and ends the waits of other threads.

use super::changes::Changes;
use super::filter::pass;
use super::socket::EgressSocket;
use crate::error::BuildError;
use core::time::Duration;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;

/// The most egresses that one wait reports; the next wait reports the others.
const MAX_READY: usize = 16;
/// The data of the event for a wake-up.
const WAKE: u64 = u64::MAX;
/// The data of the event for the timer.
const TIMER: u64 = u64::MAX - 1;
/// The data of the event for changes of this host's addresses.
const CHANGES: u64 = u64::MAX - 2;
/// How often in a row sockets may be ready without a packet before the thread sleeps.
const MAX_FRUITLESS: u32 = 16;
const REST: Duration = Duration::from_millis(1);
/// Ten years.
const FAR: Duration = Duration::from_secs(315_576_000);

/// Waits for all egresses, the timer and wake-ups. The cost of a wait does not depend on their number.
#[derive(Debug)]
pub(super) struct Poller {
    wakes: EventFd,
    // Part of the set, so that a task can wait for everything by one descriptor, and exact whatever the
    // timer slack of the thread that waits.
    timer: TimerFd,
    /// Reports readable egresses, wake-ups, and that the timer has expired: the latter once.
    ready: Epoll,
    /// Reports changes of this host's addresses.
    changes: Option<Changes>,
    /// Whether there were any since the last call of [`has_moved`](Self::has_moved).
    moved: AtomicBool,
    /// How often in a row sockets were ready without a packet.
    fruitless: AtomicU32,
}

/// The result of a wait.
#[derive(Debug)]
pub struct Ready {
    events: [EpollEvent; MAX_READY],
    count: usize,
}

impl Ready {
    pub(super) fn nothing() -> Self {
        Self { events: [EpollEvent::empty(); MAX_READY], count: 0 }
    }

    /// Whether it reports as many events as it can: there may be more.
    pub(super) const fn is_full(&self) -> bool {
        self.count == MAX_READY
    }

    /// The numbers of the egresses that are ready, and whether an error may be the reason.
    pub(super) fn egresses(&self) -> impl Iterator<Item = (u16, bool)> {
        let failed = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        self.events[..self.count].iter().filter_map(move |event| {
            let number = u16::try_from(event.data()).ok()?;
            Some((number, event.events().intersects(failed)))
        })
    }
}

impl Poller {
    pub(super) fn watch_egresses<'a>(
        egresses: impl IntoIterator<Item = (u16, &'a EgressSocket)>,
    ) -> Result<Self, BuildError> {
        let wakes = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(BuildError::refused("eventfd2"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)
            .map_err(BuildError::refused("timerfd_create"))?;
        timer.unset().map_err(BuildError::refused("timerfd_settime"))?;
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(BuildError::refused("epoll_create1"))?;
        let add = |socket: BorrowedFd<'_>, event| {
            ready.add(socket, event).map_err(BuildError::refused("epoll_ctl"))
        };
        add(wakes.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
        // Edge-triggered, so that nobody has to read it.
        let once = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        add(timer.as_fd(), EpollEvent::new(once, TIMER))?;
        for (number, egress) in egresses {
            add(egress.socket.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, number.into()))?;
        }
        let waited = ready.wait(&mut [], EpollTimeout::ZERO);
        pass(waited, if cfg!(target_arch = "x86_64") { "epoll_wait" } else { "epoll_pwait" })?;
        let fruitless = AtomicU32::new(0);
        Ok(Self { wakes, timer, ready, changes: None, moved: AtomicBool::new(false), fruitless })
    }

    /// Watches the addresses of this host as well, if the system lets it.
    pub(super) fn watch_addresses(&mut self) -> Result<(), BuildError> {
        if let Some(changes) = Changes::open() {
            let added = self.ready.add(&changes, EpollEvent::new(EpollFlags::EPOLLIN, CHANGES));
            added.map_err(BuildError::refused("epoll_ctl"))?;
            self.changes = Some(changes);
        }
        Ok(())
    }

    /// Whether addresses of this host have changed since the last call.
    pub(super) fn has_moved(&self) -> bool {
        self.moved.load(Relaxed) && self.moved.swap(false, Relaxed)
    }

    /// A descriptor that is readable when a wait would end.
    pub(super) fn readiness(&self) -> io::Result<OwnedFd> {
        self.ready.0.try_clone()
    }

    /// Waits until an egress is readable, the timer expires, there is a wake-up, or the timeout
    /// expires, up to a millisecond late. What must be exact is left to the timer.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Ready, Errno> {
        let mut events = [EpollEvent::empty(); MAX_READY];
        let count = match self.ready.wait(&mut events, in_milliseconds(timeout)) {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        if events[..count].iter().any(|event| event.data() == WAKE) {
            // It was readable, and only one thread waits.
            let _ = self.wakes.read();
        }
        if events[..count].iter().any(|event| event.data() == CHANGES)
            && self.changes.as_ref().is_some_and(Changes::read)
        {
            self.moved.store(true, Relaxed);
        }
        Ok(Ready { events, count })
    }

    /// Ends a wait under way, or the next one.
    pub(super) fn wake(&self) {
        // This fails at 2^64 wake-ups, with which no thread sleeps.
        let _ = self.wakes.write(1);
    }

    /// Sets the timer to expire in `left`, or never.
    pub(super) fn set_timer(&self, left: Option<Duration>) {
        let set = match left {
            // Zero would mean never, and some times are out of range.
            Some(left) => self.timer.set(
                Expiration::OneShot(left.clamp(Duration::from_nanos(1), FAR).into()),
                TimerSetTimeFlags::empty(),
            ),
            None => self.timer.unset(),
        };
        debug_assert_eq!(set, Ok(()), "the time is valid");
    }

    /// Whether a wait would end at once.
    pub(super) fn is_ready(&self) -> bool {
        Self::poll(self.ready.0.as_fd(), PollTimeout::ZERO)
    }

    /// Returns when a wait would end at once.
    pub(super) fn watch(&self) {
        Self::poll(self.ready.0.as_fd(), PollTimeout::NONE);
    }

    /// Returns when the timer has expired and was not set since.
    pub(super) fn watch_timer(&self) {
        Self::poll(self.timer.as_fd(), PollTimeout::NONE);
    }

    fn poll(descriptor: BorrowedFd<'_>, timeout: PollTimeout) -> bool {
        match poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], timeout) {
            Ok(ready) => ready > 0,
            Err(Errno::EINTR) => false,
            Err(_) => {
                Self::rest();
                false
            }
        }
    }

    /// Sleeps if sockets were ready too often in a row without a packet. Returns whether that has just begun.
    pub(super) fn rest_if_fruitless(&self, fruitful: bool) -> bool {
        if fruitful {
            self.fruitless.store(0, Relaxed);
            return false;
        }
        let before = self.fruitless.fetch_add(1, Relaxed);
        if before >= MAX_FRUITLESS {
            thread::sleep(REST);
        }
        before == MAX_FRUITLESS
    }

    /// Sleeps after an error that would recur at once.
    pub(super) fn rest() {
        thread::sleep(REST);
    }
}

/// Rounded up: a wait that ends early would be repeated at once.
fn in_milliseconds(timeout: Duration) -> EpollTimeout {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_milliseconds() {
        for (timeout, millis) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(1_000), 1),
            (Duration::from_micros(1_001), 2),
        ] {
            assert_eq!(in_milliseconds(timeout), EpollTimeout::from(millis as u8));
        }
        assert_eq!(in_milliseconds(Duration::MAX), EpollTimeout::MAX);
    }

    fn poller() -> Poller {
        Poller::watch_egresses([]).unwrap()
    }

    #[test]
    fn a_wake_up_ends_one_wait_also_if_it_comes_before() {
        let poller = poller();
        assert!(!poller.is_ready());
        poller.wake();
        poller.wake();
        poller.watch();
        poller.wait(Duration::MAX).unwrap();
        assert!(!poller.is_ready(), "two wake-ups before one wait are as good as one");
        thread::scope(|scope| {
            let waits = scope.spawn(|| poller.wait(Duration::MAX).unwrap());
            poller.wake();
            waits.join().unwrap();
        });
    }

    #[test]
    fn the_timer_ends_one_wait_and_is_readable_until_it_is_set() {
        let poller = poller();
        for left in [Duration::ZERO, Duration::from_micros(10)] {
            poller.set_timer(Some(left));
            poller.watch();
            poller.watch_timer();
            assert_eq!(poller.wait(Duration::MAX).unwrap().egresses().count(), 0);
            assert!(!poller.is_ready(), "a wait uses it up");
            poller.watch_timer();
            for never in [Some(Duration::from_secs(1_000)), None] {
                poller.set_timer(never);
                assert!(!Poller::poll(poller.timer.as_fd(), PollTimeout::ZERO));
            }
        }
        poller.set_timer(Some(Duration::ZERO));
        poller.watch();
        poller.set_timer(None);
        assert!(!poller.is_ready(), "what has expired can be taken back");
        poller.set_timer(Some(Duration::MAX));
        assert!(!poller.is_ready());
    }
}
