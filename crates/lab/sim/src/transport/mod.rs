//! Transport protocols: one file or folder for each.
//!
//! | file | transport | source |
//! |---|---|---|
//! | [`burst`] | an abstract model of Cloudburst: any n symbols complete a message, and STOP ends the burst | INFOCOM 2022, III |
//! | [`tcp`] | TCP, DCTCP, PIAS, replicated DCTCP, QJump, MPTCP, TCP over packet spraying | see there |
//! | [`open_loop`] | open-loop Poisson and Bernoulli sources | DRB paper, Appendix B |
//! | [`pfabric`] | pFabric: line rate, short timeouts, priority queues | SIGCOMM 2013 |
//! | [`expresspass`] | ExpressPass: a credit for each data packet | SIGCOMM 2017 |
//! | [`cloudburst`] | Cloudburst itself: the endpoints of `cloudburst-core` | INFOCOM 2022; this project |
//!
//! A new transport is one new file that implements [`Transport`], and another that implements
//! [`Queue`](crate::queue::Queue) if it needs a queue discipline of its own.

pub mod burst;
pub mod cloudburst;
pub mod expresspass;
pub mod open_loop;
pub mod pfabric;
mod received;
pub mod tcp;

use crate::engine::Handle;
use crate::flow::NewFlow;
use crate::network::Network;

/// A transport protocol: all its senders and receivers on all hosts.
// One object for all hosts: state is found by the flow's number instead of a search. The price is
// discipline, since a receiver could look at its sender's state.
pub trait Transport {
    /// Attaches the transport to a network. `number` goes into its packets and timers. Called once, before all
    /// other methods.
    fn attach(&mut self, number: u8, network: &mut Network);

    /// Starts a flow at its source.
    fn begin(&mut self, network: &mut Network, flow: u32);

    /// Handles a packet that has arrived at its destination: see [`Network::packet`] and [`Network::bytes_mut`].
    fn receive(&mut self, network: &mut Network, packet: Handle);

    /// Handles a timer that has expired, with the arguments of [`Network::set_timer`].
    fn expire(&mut self, network: &mut Network, flow: u32, token: u32);
}

/// Returns the message of a new flow and the number of packets that it needs with `payload` bytes in each but the
/// last. Records that number in the flow. An empty message needs one packet.
fn open(network: &mut Network, flow: u32, payload: u16) -> (NewFlow, u32) {
    let flow = network.flow_mut(flow);
    let packets = flow.spec.bytes.div_ceil(payload.into()).max(1);
    flow.needed = u32::try_from(packets).unwrap_or(u32::MAX);
    (flow.spec, flow.needed)
}

/// Stores the state of a new flow. Numbers without a state belong to flows of other transports.
fn store<T>(states: &mut Vec<Option<T>>, flow: u32, state: T) {
    states.resize_with(flow as usize + 1, || None);
    states[flow as usize] = Some(state);
}

/// The payload of packet `number` of a message of `bytes` bytes, with `payload` bytes in each packet but the last.
fn payload_of(number: u32, bytes: u64, payload: u16) -> u16 {
    let before = u64::from(number) * u64::from(payload);
    bytes.saturating_sub(before).min(payload.into()) as u16
}
