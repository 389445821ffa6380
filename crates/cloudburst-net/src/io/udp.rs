//! The sockets of an endpoint, and the clock.

use super::config::UdpConfig;
use super::counters::IoCounters;
use super::egresses::EgressNumbers;
use super::filter;
use super::poller::{Poller, Ready};
use super::receive::Inbox;
use super::socket::{self, EgressSocket, GrantedBuffers};
use super::sockets::Sockets;
use crate::error::BuildError;
use cloudburst_core::burst::{Datagrams, PacketIo};
use cloudburst_core::error::LocalError;
use cloudburst_core::proto::Transmit;
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::Instant as Clock;

/// A hundred years.
const FAR: Duration = Duration::from_secs(3_155_760_000);

/// Sockets, one for each egress, and the monotonic clock that all endpoints of the process share.
#[derive(Debug)]
pub struct UdpIo {
    sockets: Sockets,
    inbox: Inbox,
    /// The address that peers send to.
    addr: SocketAddr,
    local_addrs: Vec<SocketAddr>,
    granted: GrantedBuffers,
}

/// The origin of this process's clock: one for all endpoints, because a
/// [`Downlink`](cloudburst_core::rate::Downlink) may be shared.
fn epoch() -> Clock {
    static EPOCH: OnceLock<Clock> = OnceLock::new();
    *EPOCH.get_or_init(Clock::now)
}

impl UdpIo {
    /// Opens the sockets. `given` are the sockets that take messages, unless it is empty.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`], [`BuildError::Bind`], [`BuildError::Sockets`],
    /// [`BuildError::UnfitSocket`], [`BuildError::NoRawSocket`], [`BuildError::SocketOption`] or
    /// [`BuildError::System`].
    pub fn open(config: &UdpConfig, given: Vec<UdpSocket>) -> Result<Self, BuildError> {
        filter::check()?;
        let sockets = Sockets::open(config, given)?;
        if let Some(refusal) = filter::refuses_batches()? {
            sockets.take_singly(refusal);
        }
        let numbered = sockets.numbered();
        let mut poller =
            Poller::watch_egresses(numbered.iter().map(|(number, egress)| (*number, &**egress)))?;
        // One that is bound to an address has no other.
        if config.bind.ip().is_unspecified() {
            poller.watch_addresses()?;
        }
        let egresses = numbered.iter().map(|(_, egress)| &**egress);
        Ok(Self {
            addr: sockets.addr()?,
            local_addrs: sockets
                .egresses
                .iter()
                .map(EgressSocket::local_addr)
                .collect::<Result<_, _>>()?,
            granted: socket::granted(egresses, config.socket_buffers)?,
            inbox: Inbox::new(poller),
            sockets,
        })
    }

    /// The time on the clock of all endpoints of this process.
    pub(crate) fn time() -> Instant {
        Instant::from_nanos(u64::try_from(epoch().elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Converts a time of this clock to one of the system's clock.
    pub(crate) fn clock_at(at: Instant) -> Clock {
        let since = at.saturating_since(Instant::ZERO);
        // A time beyond the range of the system's clock is as good as never.
        epoch().checked_add(since).unwrap_or_else(|| epoch() + FAR)
    }

    /// The address that peers send to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The addresses of all sockets, by egress, except one that other endpoints share.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// The sizes of the socket buffers: the smallest of all egresses.
    pub const fn granted_buffers(&self) -> GrantedBuffers {
        self.granted
    }

    /// The counters so far.
    pub fn counters(&self) -> IoCounters {
        self.sockets.meter.read()
    }

    /// Leaves the address that other endpoints share, if there is one, to them: see
    /// [`Builder::reuse_port`](crate::Builder::reuse_port).
    pub(crate) fn close_shared(&self) {
        self.sockets.close_shared();
    }

    /// A descriptor that is readable when a socket has something to read, or the timer has expired.
    pub(crate) fn readiness(&self) -> std::io::Result<OwnedFd> {
        self.inbox.poller.readiness()
    }

    /// The numbers of the egresses, including those of the destinations `outer` of outer headers, as far as
    /// there are numbers for them.
    pub(crate) fn egresses(&self, outer: &[Ipv4Addr]) -> EgressNumbers {
        self.sockets.numbers(outer)
    }
}

impl PacketIo for UdpIo {
    type Ready = Ready;

    fn now(&self) -> Instant {
        Self::time()
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        self.sockets.send_batch(transmit, contents)
    }

    fn wait(&self, timeout: Duration) -> Ready {
        self.inbox.wait(&self.sockets, timeout)
    }

    fn take(&self, ready: Ready, all: bool, deliver: &mut dyn FnMut(Datagrams<'_>)) {
        self.inbox.take(&self.sockets, ready, all, deliver);
    }

    fn wake(&self) {
        self.inbox.poller.wake();
    }

    fn set_timer(&self, at: Option<Instant>) {
        self.inbox.poller.set_timer(at.map(|at| at.saturating_since(Self::time())));
    }

    fn take_refused(&self, refused: &mut dyn FnMut(SocketAddr, &[u8])) {
        self.inbox.take_refused(refused);
    }

    fn has_moved(&self) -> bool {
        self.inbox.poller.has_moved()
    }

    fn is_ready(&self) -> bool {
        self.inbox.poller.is_ready()
    }

    fn watch(&self) {
        self.inbox.poller.watch();
    }

    fn watch_timer(&self) {
        self.inbox.poller.watch_timer();
    }
}
