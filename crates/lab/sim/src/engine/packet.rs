//! Packets: 64 bytes each, in a slab, without the bytes that they carry.

/// The index of a packet in the slab.
pub type Handle = u32;

/// No packet.
pub(crate) const NONE: Handle = Handle::MAX;

/// The kind of a packet. Of the queues, only those of ExpressPass and NDP look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A part of a message.
    #[default]
    Data,
    /// A receiver's feedback: an acknowledgement, a STOP.
    Ack,
    /// A request for data, or a permit to send some (ExpressPass, NDP's PULL).
    Credit,
    /// A small packet that elicits feedback (pFabric's probe, ExpressPass' request).
    Probe,
}

/// The ECN field of an IP header, as far as switches are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the transport does not support ECN.
    #[default]
    NotCapable,
    /// ECT(0): switches may mark the packet.
    Capable,
    /// CE: a switch has marked the packet.
    Marked,
}

/// The kind of event that a slot stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    /// The last bit of a packet arrives at the next node on its way.
    #[default]
    Arrives,
    /// A port has sent a packet, or may try again: `flow` is its number.
    PortIsFree,
    /// A transport's timer: `sequence` is its token.
    Timer,
}

/// A packet: one cache line.
///
/// Transports set the fields from [`flow`](Self::flow) on, and define what `sequence`, `acknowledged`, `remaining`
/// and `sent` mean to them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// When it entered its current queue.
    pub(crate) queued: u64,
    /// The next free slot.
    pub(crate) next: Handle,
    /// The packet that follows it in its queue.
    pub(crate) link: Handle,
    /// The number of the flow: an index into [`Network::flows`](crate::Network::flows), or
    /// [`NO_FLOW`](Self::NO_FLOW).
    pub flow: u32,
    /// The host that sends it.
    pub source: u16,
    /// The host that it is for.
    pub destination: u16,
    /// The number of its path among those between the two hosts.
    pub path: u16,
    /// Its size on the wire, in bytes.
    pub size: u16,
    /// The number of links that it has crossed.
    pub hop: u8,
    /// The number of its transport.
    pub transport: u8,
    /// Its traffic class; 0 has the highest priority. See [`queue`](crate::queue).
    pub class: u8,
    /// Its kind.
    pub kind: Kind,
    pub(crate) event: Event,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Whether a switch has trimmed its payload.
    pub trimmed: bool,
    /// Whether Aeolus drops it selectively: an unscheduled packet.
    pub droppable: bool,
    /// Usually its number within its flow.
    pub sequence: u32,
    /// Usually the cumulative acknowledgement.
    pub acknowledged: u32,
    /// Remaining bytes of its flow: pFabric's priority.
    pub remaining: u32,
    /// Its bytes, if it carries any: see [`Packets::attach`].
    pub(crate) payload: Handle,
    /// Its queueing delay so far in nanoseconds, excluding that in its source host.
    pub waited_ns: u32,
    /// Usually when its host sent it.
    pub sent: u64,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// The [`flow`](Self::flow) of packets that belong to none, such as handshakes.
    pub const NO_FLOW: u32 = u32::MAX;
}

/// A slab of packets with a free list.
#[derive(Debug)]
pub struct Packets {
    slots: Vec<Packet>,
    free: Handle,
    in_use: usize,
    payloads: Vec<Vec<u8>>,
    free_payloads: Vec<Handle>,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            in_use: 0,
            payloads: Vec::new(),
            free_payloads: Vec::new(),
        }
    }

    /// Stores a packet.
    pub(crate) fn insert(&mut self, packet: Packet) -> Handle {
        self.in_use += 1;
        let packet = Packet { link: NONE, next: NONE, payload: NONE, ..packet };
        if self.free == NONE {
            self.slots.push(packet);
            return (self.slots.len() - 1) as Handle;
        }
        let handle = self.free;
        self.free = self[handle].next;
        self[handle] = packet;
        handle
    }

    /// Frees a packet and its bytes.
    pub(crate) fn remove(&mut self, handle: Handle) {
        self.in_use -= 1;
        let payload = self[handle].payload;
        if payload != NONE {
            self.payloads[payload as usize].clear();
            self.free_payloads.push(payload);
        }
        self[handle].next = self.free;
        self.free = handle;
    }

    /// Attaches bytes to a packet.
    pub(crate) fn attach(&mut self, handle: Handle, bytes: &[u8]) {
        let payload = self.free_payloads.pop().unwrap_or_else(|| {
            self.payloads.push(Vec::new());
            (self.payloads.len() - 1) as Handle
        });
        self.payloads[payload as usize].extend_from_slice(bytes);
        self[handle].payload = payload;
    }

    /// The bytes that a packet carries; empty if it has none.
    pub(crate) fn bytes(&self, handle: Handle) -> &[u8] {
        self.payloads.get(self[handle].payload as usize).map_or(&[], Vec::as_slice)
    }

    /// The same, mutable.
    pub(crate) fn bytes_mut(&mut self, handle: Handle) -> &mut [u8] {
        let payload = self[handle].payload as usize;
        self.payloads.get_mut(payload).map_or(&mut [], Vec::as_mut_slice)
    }

    /// Prefetches packets that will be needed soon.
    #[inline]
    pub(crate) fn warm(&self, events: &[(u64, Handle)]) {
        let read = events.iter().fold(0, |sum, &(_, handle)| sum ^ self[handle].hop);
        core::hint::black_box(read);
    }

    /// The number of slots in use: packets, port events and timers.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }
}

impl core::ops::Index<Handle> for Packets {
    type Output = Packet;

    #[inline]
    fn index(&self, handle: Handle) -> &Packet {
        &self.slots[handle as usize]
    }
}

impl core::ops::IndexMut<Handle> for Packets {
    #[inline]
    fn index_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.slots[handle as usize]
    }
}
