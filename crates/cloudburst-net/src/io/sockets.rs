//! All sockets of an endpoint, with their marks and counters.

use super::config::UdpConfig;
use super::counters::Meter;
use super::egresses::EgressNumbers;
use super::encapsulate::Encapsulator;
use super::marks::Dscps;
use super::ports;
use super::socket::{EgressSocket, Family, canonical};
use crate::error::BuildError;
use core::ops::Deref;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

/// The egress of the socket whose address other endpoints share. No path uses it: it sends only
/// answers to the handshakes that it received.
pub(super) const SHARED: u16 = u16::MAX;

/// An egress that is open.
#[derive(Debug)]
pub(super) enum Egress<'a> {
    Own(&'a EgressSocket),
    /// May be closed meanwhile, which takes effect when it is dropped.
    Shared(Arc<EgressSocket>),
}

impl Deref for Egress<'_> {
    type Target = EgressSocket;

    fn deref(&self) -> &EgressSocket {
        match self {
            Self::Own(egress) => egress,
            Self::Shared(egress) => egress,
        }
    }
}

/// Sockets, one for each egress.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) egresses: Vec<EgressSocket>,
    /// How many of the sockets take messages.
    ports: u16,
    /// The egress [`SHARED`], if other endpoints share the address that peers send to.
    // The system distributes packets by a hash of both ports, which would scatter the symbols of a
    // message over all endpoints that share the port. So it takes handshakes alone, and ACCEPT
    // names the port for everything else. Distribution by session takes eBPF and privilege.
    shared: RwLock<Option<Arc<EgressSocket>>>,
    /// The egresses after the sockets: flow labels.
    pub(super) labels: Vec<u32>,
    /// The egresses after the flow labels: outer headers.
    pub(super) encapsulator: Option<Encapsulator>,
    pub(super) family: Family,
    pub(super) dscps: Dscps,
    pub(super) meter: Meter,
    /// Whether the system refuses `recvmmsg`.
    pub(super) takes_singly: AtomicBool,
    /// How many batches were given to the kernel to segment (GSO), and the errors to report for them,
    /// beginning with batch 0.
    #[cfg(test)]
    pub(super) gso_batches: std::sync::atomic::AtomicUsize,
    #[cfg(test)]
    pub(super) gso_error: fn(usize) -> Option<nix::errno::Errno>,
}

impl Sockets {
    pub(super) fn open(config: &UdpConfig, given: Vec<UdpSocket>) -> Result<Self, BuildError> {
        let &UdpConfig { sockets, ports, flow_labels, encapsulates, socket_buffers, .. } = config;
        let bind = canonical(config.bind);
        let dscps = Dscps::new(&config.dscps, config.trim_dscp)?;
        let family = Family::of(bind);
        let tos = dscps.socket_byte();
        let open_as = |addr, reuse| EgressSocket::open(addr, family, tos, socket_buffers, reuse);
        let open = |addr| open_as(addr, false);
        let mut pool_addr = bind;
        pool_addr.set_port(0);
        let first = if config.reuse_port { pool_addr } else { bind };
        let mut egresses = if given.is_empty() {
            ports::open_in_a_row(first, ports, open)?
        } else {
            let adopt =
                |socket, addr| EgressSocket::adopt(socket, addr, family, tos, socket_buffers);
            // All or none: with only some of them, packets to the other ports would be lost at each
            // restart, unnoticed.
            ports::adopt_in_a_row(first, ports, given, adopt)?
        };
        while egresses.len() < usize::from(sockets) {
            egresses.push(open(pool_addr)?);
        }
        let labels =
            if flow_labels > 0 { egresses[0].choose_flow_labels(flow_labels)? } else { Vec::new() };
        let bound = egresses[0].local_addr()?;
        let encapsulator = match encapsulates {
            true => Some(Encapsulator::open(bound, socket_buffers)?),
            false => None,
        };
        // Opened last: an endpoint that gets a handshake must be ready for what follows.
        let shared = config.reuse_port.then(|| open_as(bind, true)).transpose()?.map(Arc::new);
        Ok(Self {
            egresses,
            ports,
            shared: RwLock::new(shared),
            labels,
            encapsulator,
            family,
            dscps,
            meter: Meter::default(),
            takes_singly: AtomicBool::new(false),
            #[cfg(test)]
            gso_batches: 0.into(),
            #[cfg(test)]
            gso_error: |_| None,
        })
    }

    pub(super) fn egress(&self, number: u16) -> Option<Egress<'_>> {
        if number == SHARED {
            self.shared().map(Egress::Shared)
        } else {
            self.egresses.get(usize::from(number)).map(Egress::Own)
        }
    }

    /// All egresses that receive packets, with their numbers.
    pub(super) fn numbered(&self) -> Vec<(u16, Egress<'_>)> {
        let own = (0..).zip(self.egresses.iter().map(Egress::Own));
        own.chain(self.shared().map(|egress| (SHARED, Egress::Shared(egress)))).collect()
    }

    /// The address that peers send to.
    pub(super) fn addr(&self) -> Result<SocketAddr, BuildError> {
        match self.shared() {
            Some(shared) => shared.local_addr(),
            None => self.egresses[0].local_addr(),
        }
    }

    /// Closes the socket of the address that other endpoints share, if there is one: the system gives
    /// them all handshakes from now on. Those that it had given this one are lost, and repeated.
    pub(super) fn close_shared(&self) {
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn shared(&self) -> Option<Arc<EgressSocket>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The numbers of the egresses, including those of the destinations `outer` of outer headers,
    /// as far as there are numbers for them.
    pub(super) fn numbers(&self, outer: &[Ipv4Addr]) -> EgressNumbers {
        let sockets = self.egresses.len() as u16;
        let labels = self.labels.len() as u16;
        let numbers = self.encapsulator.as_ref().map(|by| by.numbers(outer)).unwrap_or_default();
        let egress = |(ip, number)| (ip, sockets + labels + number);
        EgressNumbers {
            sockets,
            ports: self.ports,
            labels,
            encapsulates: self.encapsulator.is_some(),
            outer: numbers.into_iter().map(egress).collect(),
        }
    }
}
