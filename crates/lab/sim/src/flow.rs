//! Flows: messages from one host to another, and their progress.

use crate::engine::Time;
use std::collections::VecDeque;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFlow {
    /// The host that sends.
    pub source: u16,
    /// The host that receives. It must differ from the source.
    pub destination: u16,
    /// The number of the transport that carries it.
    pub transport: u8,
    /// Bytes of the message, headers excluded.
    pub bytes: u64,
    /// A number for the workload's own use.
    pub tag: u32,
}

/// A flow and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The message.
    pub spec: NewFlow,
    /// When it started.
    pub begun: Time,
    /// When the receiver had all of it: the flow completion time is this minus `begun`.
    pub delivered: Option<Time>,
    /// When the sender learned of the delivery.
    pub acknowledged: Option<Time>,
    /// Bytes of the message that have arrived, each counted once.
    pub received: u64,
    /// Data packets sent.
    pub sent: u32,
    /// Data packets that the message needs if none is lost.
    pub needed: u32,
}

/// All flows of a simulation, by number.
#[derive(Debug, Default)]
pub struct Flows {
    all: Vec<Flow>,
    /// Delivered flows that have not been reported to the workload.
    delivered: VecDeque<u32>,
}

impl Flows {
    pub(crate) fn begin(&mut self, now: Time, spec: NewFlow) -> u32 {
        self.all.push(Flow {
            spec,
            begun: now,
            delivered: None,
            acknowledged: None,
            received: 0,
            sent: 0,
            needed: 0,
        });
        (self.all.len() - 1) as u32
    }

    pub(crate) fn deliver(&mut self, flow: u32, now: Time) {
        let record = &mut self.all[flow as usize];
        if record.delivered.is_none() {
            record.delivered = Some(now);
            record.received = record.spec.bytes;
            self.delivered.push_back(flow);
        }
    }

    pub(crate) fn next_delivered(&mut self) -> Option<u32> {
        self.delivered.pop_front()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.all[flow as usize]
    }

    /// All flows, by number.
    pub fn as_slice(&self) -> &[Flow] {
        &self.all
    }
}

impl core::ops::Index<u32> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, flow: u32) -> &Flow {
        &self.all[flow as usize]
    }
}
