//! ExpressPass' credit queue: credits limited to the rate whose data fill the reverse link (SIGCOMM 2017, section
//! 3.1).
//!
//! A credit of 84 bytes elicits 1,538 bytes of data in the other direction. Credits may therefore use 84 / 1,622 of
//! a link, about 5 %. The switch drops excess credits, so that data queues stay short.

use super::{Next, PacketList, Queue};
use crate::engine::{Handle, Kind, Packets, Time, byte_time};

/// How a [`CreditQueue`] divides its link. Sizes are those on the wire.
#[derive(Clone, Copy, Debug)]
pub struct CreditConfig {
    /// The limit of the credit queue, the one in service included. A higher limit allows longer bursts of data, a
    /// lower one wastes credits.
    pub credits: u32,
    /// The limit of the data queue in packets, the one in service included.
    pub data: u32,
    /// Bytes of a credit.
    pub credit_size: u16,
    /// Bytes of the data packet that it elicits.
    pub data_size: u16,
    /// Depth of the token bucket in credits: how many may be sent back to back after a pause; 1 or more.
    pub burst: u32,
}

impl Default for CreditConfig {
    /// 10 credits and 100 data packets (section V-D of the Cloudburst paper), and a burst of 2 credits.
    fn default() -> Self {
        Self { credits: 10, data: 100, credit_size: 84, data_size: 1_538, burst: 2 }
    }
}

impl CreditConfig {
    /// The time between credits whose data fill the reverse link at `rate` bits per second.
    const fn interval(&self, rate: u64) -> Time {
        (self.credit_size as u64 + self.data_size as u64) * byte_time(rate)
    }
}

/// A credit queue behind a token bucket, which has priority while there are tokens, and a data queue for all other
/// packets.
#[derive(Debug)]
pub struct CreditQueue {
    config: CreditConfig,
    credits: PacketList,
    data: PacketList,
    /// The kind of the packet in service.
    sending: Option<Kind>,
    /// The time in which the tokens of a credit of nominal size accrue.
    interval: Time,
    /// When the bucket will be full.
    full_at: Time,
}

impl CreditQueue {
    /// The queue of a link of `rate` bits per second.
    pub const fn new(rate: u64, config: CreditConfig) -> Self {
        Self {
            config,
            credits: PacketList::new(),
            data: PacketList::new(),
            sending: None,
            interval: config.interval(rate),
            full_at: 0,
        }
    }

    fn send(&mut self, kind: Kind, packets: &mut Packets) -> Next {
        let list = if kind == Kind::Credit { &mut self.credits } else { &mut self.data };
        let next = list.pop(packets);
        self.sending = next.map(|_| kind);
        next.map_or(Next::Idle, Next::Send)
    }
}

impl Queue for CreditQueue {
    fn enqueue(&mut self, _now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        let is_credit = packets[packet].kind == Kind::Credit;
        let (list, limit) = if is_credit {
            (&mut self.credits, self.config.credits)
        } else {
            (&mut self.data, self.config.data)
        };
        let is_sending = self.sending.is_some_and(|kind| (kind == Kind::Credit) == is_credit);
        if list.packets() + u32::from(is_sending) >= limit {
            return Some(packet);
        }
        list.push(packet, packets);
        None
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next {
        let Some(credit) = self.credits.first() else {
            return self.send(Kind::Data, packets);
        };
        let depth = Time::from(self.config.burst - 1) * self.interval;
        let from = self.full_at.saturating_sub(depth);
        if from <= now {
            let size = Time::from(packets[credit].size);
            let earned_in = self.interval * size / Time::from(self.config.credit_size);
            self.full_at = self.full_at.max(now) + earned_in;
            return self.send(Kind::Credit, packets);
        }
        match self.send(Kind::Data, packets) {
            Next::Idle => Next::Wait(from),
            next => next,
        }
    }

    fn set_rate(&mut self, rate: u64) {
        self.interval = self.config.interval(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{NS, Packet};

    const RATE: u64 = 10_000_000_000;

    fn offer(
        queue: &mut CreditQueue,
        packets: &mut Packets,
        kind: Kind,
    ) -> (Handle, Option<Handle>) {
        let size = if kind == Kind::Credit { 84 } else { 1_538 };
        let packet = packets.insert(Packet { kind, size, ..Packet::default() });
        (packet, queue.enqueue(0, packet, packets))
    }

    #[test]
    fn credits_are_sent_first_while_tokens_last() {
        let mut queue = CreditQueue::new(RATE, CreditConfig::default());
        let mut packets = Packets::new();
        let data = offer(&mut queue, &mut packets, Kind::Data).0;
        let credits = [0; 3].map(|_| offer(&mut queue, &mut packets, Kind::Credit).0);
        assert_eq!(queue.dequeue(0, &mut packets), Next::Send(credits[0]));
        let now = 67_200;
        assert_eq!(queue.dequeue(now, &mut packets), Next::Send(credits[1]));
        assert_eq!(queue.dequeue(2 * now, &mut packets), Next::Send(data));
        // 84 + 1,538 bytes at 10 Gb/s after the first.
        let now = 1_250 * NS;
        assert_eq!(queue.dequeue(now, &mut packets), Next::Wait(1_297_600));
        assert_eq!(queue.dequeue(1_297_600, &mut packets), Next::Send(credits[2]));
        assert_eq!(queue.dequeue(2_000 * NS, &mut packets), Next::Idle);
    }

    #[test]
    fn each_class_has_its_limit_which_includes_the_one_in_service() {
        let config = CreditConfig { credits: 2, data: 2, ..CreditConfig::default() };
        let mut queue = CreditQueue::new(RATE, config);
        let mut packets = Packets::new();
        for kind in [Kind::Credit, Kind::Data] {
            assert_eq!(offer(&mut queue, &mut packets, kind).1, None);
            assert_eq!(offer(&mut queue, &mut packets, kind).1, None);
            let (packet, dropped) = offer(&mut queue, &mut packets, kind);
            assert_eq!(dropped, Some(packet));
        }
        assert!(matches!(queue.dequeue(0, &mut packets), Next::Send(_)));
        // A credit is in service: none more fits, and neither does data.
        for kind in [Kind::Credit, Kind::Data] {
            assert!(offer(&mut queue, &mut packets, kind).1.is_some());
        }
        // A packet without data is not necessarily a credit.
        assert!(offer(&mut queue, &mut packets, Kind::Ack).1.is_some());
    }

    #[test]
    fn credits_take_their_share_of_a_busy_link_and_no_more() {
        let mut queue = CreditQueue::new(RATE, CreditConfig::default());
        let mut packets = Packets::new();
        let mut now = 0;
        let mut credits = 0;
        while now < 10_000_000 * NS {
            offer(&mut queue, &mut packets, Kind::Credit);
            offer(&mut queue, &mut packets, Kind::Data);
            let Next::Send(packet) = queue.dequeue(now, &mut packets) else {
                panic!("data waits");
            };
            credits += u64::from(packets[packet].kind == Kind::Credit);
            now += 800 * Time::from(packets[packet].size);
        }
        let share = now / 1_297_600;
        assert!((share - 1..=share + 2).contains(&credits), "{credits} of {share}");
    }
}
