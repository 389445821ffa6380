//! Queue disciplines: one file for each.
//!
//! | file | discipline | source |
//! |---|---|---|
//! | `cloudburst_netem::queue` | drop-tail FIFO with an ECN threshold on the instantaneous length | DCTCP, SIGCOMM 2010 |
//! | [`strict`] | strict priority between classes, with limits and ECN thresholds per class or port | PIAS, NSDI 2015 |
//! | [`weighted`] | weighted round robin between classes | |
//! | [`shared`] | shared buffer memory of a switch, with dynamic thresholds | Choudhury and Hahne, ToN 1998 |
//! | [`pfabric`] | most urgent flow first, least urgent packet dropped | pFabric, SIGCOMM 2013, 4.1 |
//! | [`credit`] | rate-limited credits beside data | ExpressPass, SIGCOMM 2017, 3.1 |
//! | [`trimming`] | packet trimming with a header queue | NDP, SIGCOMM 2017, 3.1 |
//! | [`aeolus`] | selective dropping of unscheduled packets | Aeolus, SIGCOMM 2020, 4.1 |
//!
//! A new discipline is one new file that implements [`Queue`].
//!
//! # In service
//!
//! The packet in service counts towards limits and thresholds. Limits in bytes count those of its bytes that have
//! not left.

pub mod aeolus;
mod classes;
pub mod credit;
pub mod pfabric;
pub mod shared;
pub mod strict;
pub mod trimming;
pub mod weighted;

pub use aeolus::Aeolus;
pub use classes::{Classes, Limits};
pub use cloudburst_netem::queue::{Depth, DropTail};
pub use credit::{CreditConfig, CreditQueue};
pub use pfabric::PFabricQueue;
pub use shared::SharedBuffer;
pub use strict::Strict;
pub use trimming::{Trimming, TrimmingConfig};
pub use weighted::Weighted;

use crate::engine::{Handle, NONE, Packets, Time};
use core::fmt::Debug;

/// A queue discipline: which packets wait at a port, which is sent next, and which are dropped.
///
/// A drop-tail FIFO does not need it ([`DropTail`]): the departure of its packets is known as soon as they arrive.
pub trait Queue: Debug {
    /// Queues `packet`. Returns the packet dropped instead, if any: this one or another.
    fn enqueue(&mut self, now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle>;

    /// The next packet to send. The link is idle: the previous packet has left.
    ///
    /// Called when a packet has left, even if none waits, when a packet has been queued at an idle port, and at the
    /// time of a [`Next::Wait`].
    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next;

    /// The link now has `rate` bits per second. Disciplines that count packets only ignore it.
    fn set_rate(&mut self, _rate: u64) {}
}

/// What an idle port does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this packet.
    Send(Handle),
    /// Wait: no packet may leave before this time.
    Wait(Time),
    /// Stay idle: the queue is empty.
    Idle,
}

/// The discipline of a port.
#[derive(Debug)]
pub enum Discipline {
    /// A drop-tail FIFO.
    DropTail(DropTail),
    /// Any other.
    Scheduled(Box<dyn Queue>),
}

impl From<DropTail> for Discipline {
    fn from(queue: DropTail) -> Self {
        Self::DropTail(queue)
    }
}

impl<Q: Queue + 'static> From<Q> for Discipline {
    fn from(queue: Q) -> Self {
        Self::Scheduled(Box::new(queue))
    }
}

/// A FIFO list of packets, linked through their slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketList {
    head: Handle,
    tail: Handle,
    packets: u32,
    bytes: u32,
}

impl PacketList {
    pub(crate) const fn new() -> Self {
        Self { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, packet: Handle, packets: &mut Packets) {
        packets[packet].link = NONE;
        if self.tail == NONE {
            self.head = packet;
        } else {
            packets[self.tail].link = packet;
        }
        self.tail = packet;
        self.packets += 1;
        self.bytes += u32::from(packets[packet].size);
    }

    pub(crate) fn pop(&mut self, packets: &mut Packets) -> Option<Handle> {
        let packet = self.head;
        if packet == NONE {
            return None;
        }
        self.head = core::mem::replace(&mut packets[packet].link, NONE);
        if self.head == NONE {
            self.tail = NONE;
        }
        self.packets -= 1;
        self.bytes -= u32::from(packets[packet].size);
        Some(packet)
    }

    pub(crate) const fn packets(&self) -> u32 {
        self.packets
    }

    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The packet that [`pop`](Self::pop) would return.
    pub(crate) const fn first(&self) -> Option<Handle> {
        if self.head == NONE { None } else { Some(self.head) }
    }
}
