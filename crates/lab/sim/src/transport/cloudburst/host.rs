//! One host: its endpoint and the state of its driver.

use super::paths::HostPaths;
use super::recipe::Recipe;
use super::recording::{Recording, Step};
use crate::engine::{NS, Time, byte_time};
use bytes::Bytes;
use cloudburst_core::config::ConfigError;
use cloudburst_core::error::StartError;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Event, Message, SendOptions, Transceiver, Transmit};
use cloudburst_core::time::Instant;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Host {
    endpoint: Transceiver,
    pub(super) paths: HostPaths,
    /// The flows that it sends, by message number; these have no gaps.
    pub(super) flows: Vec<u32>,
    /// Packets sent so far.
    pub(super) packets: u32,
    port: LinkBacklog,
    /// Pending timers of the simulator, the next one last.
    timers: Vec<Time>,
    recording: Option<Recording>,
}

/// The backlog of a host's port.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkBacklog {
    /// Picoseconds per byte.
    byte: Time,
    /// The largest backlog, in time; `None`: unlimited.
    limit: Option<Time>,
    /// When the backlog will have left.
    busy_until: Time,
}

impl LinkBacklog {
    /// A port of `rate` bits per second that holds up to `limit` bytes.
    pub(super) fn new(rate: u64, limit: Option<u32>) -> Self {
        let byte = byte_time(rate);
        Self { byte, limit: limit.map(|bytes| byte * Time::from(bytes)), busy_until: 0 }
    }

    /// When the backlog is within the limit.
    fn ready_at(&self) -> Time {
        self.limit.map_or(0, |limit| self.busy_until.saturating_sub(limit))
    }
}

/// The endpoint's time: whole nanoseconds, rounded down so that nothing happens early.
pub(super) const fn instant(now: Time) -> Instant {
    Instant::from_nanos(now / NS)
}

impl Host {
    pub(super) fn new(
        recipe: &Recipe,
        port: LinkBacklog,
        recording: Option<Recording>,
    ) -> Result<Self, ConfigError> {
        if let Some(recording) = &recording {
            recording.begin(recipe.clone());
        }
        Ok(Self {
            endpoint: recipe.endpoint()?,
            paths: recipe.paths,
            flows: Vec::new(),
            packets: 0,
            port,
            timers: Vec::new(),
            recording,
        })
    }

    fn record(&self, now: Time, step: impl FnOnce() -> Step) {
        if let Some(recording) = &self.recording {
            recording.push(instant(now), step());
        }
    }

    // Inputs. After each of them, all outputs must be polled.

    pub(super) fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<(), StartError> {
        self.record(now, || Step::Connect(peer));
        self.endpoint.connect(instant(now), peer, &SendOptions::default()).map(drop)
    }

    pub(super) fn send(
        &mut self,
        now: Time,
        peer: SocketAddr,
        bytes: Bytes,
        flow: u32,
    ) -> Result<(), StartError> {
        self.record(now, || Step::Send(peer, bytes.clone()));
        let id = self.endpoint.send(instant(now), peer, bytes, &SendOptions::default())?;
        debug_assert_eq!(id.0, self.flows.len() as u64, "message numbers have no gaps");
        self.flows.push(flow);
        Ok(())
    }

    pub(super) fn handle_datagram(&mut self, now: Time, via: Via, ce: bool, datagram: &mut [u8]) {
        self.record(now, || Step::Datagram(via, ce, datagram.to_vec()));
        if ce {
            self.endpoint.handle_marked(instant(now), via, datagram);
        } else {
            self.endpoint.handle_datagram(instant(now), via, datagram);
        }
    }

    /// Handles a timer of the simulator. Returns whether a timeout of the endpoint was due.
    pub(super) fn handle_timer(&mut self, now: Time) -> bool {
        self.timers.pop();
        let is_due = self.endpoint.poll_timeout().is_some_and(|at| at <= instant(now));
        if is_due {
            self.record(now, || Step::Timeout);
            self.endpoint.handle_timeout(instant(now));
        }
        is_due
    }

    /// The next message to deliver to the application.
    pub(super) fn recv(&mut self, now: Time) -> Option<Message> {
        let message = self.endpoint.recv()?;
        self.record(now, || Step::Taken(message.bytes.clone()));
        Some(message)
    }

    // Outputs.

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// The next datagrams. With `symbols`, answers are sent only together with symbols.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        symbols: bool,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let now_there = instant(now);
        let transmit = if symbols {
            self.endpoint.poll_symbols(now_there, buffer)
        } else {
            self.endpoint.poll_transmit(now_there, buffer)
        }?;
        if self.recording.is_some() {
            for packet in buffer.chunks(transmit.segment_size) {
                self.record(now, || Step::Sent(transmit.via, packet.to_vec()));
            }
        }
        Some(transmit)
    }

    /// Records that a packet of `size` bytes on the wire has left the endpoint.
    pub(super) fn on_sent(&mut self, now: Time, size: u16) {
        self.port.busy_until = self.port.busy_until.max(now) + self.port.byte * Time::from(size);
    }

    /// Whether the backlog of the port blocks the endpoint.
    pub(super) fn is_blocked(&self, now: Time) -> bool {
        self.port.ready_at() > now
    }

    /// The time for which to set a timer, unless a pending one is early enough.
    pub(super) fn arm(&mut self, now: Time) -> Option<Time> {
        let at = self.endpoint.poll_timeout()?.as_nanos().saturating_mul(NS);
        // A blocked endpoint continues as soon as it is unblocked.
        let at = at.max(now).max(self.port.ready_at());
        if self.timers.last().is_some_and(|&next| next <= at) {
            return None;
        }
        self.timers.push(at);
        Some(at)
    }
}
