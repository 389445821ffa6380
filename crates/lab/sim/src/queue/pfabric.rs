//! pFabric's queue: priority scheduling and priority dropping (SIGCOMM 2013, section 4.1).
//!
//! A packet's priority is [`Packet::remaining`]; the smallest is the most urgent. Acknowledgements and probes, with
//! nothing remaining, precede all data.

use super::{Next, Queue};
use crate::engine::{Handle, Packet, Packets, Time};

/// A short queue: two bandwidth-delay products in the paper.
#[derive(Debug)]
pub struct PFabricQueue {
    limit: usize,
    /// In the order of arrival. There are few, so scanning all is fast.
    waiting: Vec<Entry>,
    is_sending: bool,
}

/// A packet with its priority, so that a scan touches a few cache lines instead of all packets.
#[derive(Clone, Copy, Debug)]
struct Entry {
    remaining: u32,
    flow: u32,
    packet: Handle,
}

impl PFabricQueue {
    /// A queue of `limit` packets, the one in service included.
    pub fn new(limit: usize) -> Self {
        Self { limit, waiting: Vec::with_capacity(limit + 1), is_sending: false }
    }
}

impl Queue for PFabricQueue {
    fn enqueue(&mut self, _now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        let &Packet { remaining, flow, .. } = &packets[packet];
        self.waiting.push(Entry { remaining, flow, packet });
        if self.waiting.len() + usize::from(self.is_sending) <= self.limit {
            return None;
        }
        // Drop the latest of the least urgent packets.
        let mut worst = 0;
        let mut most = 0;
        for (place, entry) in self.waiting.iter().enumerate() {
            if entry.remaining >= most {
                worst = place;
                most = entry.remaining;
            }
        }
        Some(self.waiting.remove(worst).packet)
    }

    fn dequeue(&mut self, _now: Time, _packets: &mut Packets) -> Next {
        let Some(urgent) = self.waiting.iter().min_by_key(|entry| entry.remaining) else {
            self.is_sending = false;
            return Next::Idle;
        };
        // Send the earliest packet of the most urgent packet's flow. Earlier packets of a flow have more bytes
        // remaining than later ones, and would starve behind them.
        let flow = urgent.flow;
        let first = self.waiting.iter().position(|entry| entry.flow == flow).unwrap_or(0);
        self.is_sending = true;
        Next::Send(self.waiting.remove(first).packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(
        queue: &mut PFabricQueue,
        packets: &mut Packets,
        flow: u32,
        remaining: u32,
    ) -> (Handle, Option<Handle>) {
        let packet = packets.insert(Packet { flow, remaining, ..Packet::default() });
        (packet, queue.enqueue(0, packet, packets))
    }

    #[test]
    fn the_earliest_packet_of_the_most_urgent_flow_is_sent() {
        let mut queue = PFabricQueue::new(10);
        let mut packets = Packets::new();
        let mut add = |flow, remaining| offer(&mut queue, &mut packets, flow, remaining).0;
        let long = add(1, 9_000);
        let early = add(2, 3_000);
        let late = add(2, 1_500);
        let middle = add(3, 2_000);
        let acknowledgement = add(4, 0);
        for expected in [acknowledgement, early, late, middle, long] {
            assert_eq!(queue.dequeue(0, &mut packets), Next::Send(expected));
        }
        assert_eq!(queue.dequeue(0, &mut packets), Next::Idle);
    }

    #[test]
    fn a_full_queue_drops_the_last_of_the_least_urgent_packets() {
        let mut queue = PFabricQueue::new(3);
        let mut packets = Packets::new();
        let (first, _) = offer(&mut queue, &mut packets, 1, 5_000);
        let (second, _) = offer(&mut queue, &mut packets, 2, 5_000);
        let (_, dropped) = offer(&mut queue, &mut packets, 3, 1_000);
        assert_eq!(dropped, None);
        // Itself, if nothing is less urgent.
        let (new, dropped) = offer(&mut queue, &mut packets, 4, 5_000);
        assert_eq!(dropped, Some(new));
        // Another if it is more urgent.
        let (_, dropped) = offer(&mut queue, &mut packets, 5, 2_000);
        assert_eq!(dropped, Some(second));
        let (_, dropped) = offer(&mut queue, &mut packets, 5, 500);
        assert_eq!(dropped, Some(first));
    }

    #[test]
    fn the_packet_in_service_counts_and_is_never_dropped() {
        let mut queue = PFabricQueue::new(2);
        let mut packets = Packets::new();
        let (first, _) = offer(&mut queue, &mut packets, 1, 9_000);
        assert_eq!(queue.dequeue(0, &mut packets), Next::Send(first));
        let (second, dropped) = offer(&mut queue, &mut packets, 2, 5_000);
        assert_eq!(dropped, None);
        let (_, dropped) = offer(&mut queue, &mut packets, 3, 1_000);
        assert_eq!(dropped, Some(second));
    }
}
