//! The network as transports see it: it carries packets from host to host.

use crate::engine::{Calendar, Ecn, Event, Handle, NS, Packet, Packets, Time};
use crate::fabric::Clos;
use crate::flow::{Flow, Flows};
use crate::measure::Measures;
use crate::queue::{Discipline, Next};
use crate::trace::{Point, Tap};
use cloudburst_core::path::{Order, Sequence};
use cloudburst_core::rng::SplitMix64;
use core::fmt;

/// The fabric with its packets, the flows, and the clock.
pub struct Network {
    now: Time,
    calendar: Calendar,
    pub(crate) packets: Packets,
    fabric: Clos,
    flows: Flows,
    /// Distributions that transports record.
    pub measures: Measures,
    rng: SplitMix64,
    tap: Option<Box<dyn Tap>>,
    refusal: Option<Refusal>,
    hash: u64,
    events: u64,
}

/// A message or session that a transport refused, so that the simulation does not carry its whole workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host {from} cannot send to host {to}: {reason}")]
pub struct Refusal {
    /// The host that was to send.
    pub from: u16,
    /// The host that was to receive.
    pub to: u16,
    /// The transport's error.
    pub reason: String,
}

/// The event that is due next.
pub(crate) enum Due {
    /// A packet has arrived at its destination. The caller releases it.
    Arrival(Handle),
    /// A timer has expired.
    Timer {
        /// The transport that set it.
        transport: u8,
        /// The flow that it was set for.
        flow: u32,
        /// The token that it was set with.
        token: u32,
    },
}

impl Network {
    pub(crate) fn new(fabric: Clos, seed: u64) -> Self {
        // Packets per second if all ports send full packets of 12,000 bits.
        let per_second: u64 = fabric.ports().iter().map(|port| port.rate() / 12_000).sum();
        Self {
            now: 0,
            calendar: Calendar::new(crate::engine::SECOND / per_second.max(1)),
            packets: Packets::new(),
            fabric,
            flows: Flows::default(),
            measures: Measures::default(),
            rng: SplitMix64::new(seed),
            tap: None,
            refusal: None,
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
        }
    }

    /// The current time.
    #[inline]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The switches and links.
    pub const fn fabric(&self) -> &Clos {
        &self.fabric
    }

    /// The switches and links, for changing them.
    pub const fn fabric_mut(&mut self) -> &mut Clos {
        &mut self.fabric
    }

    /// All flows so far.
    pub const fn flows(&self) -> &Flows {
        &self.flows
    }

    /// A flow, for its transport to update.
    #[inline]
    pub fn flow_mut(&mut self, flow: u32) -> &mut Flow {
        self.flows.get_mut(flow)
    }

    pub(crate) const fn flows_mut(&mut self) -> &mut Flows {
        &mut self.flows
    }

    /// The random number generator of the transports.
    pub const fn rng(&mut self) -> &mut SplitMix64 {
        &mut self.rng
    }

    /// A path drawn uniformly, as ECMP hashes a flow onto one.
    pub fn draw_path(&mut self, source: u16, destination: u16) -> u16 {
        if self.fabric.has_withdrawn() {
            let paths = self.fabric.hashed(source, destination);
            return paths[self.rng.below(paths.len() as u64) as usize];
        }
        let paths = self.fabric.paths(source, destination);
        self.rng.below(u64::from(paths)) as u16
    }

    /// The order in which packets from one host to another visit the paths, from a random starting place. Round
    /// robin if `order` is for another number of paths.
    pub fn draw_sequence(&mut self, order: Order, source: u16, destination: u16) -> Sequence {
        let paths = usize::from(self.fabric.paths(source, destination));
        let order = match order.paths() {
            Some(wanted) if wanted != paths => Order::RoundRobin,
            _ => order,
        };
        let seed = self.rng.next_u64();
        Sequence::new(order, paths, seed).expect("the order fits the paths")
    }

    /// Replaces the tap, which sees every packet. Returns the previous one.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) -> Option<Box<dyn Tap>> {
        core::mem::replace(&mut self.tap, tap)
    }

    /// Whether the tap has failed, which ends the simulation.
    #[inline]
    pub fn tap_has_failed(&self) -> bool {
        self.tap.as_ref().is_some_and(|tap| tap.has_failed())
    }

    /// The trace hash: a hash of all arrivals of packets at nodes with their times. The same simulation and seed
    /// give the same hash on every machine.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of events so far: arrivals of packets at nodes, ports that became free, and timers.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The number of packets in the network, and of pending port events and timers.
    pub fn under_way(&self) -> usize {
        self.packets.in_use()
    }

    /// Sends a packet from its source host.
    #[inline]
    pub fn send(&mut self, packet: Packet) {
        let handle = self.packets.insert(Packet { hop: 0, waited_ns: 0, ..packet });
        self.transmit(handle);
    }

    /// Sends a packet that carries `bytes`. Its size on the wire is still that of its `size` field.
    pub fn send_bytes(&mut self, packet: Packet, bytes: &[u8]) {
        let handle = self.packets.insert(Packet { hop: 0, waited_ns: 0, ..packet });
        self.packets.attach(handle, bytes);
        self.transmit(handle);
    }

    /// Sets a timer: [`Transport::expire`](crate::transport::Transport::expire) is called at `at`. Timers cannot
    /// be cancelled; a transport ignores those that it no longer needs.
    pub fn set_timer(&mut self, transport: u8, at: Time, flow: u32, token: u32) {
        let event = Event::Timer;
        let timer = Packet { transport, flow, sequence: token, event, ..Packet::default() };
        let handle = self.packets.insert(timer);
        self.calendar.schedule(at.max(self.now), handle);
    }

    /// A packet that has arrived.
    #[inline]
    pub fn packet(&self, packet: Handle) -> &Packet {
        &self.packets[packet]
    }

    /// The bytes of a packet that has arrived, which its transport may overwrite; empty if it has none.
    pub fn bytes_mut(&mut self, packet: Handle) -> &mut [u8] {
        self.packets.bytes_mut(packet)
    }

    /// Records that the sender knows of the delivery. Only the first call counts.
    pub fn acknowledge(&mut self, flow: u32) {
        let now = self.now;
        self.flow_mut(flow).acknowledged.get_or_insert(now);
    }

    /// Records that the receiver has the whole message. Only the first call counts.
    pub fn deliver(&mut self, flow: u32) {
        self.flows.deliver(flow, self.now);
    }

    /// Records that a transport refuses a message or a session. Only the first call counts.
    pub fn refuse(&mut self, from: u16, to: u16, reason: &dyn fmt::Display) {
        self.refusal.get_or_insert_with(|| Refusal { from, to, reason: reason.to_string() });
    }

    /// The first refusal of a transport, if any.
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Advances to the next arrival at a host or timer, but not beyond `until`.
    #[inline]
    pub(crate) fn advance(&mut self, until: Time) -> Option<Due> {
        while let Some((at, handle)) = self.calendar.next(&self.packets, until) {
            self.now = at;
            self.events += 1;
            let packet = &mut self.packets[handle];
            match packet.event {
                Event::Arrives => {
                    packet.hop += 1;
                    let seen = at ^ u64::from(packet.flow) << 40 ^ u64::from(packet.sequence);
                    let seen = seen ^ u64::from(packet.path) << 24 ^ u64::from(packet.hop) << 56;
                    self.hash = (self.hash ^ seen).wrapping_mul(0x100_0000_01b3).rotate_left(17);
                    if !self.transmit(handle) {
                        return Some(Due::Arrival(handle));
                    }
                }
                Event::PortIsFree => {
                    let port = packet.flow as usize;
                    self.packets.remove(handle);
                    if self.fabric.port_mut(port).free_at <= at {
                        self.serve(port);
                    }
                }
                Event::Timer => {
                    let transport = packet.transport;
                    let flow = packet.flow;
                    let token = packet.sequence;
                    self.packets.remove(handle);
                    return Some(Due::Timer { transport, flow, token });
                }
            }
        }
        self.now = self.now.max(until);
        None
    }

    pub(crate) fn release(&mut self, handle: Handle) {
        self.packets.remove(handle);
    }

    /// Hands a packet to the next port on its path. Returns `false` if it is at its destination.
    #[inline]
    fn transmit(&mut self, handle: Handle) -> bool {
        let packet = &mut self.packets[handle];
        let Some(number) = self.fabric.route(packet) else {
            self.see(Point::Arrived, handle);
            return false;
        };
        let port = self.fabric.port_mut(number);
        if !port.is_up {
            port.stats.lost += 1;
            self.see(Point::Lost(number), handle);
            self.packets.remove(handle);
            return true;
        }
        match &mut port.queue {
            Discipline::DropTail(queue) => {
                let byte = port.byte;
                let time = |bytes| byte * bytes as Time;
                let Some(leaves) = queue.offer(self.now, packet.size.into(), time) else {
                    port.stats.dropped += 1;
                    self.see(Point::Dropped(number), handle);
                    self.packets.remove(handle);
                    return true;
                };
                if leaves.marked && packet.ecn == Ecn::Capable {
                    packet.ecn = Ecn::Marked;
                }
                let waited = leaves.starts - self.now;
                if packet.hop > 0 {
                    packet.waited_ns += (waited / NS) as u32;
                }
                port.on_sent(packet.size, waited);
                let delay = port.delay;
                self.see(Point::Sent(number), handle);
                self.put_on_link(number, leaves.ends + delay, handle);
            }
            Discipline::Scheduled(queue) => {
                packet.queued = self.now;
                if let Some(dropped) = queue.enqueue(self.now, handle, &mut self.packets) {
                    port.stats.dropped += 1;
                    self.see(Point::Dropped(number), dropped);
                    self.packets.remove(dropped);
                }
                if self.fabric.port_mut(number).free_at <= self.now {
                    self.serve(number);
                }
            }
        }
        true
    }

    /// Starts the next transmission of an idle port.
    fn serve(&mut self, number: usize) {
        let port = self.fabric.port_mut(number);
        let Discipline::Scheduled(queue) = &mut port.queue else {
            return;
        };
        let wakes_at = match queue.dequeue(self.now, &mut self.packets) {
            Next::Idle => return,
            Next::Wait(until) => {
                if port.wakes_at == until {
                    return;
                }
                port.wakes_at = until;
                until
            }
            Next::Send(handle) => {
                let packet = &mut self.packets[handle];
                let waited = self.now - packet.queued;
                if packet.hop > 0 {
                    packet.waited_ns += (waited / NS) as u32;
                }
                port.on_sent(packet.size, waited);
                let delay = port.delay;
                let left = self.now + port.byte * Time::from(packet.size);
                port.free_at = left;
                self.see(Point::Sent(number), handle);
                self.put_on_link(number, left + delay, handle);
                left
            }
        };
        let event = Packet { event: Event::PortIsFree, flow: number as u32, ..Packet::default() };
        let handle = self.packets.insert(event);
        self.calendar.schedule(wakes_at, handle);
    }

    #[inline]
    fn put_on_link(&mut self, number: usize, arrives: Time, handle: Handle) {
        let port = self.fabric.port_mut(number);
        if port.loses() {
            port.stats.lost += 1;
            self.see(Point::Lost(number), handle);
            self.packets.remove(handle);
        } else {
            self.calendar.schedule(arrives, handle);
        }
    }

    #[inline]
    fn see(&mut self, point: Point, handle: Handle) {
        if let Some(tap) = &mut self.tap {
            tap.see(self.now, point, &self.packets[handle], self.packets.bytes(handle));
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("events", &self.events)
            .field("under_way", &self.under_way())
            .finish_non_exhaustive()
    }
}
