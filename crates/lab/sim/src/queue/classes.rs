//! Queues by traffic class, for the disciplines with several classes.
//!
//! [`Packet::class`](crate::engine::Packet::class) selects the class; numbers beyond the last class select the
//! last. Disciplines differ in which class is served next: see [`Strict`](super::Strict) and
//! [`Weighted`](super::Weighted).

use super::shared::{Share, SharedBuffer};
use super::{Depth, PacketList};
use crate::engine::{Ecn, Handle, Packets, Time, byte_time};
use crate::fabric::Link;

/// The limit and the ECN threshold of a queue. The packet in service counts towards both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest length of the queue.
    pub limit: Depth,
    /// The ECN threshold: packets that find this much queued are marked.
    pub mark_at: Depth,
}

impl Limits {
    /// No limit and no marks.
    pub const NONE: Self = Self { limit: Depth::Unlimited, mark_at: Depth::Unlimited };

    /// A limit without marks.
    pub const fn new(limit: Depth) -> Self {
        Self { limit, mark_at: Depth::Unlimited }
    }

    /// A limit, with marks from `mark_at` on.
    pub const fn with_ecn(limit: Depth, mark_at: Depth) -> Self {
        Self { limit, mark_at }
    }
}

/// The queues of a port, by class.
#[derive(Debug)]
pub struct Classes {
    /// Picoseconds per byte.
    byte: Time,
    classes: Vec<ClassQueue>,
    port: Limits,
    /// The class and size of the packet in service.
    class_in_service: usize,
    size_in_service: u16,
    /// When it will have left.
    leaves_at: Time,
    share: Option<Share>,
}

#[derive(Debug)]
struct ClassQueue {
    limits: Limits,
    waiting: PacketList,
}

/// The length of a queue.
#[derive(Clone, Copy, Default)]
struct Backlog {
    packets: usize,
    /// How long its bytes take to leave.
    time: Time,
}

impl Classes {
    /// A class for each of `limits`, at a port with this link.
    pub fn new(link: Link, limits: &[Limits]) -> Self {
        let class = |&limits| ClassQueue { limits, waiting: PacketList::new() };
        Self {
            byte: byte_time(link.rate),
            classes: limits.iter().map(class).collect(),
            port: Limits::NONE,
            class_in_service: 0,
            size_in_service: 0,
            leaves_at: 0,
            share: None,
        }
    }

    /// Adds limits for all classes together.
    #[must_use]
    pub fn with_port(self, port: Limits) -> Self {
        Self { port, ..self }
    }

    /// Draws memory from a buffer shared with other ports. In addition, each class has a reserve of `reserve` bytes.
    #[must_use]
    pub fn with_buffer(self, buffer: &SharedBuffer, reserve: u64) -> Self {
        let share = Share::new(buffer, reserve, self.classes.len());
        Self { share: Some(share), ..self }
    }

    /// The link now has `rate` bits per second. The packet in service leaves as if the rate had not changed.
    pub(super) const fn set_rate(&mut self, rate: u64) {
        self.byte = byte_time(rate);
    }

    /// The number of classes.
    pub(super) const fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether packets of a class wait.
    pub(super) fn waits(&self, class: usize) -> bool {
        !self.classes[class].waiting.is_empty()
    }

    /// Queues a packet. Returns it if it does not fit.
    pub(super) fn push(
        &mut self,
        now: Time,
        handle: Handle,
        packets: &mut Packets,
    ) -> Option<Handle> {
        self.settle(now);
        let packet = &mut packets[handle];
        let class = usize::from(packet.class).min(self.classes.len() - 1);
        let needed = self.byte * Time::from(packet.size);
        let own = self.backlog(class, now);
        let all = self.total(now);
        let limits = self.classes[class].limits;
        if !self.fits(limits.limit, own, needed) || !self.fits(self.port.limit, all, needed) {
            return Some(handle);
        }
        if let Some(share) = &mut self.share
            && !share.take(class, packet.size)
        {
            return Some(handle);
        }
        let is_marked = self.reaches(limits.mark_at, own) || self.reaches(self.port.mark_at, all);
        if is_marked && packet.ecn == Ecn::Capable {
            packet.ecn = Ecn::Marked;
        }
        self.classes[class].waiting.push(handle, packets);
        None
    }

    /// Serves the first packet of a class. The previous packet must have been [settled](Self::settle).
    pub(super) fn pop(&mut self, now: Time, class: usize, packets: &mut Packets) -> Option<Handle> {
        let handle = self.classes[class].waiting.pop(packets)?;
        self.class_in_service = class;
        self.size_in_service = packets[handle].size;
        self.leaves_at = now + self.byte * Time::from(self.size_in_service);
        Some(handle)
    }

    /// Releases the memory of the packet in service once it has left.
    pub(super) fn settle(&mut self, now: Time) {
        if self.leaves_at <= now {
            let size = core::mem::take(&mut self.size_in_service);
            if let Some(share) = &mut self.share {
                share.give_back(self.class_in_service, size);
            }
        }
    }

    fn backlog(&self, class: usize, now: Time) -> Backlog {
        let waiting = &self.classes[class].waiting;
        let mut backlog = Backlog {
            packets: waiting.packets() as usize,
            time: self.byte * Time::from(waiting.bytes()),
        };
        if class == self.class_in_service && self.leaves_at > now {
            backlog.packets += 1;
            backlog.time += self.leaves_at - now;
        }
        backlog
    }

    fn total(&self, now: Time) -> Backlog {
        if self.port == Limits::NONE {
            return Backlog::default();
        }
        (0..self.classes.len()).fold(Backlog::default(), |sum, class| {
            let Backlog { packets, time } = self.backlog(class, now);
            Backlog { packets: sum.packets + packets, time: sum.time + time }
        })
    }

    fn fits(&self, limit: Depth, backlog: Backlog, needed: Time) -> bool {
        match limit {
            Depth::Packets(limit) => backlog.packets < limit,
            Depth::Bytes(limit) => backlog.time + needed <= self.byte * limit as Time,
            Depth::Unlimited => true,
        }
    }

    fn reaches(&self, threshold: Depth, backlog: Backlog) -> bool {
        match threshold {
            Depth::Packets(threshold) => backlog.packets >= threshold,
            Depth::Bytes(threshold) => backlog.time >= self.byte * threshold as Time,
            Depth::Unlimited => false,
        }
    }
}
