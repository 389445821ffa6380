//! Aeolus' selective dropping: unscheduled packets are queued only while the queue is short (SIGCOMM 2020,
//! section 4.1).
//!
//! Commodity switches do it with RED at a single threshold on the instantaneous length: it drops packets that are
//! not ECN-capable, which are the unscheduled ones, the first window of a flow. All others are dropped only when
//! the buffer is full.

use super::{Next, PacketList, Queue};
use crate::engine::{Handle, Packets, Time, byte_time};

/// A FIFO with a lower limit for [`droppable`](crate::engine::Packet::droppable) packets.
#[derive(Debug)]
pub struct Aeolus {
    threshold: u64,
    limit: u64,
    /// Picoseconds per byte.
    byte: Time,
    waiting: PacketList,
    /// When the packet in service will have left.
    busy_until: Time,
}

impl Aeolus {
    /// The queue of a link of `rate` bits per second. It drops droppable packets that find `threshold` bytes or
    /// more queued, and all packets that do not fit into `limit` bytes. The paper's threshold is 6,000 bytes.
    pub const fn new(rate: u64, threshold: u64, limit: u64) -> Self {
        let byte = byte_time(rate);
        Self { threshold, limit, byte, waiting: PacketList::new(), busy_until: 0 }
    }
}

impl Queue for Aeolus {
    fn enqueue(&mut self, now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        let in_service = self.busy_until.saturating_sub(now).div_ceil(self.byte);
        let before = u64::from(self.waiting.bytes()) + in_service;
        let size = u64::from(packets[packet].size);
        let is_too_late = packets[packet].droppable && before >= self.threshold;
        if is_too_late || before + size > self.limit {
            return Some(packet);
        }
        self.waiting.push(packet, packets);
        None
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next {
        let Some(packet) = self.waiting.pop(packets) else {
            return Next::Idle;
        };
        self.busy_until = now + self.byte * Time::from(packets[packet].size);
        Next::Send(packet)
    }

    fn set_rate(&mut self, rate: u64) {
        self.byte = byte_time(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Packet;

    fn offer(queue: &mut Aeolus, packets: &mut Packets, now: Time, droppable: bool) -> bool {
        let packet = packets.insert(Packet { droppable, size: 1_500, ..Packet::default() });
        queue.enqueue(now, packet, packets).is_none()
    }

    #[test]
    fn droppable_packets_are_taken_below_the_threshold_and_others_below_the_limit() {
        let mut queue = Aeolus::new(10_000_000_000, 6_000, 9_000);
        let mut packets = Packets::new();
        let mut offer = |droppable| offer(&mut queue, &mut packets, 0, droppable);
        assert_eq!([true, true, false, true].map(&mut offer), [true; 4]);
        // 6,000 bytes are queued: no more droppable packets fit, but two others do.
        assert_eq!([true, false, true, false, false].map(offer), [false, true, false, true, false]);
    }

    #[test]
    fn bytes_of_the_packet_in_service_count_until_they_have_left() {
        let mut queue = Aeolus::new(10_000_000_000, 1_500, 9_000);
        let mut packets = Packets::new();
        assert!(offer(&mut queue, &mut packets, 0, true));
        assert!(matches!(queue.dequeue(0, &mut packets), Next::Send(_)));
        assert!(!offer(&mut queue, &mut packets, 0, true));
        assert!(offer(&mut queue, &mut packets, 800, true));
        // 750 bytes of the packet in service are left, and 1,500 wait.
        assert!(!offer(&mut queue, &mut packets, 600_000, true));
        assert!(offer(&mut queue, &mut packets, 600_000, false));
    }

    #[test]
    fn packets_leave_in_order_of_arrival() {
        let mut queue = Aeolus::new(10_000_000_000, 6_000, 9_000);
        let mut packets = Packets::new();
        for droppable in [true, false, true] {
            assert!(offer(&mut queue, &mut packets, 0, droppable));
        }
        let sent = [0; 3].map(|now| match queue.dequeue(now, &mut packets) {
            Next::Send(packet) => packets[packet].droppable,
            _ => panic!("packets wait"),
        });
        assert_eq!(sent, [true, false, true]);
    }
}
