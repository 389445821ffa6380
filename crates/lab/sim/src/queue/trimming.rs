//! Packet trimming: a packet that finds the data queue full loses its payload, and its header is queued with
//! priority (NDP, SIGCOMM 2017, section 3.1; SCDP uses the same switches).
//!
//! The arriving packet is trimmed. NDP trims it or the last packet in the queue, each with probability 1/2, to
//! avoid phase effects. Headers that find their queue full are dropped; NDP may return them to the sender.

use super::{Next, PacketList, Queue};
use crate::engine::{Handle, Kind, Packets, Time};

/// The sizes of a [`Trimming`] queue. Limits include the packet in service.
#[derive(Clone, Copy, Debug)]
pub struct TrimmingConfig {
    /// The limit of the data queue, in packets.
    pub data: u32,
    /// The limit of the header queue, in packets.
    pub headers: u32,
    /// Bytes of a trimmed packet.
    pub header_size: u16,
    /// Headers sent per data packet if both wait.
    pub headers_per_data: u32,
}

impl Default for TrimmingConfig {
    /// NDP's: 8 data packets of 9,000 bytes, the same memory for headers, and 10 headers per data packet.
    fn default() -> Self {
        Self { data: 8, headers: 1_125, header_size: 64, headers_per_data: 10 }
    }
}

/// A short data queue, and a header queue for trimmed packets, acknowledgements and credits, which has a higher
/// weight.
#[derive(Debug)]
pub struct Trimming {
    config: TrimmingConfig,
    data: PacketList,
    headers: PacketList,
    /// The class of the packet in service.
    sending: Option<QueueKind>,
    /// Headers sent since the last data packet while data waited.
    headers_since_data: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueKind {
    Data,
    Header,
}

impl Trimming {
    /// An empty queue.
    pub const fn new(config: TrimmingConfig) -> Self {
        Self {
            config,
            data: PacketList::new(),
            headers: PacketList::new(),
            sending: None,
            headers_since_data: 0,
        }
    }

    /// The packets of a class, including the one in service.
    fn len(&self, class: QueueKind) -> u32 {
        let list = if class == QueueKind::Data { &self.data } else { &self.headers };
        list.packets() + u32::from(self.sending == Some(class))
    }
}

impl Queue for Trimming {
    fn enqueue(&mut self, _now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        if packets[packet].kind == Kind::Data && !packets[packet].trimmed {
            if self.len(QueueKind::Data) < self.config.data {
                self.data.push(packet, packets);
                return None;
            }
            let packet = &mut packets[packet];
            packet.trimmed = true;
            packet.size = packet.size.min(self.config.header_size);
        }
        if self.len(QueueKind::Header) >= self.config.headers {
            return Some(packet);
        }
        self.headers.push(packet, packets);
        None
    }

    fn dequeue(&mut self, _now: Time, packets: &mut Packets) -> Next {
        let is_data_due = self.headers_since_data >= self.config.headers_per_data;
        let class = match (self.data.is_empty(), self.headers.is_empty()) {
            (true, true) => {
                self.sending = None;
                return Next::Idle;
            }
            (false, false) if is_data_due => QueueKind::Data,
            (_, false) => QueueKind::Header,
            (false, true) => QueueKind::Data,
        };
        let list = if class == QueueKind::Data {
            self.headers_since_data = 0;
            &mut self.data
        } else {
            self.headers_since_data =
                if self.data.is_empty() { 0 } else { self.headers_since_data + 1 };
            &mut self.headers
        };
        self.sending = Some(class);
        list.pop(packets).map_or(Next::Idle, Next::Send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Packet;

    fn offer(queue: &mut Trimming, packets: &mut Packets, kind: Kind) -> (Handle, Option<Handle>) {
        let packet = packets.insert(Packet { kind, size: 1_500, ..Packet::default() });
        (packet, queue.enqueue(0, packet, packets))
    }

    #[test]
    fn a_packet_that_finds_the_queue_full_is_trimmed_and_overtakes() {
        let config = TrimmingConfig { data: 2, ..TrimmingConfig::default() };
        let mut queue = Trimming::new(config);
        let mut packets = Packets::new();
        let [first, second, third, fourth] = [0; 4].map(|_| {
            let (packet, dropped) = offer(&mut queue, &mut packets, Kind::Data);
            assert_eq!(dropped, None);
            packet
        });
        let state = |packet: Handle| (packets[packet].size, packets[packet].trimmed);
        assert_eq!([first, second].map(state), [(1_500, false); 2]);
        assert_eq!([third, fourth].map(state), [(64, true); 2]);
        for expected in [third, fourth, first, second] {
            assert_eq!(queue.dequeue(0, &mut packets), Next::Send(expected));
        }
        assert_eq!(queue.dequeue(0, &mut packets), Next::Idle);
    }

    #[test]
    fn the_data_packet_in_service_counts_and_a_header_in_service_does_not() {
        let config = TrimmingConfig { data: 1, ..TrimmingConfig::default() };
        let mut queue = Trimming::new(config);
        let mut packets = Packets::new();
        let data = offer(&mut queue, &mut packets, Kind::Data).0;
        assert_eq!(queue.dequeue(0, &mut packets), Next::Send(data));
        let cut = offer(&mut queue, &mut packets, Kind::Data).0;
        assert!(packets[cut].trimmed);
        assert_eq!(queue.dequeue(0, &mut packets), Next::Send(cut));
        let whole = offer(&mut queue, &mut packets, Kind::Data).0;
        assert!(!packets[whole].trimmed);
    }

    #[test]
    fn ten_headers_are_sent_for_each_data_packet() {
        let config = TrimmingConfig { data: 3, ..TrimmingConfig::default() };
        let mut queue = Trimming::new(config);
        let mut packets = Packets::new();
        for _ in 0..3 {
            offer(&mut queue, &mut packets, Kind::Data);
        }
        for _ in 0..25 {
            assert_eq!(offer(&mut queue, &mut packets, Kind::Ack).1, None);
        }
        let mut sent = String::new();
        while let Next::Send(packet) = queue.dequeue(0, &mut packets) {
            sent.push(if packets[packet].kind == Kind::Data { 'D' } else { 'h' });
        }
        assert_eq!(sent, "hhhhhhhhhhDhhhhhhhhhhDhhhhhD");
    }

    #[test]
    fn headers_beyond_their_limit_are_dropped() {
        let config = TrimmingConfig { data: 1, headers: 2, ..TrimmingConfig::default() };
        let mut queue = Trimming::new(config);
        let mut packets = Packets::new();
        let dropped = [0; 5].map(|_| offer(&mut queue, &mut packets, Kind::Data).1.is_some());
        assert_eq!(dropped, [false, false, false, true, true]);
    }
}
