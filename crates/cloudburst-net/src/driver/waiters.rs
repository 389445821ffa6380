//! Senders that wait for room for their messages.

use super::process::Process;
use cloudburst_core::burst::contain;
use core::future::poll_fn;
use core::ops::Bound;
use core::task::{Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many senders are woken when room becomes free. More than one, because a future that is woken may never
/// be polled.
// One would do if it were polled. A future that is kept and not polled, as in a loop around
// `select!`, takes the wake-up, and the others would sleep until their deadlines; to wake all would
// give up the order of arrival.
const AT_ONCE: usize = 8;

/// Senders that wait for room, in order of arrival.
///
/// When room becomes free, the first of them are woken. If the room is too small for one, the next
/// one tries, and so on: a message that fits does not wait behind one that does not.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    waker: Option<Waker>,
    woken: bool,
}

/// A place in the queue, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    number: u64,
    process: Process,
}

impl Room {
    /// Offers the room that is free to the senders that have waited longest.
    pub(crate) fn left(&self) {
        self.wake_next(Bound::Unbounded, AT_ONCE);
    }

    /// Lets all senders try at once: the endpoint is closing.
    pub(crate) fn wake_all(&self) {
        self.wake_next(Bound::Unbounded, usize::MAX);
    }

    pub(crate) fn enter(self: &Arc<Self>, process: Process) -> Place {
        let mut waiters = self.lock();
        let number = waiters.next;
        waiters.next += 1;
        waiters.waiting.insert(number, Waiting::default());
        Place { room: self.clone(), number, process }
    }

    fn wake_next(&self, after: Bound<u64>, most: usize) {
        let mut waiters = self.lock();
        let after = waiters.waiting.range_mut((after, Bound::Unbounded)).map(|(_, next)| next);
        let wake = |next: &mut Waiting| {
            next.woken = true;
            next.waker.take()
        };
        let wakers: Vec<Waker> =
            after.filter(|next| !next.woken).take(most).filter_map(wake).collect();
        // Without the lock: a waker may run the task that it wakes.
        drop(waiters);
        wakers.into_iter().for_each(|waker| contain(|| waker.wake()));
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Offers the room, which was too small for this sender, to the next one, and waits for more.
    /// Does not wait in a fork, where no room becomes free.
    pub(crate) async fn pass(&self) {
        if self.process.check().is_ok() {
            // There is not enough room for this sender, but perhaps for the next: without passing
            // it on, a send that would have fitted waited 5.9 s instead of 0.3.
            self.room.wake_next(Bound::Excluded(self.number), 1);
        }
        poll_fn(|context| {
            if self.process.check().is_err() {
                return Poll::Ready(());
            }
            // Cloned and dropped without the lock: a waker may own anything, even another place.
            let waker = context.waker().clone();
            let mut waiters = self.room.lock();
            let Some(waiting) = waiters.waiting.get_mut(&self.number) else {
                return Poll::Ready(());
            };
            if core::mem::take(&mut waiting.woken) {
                return Poll::Ready(());
            }
            let replaced = waiting.waker.replace(waker);
            drop(waiters);
            drop(replaced);
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.process.check().is_err() {
            // The thread that held the lock at the fork does not exist here.
            return;
        }
        let waited = self.room.lock().waiting.remove(&self.number);
        // Without the lock, as in `pass`.
        drop(waited);
        // The sender has its room, or no longer needs it: there may be room for others.
        self.room.left();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::Future;
    use core::pin::{Pin, pin};
    use core::task::Context;

    fn is_woken(pass: &mut Pin<&mut impl Future<Output = ()>>) -> bool {
        pass.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn room_that_is_too_small_for_the_first_is_offered_to_the_next() {
        let room = Arc::new(Room::default());
        let first = room.enter(Process::this());
        let mut one = pin!(first.pass());
        assert!(!is_woken(&mut one));
        let second = room.enter(Process::this());
        let mut two = pin!(second.pass());
        assert!(!is_woken(&mut two));
        room.left();
        assert!(is_woken(&mut one));
        let mut again = pin!(first.pass());
        assert!(!is_woken(&mut again), "it has tried");
        assert!(is_woken(&mut two));
        room.left();
        assert!(is_woken(&mut again), "and is the first again");
    }

    #[test]
    fn whoever_is_not_polled_holds_up_nobody() {
        let room = Arc::new(Room::default());
        let first = room.enter(Process::this());
        assert!(!is_woken(&mut pin!(first.pass())));
        let second = room.enter(Process::this());
        let mut two = pin!(second.pass());
        assert!(!is_woken(&mut two));
        room.left();
        assert!(is_woken(&mut two), "although the first does not try");
    }

    #[test]
    fn room_that_is_left_before_anybody_sleeps_is_not_lost() {
        let room = Arc::new(Room::default());
        let place = room.enter(Process::this());
        room.left();
        assert!(is_woken(&mut pin!(place.pass())));
    }

    #[test]
    fn whoever_leaves_makes_way() {
        let room = Arc::new(Room::default());
        let (first, second) = (room.enter(Process::this()), room.enter(Process::this()));
        let mut two = pin!(second.pass());
        assert!(!is_woken(&mut two));
        drop(first);
        assert!(is_woken(&mut two));
        let third = room.enter(Process::this());
        let mut three = pin!(third.pass());
        assert!(!is_woken(&mut three));
        room.wake_all();
        assert!(is_woken(&mut three));
    }
}
