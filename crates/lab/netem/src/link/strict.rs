//! Queues of several classes, served by strict priority.

use crate::queue::Depth;
use std::collections::VecDeque;

/// A queue for each class. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Strict {
    classes: Vec<VecDeque<Waiting>>,
    /// The class of the packet being sent, and when it will have left.
    in_service: usize,
    free_at: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    since: u64,
    packet: Vec<u8>,
}

impl Strict {
    pub(super) fn new(classes: usize) -> Self {
        Self { classes: vec![VecDeque::new(); classes], in_service: 0, free_at: 0 }
    }

    /// Changes the number of classes. The queues must be empty.
    pub(super) fn set_classes(&mut self, classes: usize) {
        self.classes.resize(classes, VecDeque::new());
        self.in_service = self.in_service.min(classes - 1);
    }

    /// Returns the number of waiting packets.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Returns when the next packet may be sent, or `None` while none waits.
    pub(super) fn next_at(&self) -> Option<u64> {
        (self.len() > 0).then_some(self.free_at)
    }

    /// Returns how long it takes to send the packets of a class that have not left at `now`.
    pub(super) fn backlog(&self, now: u64, class: usize, time: impl Fn(usize) -> u64) -> u64 {
        let waiting = self.classes[class].iter().map(|waiting| time(waiting.packet.len()));
        let left = self.left(now, class);
        waiting.fold(left, u64::saturating_add)
    }

    /// Queues a packet. Returns `false` if it does not fit.
    pub(super) fn push(
        &mut self,
        now: u64,
        class: usize,
        packet: &[u8],
        limit: Depth,
        time: impl Fn(usize) -> u64 + Copy,
    ) -> bool {
        let fits = match limit {
            Depth::Packets(limit) => {
                self.classes[class].len() + usize::from(self.left(now, class) > 0) < limit
            }
            Depth::Bytes(limit) => {
                self.backlog(now, class, time).saturating_add(time(packet.len())) <= time(limit)
            }
            Depth::Unlimited => true,
        };
        if fits {
            self.classes[class].push_back(Waiting { since: now, packet: packet.to_vec() });
        }
        fits
    }

    /// Sends the first packet of the first class that has any, if one may leave by `now`. Returns the time when its
    /// last bit has left, and the packet.
    ///
    /// Call it before and after each [`push`](Self::push): then all waiting packets were queued when the link became
    /// free.
    pub(super) fn pop(&mut self, now: u64, time: impl Fn(usize) -> u64) -> Option<(u64, Vec<u8>)> {
        if self.free_at > now {
            return None;
        }
        let class = self.classes.iter().position(|class| !class.is_empty())?;
        let Waiting { since, packet } = self.classes[class].pop_front()?;
        let ends = self.free_at.max(since).saturating_add(time(packet.len()));
        self.in_service = class;
        self.free_at = ends;
        Some((ends, packet))
    }

    /// Returns how much longer the packet being sent takes, if it is of this class.
    fn left(&self, now: u64, class: usize) -> u64 {
        if self.in_service == class { self.free_at.saturating_sub(now) } else { 0 }
    }
}
