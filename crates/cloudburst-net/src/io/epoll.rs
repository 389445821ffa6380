//! Waits for many descriptors at once, to the nanosecond if the system supports it.

use core::time::Duration;
use nix::errno::Errno;
use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A set of descriptors, of which it reports those that are readable.
#[derive(Debug)]
pub(super) struct EpollSet {
    epoll: Epoll,
    /// Whether the system has `epoll_pwait2` (Linux 5.11), as far as is known.
    // A wait that is rounded up to a millisecond lasts many round trips: waits of 100 us end 943 us
    // late in the median, and 21 us late with nanoseconds.
    is_exact: AtomicBool,
}

/// `struct __kernel_timespec`, whose fields have 64 bits on all architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

impl From<Duration> for Timespec {
    fn from(time: Duration) -> Self {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Self { seconds, nanoseconds: time.subsec_nanos().into() }
    }
}

impl EpollSet {
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, is_exact: AtomicBool::new(true) })
    }

    /// Adds a descriptor: a wait ends on `events`, and its event carries `data`.
    pub(super) fn add(
        &self,
        descriptor: impl AsFd,
        data: u64,
        events: EpollFlags,
    ) -> Result<(), Errno> {
        self.epoll.add(descriptor, EpollEvent::new(events, data))
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Returns another descriptor of this set, which is readable when any descriptor of the set is.
    pub(super) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.epoll.0.try_clone()
    }

    /// Waits until one of the descriptors is readable, for at most `timeout`. Returns the number of
    /// events. If the system counts in milliseconds, the time is rounded up.
    pub(super) fn wait(
        &self,
        events: &mut [EpollEvent],
        timeout: Duration,
    ) -> Result<usize, Errno> {
        if self.is_exact.load(Relaxed)
            && let Some(waited) = self.unless_missing(self.wait_exactly(events, timeout))
        {
            return waited;
        }
        self.epoll.wait(events, in_milliseconds(timeout))
    }

    /// The result of the exact wait; `None` if the system has no such call, which is then not tried
    /// again. Sandboxes that do not know the call return EPERM instead of ENOSYS.
    fn unless_missing(&self, waited: Result<usize, Errno>) -> Option<Result<usize, Errno>> {
        if let Err(Errno::ENOSYS | Errno::EPERM) = waited {
            self.is_exact.store(false, Relaxed);
            return None;
        }
        Some(waited)
    }

    #[allow(unsafe_code, reason = "the system call has no safe form")]
    fn wait_exactly(&self, events: &mut [EpollEvent], timeout: Duration) -> Result<usize, Errno> {
        let timeout = Timespec::from(timeout);
        let capacity = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the descriptor is open as long as `self` is. `events` is writable for `capacity`
        // events, and `EpollEvent` is a transparent `epoll_event`, any bits of which are valid.
        // `timeout` outlives the call and has the layout that the system wants. Without a signal
        // mask, its size is ignored.
        let waited = unsafe {
            libc::syscall(
                // By number: neither `nix` nor glibc before 2.35 has the call.
                libc::SYS_epoll_pwait2,
                self.epoll.0.as_raw_fd(),
                events.as_mut_ptr().cast::<libc::epoll_event>(),
                capacity,
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        Errno::result(waited).map(|count| count as usize)
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
    use nix::sys::eventfd::{EfdFlags, EventFd};

    #[test]
    fn a_wait_is_not_rounded_where_the_system_counts_in_nanoseconds() {
        for (timeout, seconds, nanoseconds) in [
            (Duration::ZERO, 0, 0),
            (Duration::from_nanos(1), 0, 1),
            (Duration::from_micros(100), 0, 100_000),
            (Duration::new(3, 999_999_999), 3, 999_999_999),
            (Duration::MAX, i64::MAX, 999_999_999),
        ] {
            assert_eq!(Timespec::from(timeout), Timespec { seconds, nanoseconds });
        }
    }

    #[test]
    fn a_wait_is_rounded_up_where_it_counts_in_milliseconds() {
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

    #[test]
    fn waits_end_alike_with_and_without_epoll_pwait2() {
        let set = EpollSet::new().unwrap();
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        set.add(&event, 7, EpollFlags::EPOLLIN).unwrap();
        let ends = || {
            let mut events = [EpollEvent::empty(); 4];
            assert_eq!(set.wait(&mut events, Duration::ZERO), Ok(0));
            assert_eq!(set.wait(&mut events, Duration::from_nanos(1)), Ok(0));
            event.write(1).unwrap();
            assert_eq!(set.wait(&mut events, Duration::MAX), Ok(1));
            assert_eq!((events[0].data(), events[0].events()), (7, EpollFlags::EPOLLIN));
            event.read().unwrap();
        };
        ends();
        for waited in [Ok(0), Ok(1), Err(Errno::EINTR)] {
            assert_eq!(set.unless_missing(waited), Some(waited));
        }
        for missing in [Errno::ENOSYS, Errno::EPERM] {
            set.is_exact.store(true, Relaxed);
            assert_eq!(set.unless_missing(Err(missing)), None);
            assert!(!set.is_exact.load(Relaxed), "it is not tried again");
            ends();
        }
    }
}
