//! UDP sockets behind the core's [`PacketIo`].
//!
//! A lane is a socket; or, for packets that leave, a flow label or an outer header that lane 0
//! gets. Lane 0 has the address that peers send to. The next ones have the ports right after it, if
//! messages are taken there too; the others have ports that the system picks, and exist for
//! switches to hash their packets onto other paths.
//!
//! With `reuse_port`, the address that peers send to is that of one more socket, which takes
//! handshakes; lane 0 then has a port that the system picks.
//!
//! IPv6 sockets take IPv6 alone, but for `[::]`, which takes IPv4 as well. IPv4 addresses are
//! always plain ones in [`Via`]: the mapped form (`::ffff:a.b.c.d`) ends here.

mod counters;
mod encapsulate;
mod marks;
mod ports;
mod receive;
mod send;
mod socket;

pub use counters::{EcnCounts, IoCounters, SendErrors};
pub(crate) use encapsulate::OUTER_LEN;
pub use socket::GrantedBuffers;
pub(crate) use socket::plain;

use crate::error::BuildError;
use crate::path_map::Lanes;
use cloudburst_core::burst::PacketIo;
use cloudburst_core::error::LocalError;
use cloudburst_core::path::Via;
use cloudburst_core::proto::Transmit;
use cloudburst_core::time::Instant;
use core::time::Duration;
use counters::Meter;
use encapsulate::Encapsulator;
use marks::Dscps;
use nix::sys::epoll::Epoll;
use nix::sys::eventfd::{EfdFlags, EventFd};
use receive::Batches;
pub use receive::Ready;
use socket::{Family, Lane};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::time::Instant as Clock;

/// The lane of the socket whose port others have, too. No path leads there: all that leaves by it
/// are answers to the handshakes that came in by it.
const SHARED: u16 = u16::MAX;

/// A hundred years.
const FAR: Duration = Duration::from_secs(3_155_760_000);

/// How the sockets are to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The address that peers send to: that of lane 0, unless it is shared. All lanes have its IP.
    pub bind: SocketAddr,
    /// Whether others may have that address, too (SO_REUSEPORT).
    pub reuse_port: bool,
    /// How many sockets, at least one.
    pub sockets: u16,
    /// How many of them have ports in a row, from that of lane 0 on; at least one.
    pub ports: u16,
    /// How many IPv6 flow labels, if any.
    pub flow_labels: u16,
    /// Whether packets may be sent within others, which takes CAP_NET_RAW.
    pub encapsulates: bool,
    /// The DSCPs of classes 0, 1 and so on, each from 0 to 63; one to eight. Classes beyond the last
    /// share it.
    pub dscps: Vec<u8>,
    /// Bytes to ask for, for each receive and each send buffer.
    pub socket_buffers: usize,
}

/// Sockets, one a lane, and a monotonic clock that began when they were opened.
#[derive(Debug)]
pub struct UdpIo {
    lanes: Vec<Lane>,
    /// How many of them take messages.
    ports: u16,
    /// The lane [`SHARED`], if the port that peers know is one.
    shared: Option<Lane>,
    /// The lanes after those: flow labels.
    labels: Vec<u32>,
    /// The lanes after those: outer headers.
    encapsulator: Option<Encapsulator>,
    family: Family,
    dscps: Dscps,
    /// What peers send to.
    addr: SocketAddr,
    local_addrs: Vec<SocketAddr>,
    granted: GrantedBuffers,
    epoch: Clock,
    meter: Meter,
    /// Counts tokens: each ends the wait of one thread.
    wakes: EventFd,
    /// How many there are, or are about to be.
    tokens: AtomicUsize,
    /// Tells which lanes have something, and of tokens.
    ready: Epoll,
    /// Threads that are waiting for packets.
    waiting: AtomicUsize,
    /// How often in a row sockets were ready and had nothing.
    fruitless: AtomicU32,
    /// Receive buffers that no thread is using.
    batches: Mutex<Vec<Batches>>,
    /// As if this device could not segment.
    #[cfg(test)]
    gso_broken: std::sync::atomic::AtomicBool,
}

impl UdpIo {
    /// Opens the sockets.
    ///
    /// # Errors
    ///
    /// [`BuildError::Dscp`], [`BuildError::Dscps`], [`BuildError::Bind`],
    /// [`BuildError::NoRawSocket`], [`BuildError::SocketOption`] or [`BuildError::Threads`].
    pub fn open(config: &UdpConfig) -> Result<Self, BuildError> {
        let &UdpConfig { sockets, ports, flow_labels, encapsulates, socket_buffers, .. } = config;
        let bind = plain(config.bind);
        let dscps = Dscps::new(&config.dscps)?;
        let family = Family::of(bind);
        let tos = dscps.socket_byte();
        let open_as = |addr, reuse| Lane::open(addr, family, tos, socket_buffers, reuse);
        let open = |addr| open_as(addr, false);
        let mut pool_addr = bind;
        pool_addr.set_port(0);
        let first = if config.reuse_port { pool_addr } else { bind };
        let mut all = ports::open_in_a_row(first, ports, open)?;
        while all.len() < usize::from(sockets) {
            all.push(open(pool_addr)?);
        }
        let labels =
            if flow_labels > 0 { all[0].choose_flow_labels(flow_labels)? } else { Vec::new() };
        let bound = all[0].local_addr()?;
        let encapsulator = match encapsulates {
            true => Some(Encapsulator::open(bound, socket_buffers)?),
            false => None,
        };
        let local_addrs = all.iter().map(Lane::local_addr).collect::<Result<_, _>>()?;
        // The last one: whoever is dealt a handshake must be ready for what follows it.
        let shared = config.reuse_port.then(|| open_as(bind, true)).transpose()?;
        let granted = socket::granted(all.iter().chain(&shared), socket_buffers)?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        let wakes = EventFd::from_flags(flags).map_err(|e| BuildError::Threads(e.into()))?;
        let ready = receive::watch(&all, shared.as_ref(), &wakes)
            .map_err(|e| BuildError::Threads(e.into()))?;
        Ok(Self {
            addr: shared.as_ref().unwrap_or(&all[0]).local_addr()?,
            lanes: all,
            ports,
            shared,
            labels,
            encapsulator,
            family,
            dscps,
            local_addrs,
            granted,
            epoch: Clock::now(),
            meter: Meter::default(),
            wakes,
            tokens: AtomicUsize::new(0),
            ready,
            waiting: AtomicUsize::new(0),
            fruitless: AtomicU32::new(0),
            batches: Mutex::new(Vec::new()),
            #[cfg(test)]
            gso_broken: false.into(),
        })
    }

    /// What the system's clock says at a moment of this one.
    pub(crate) fn clock_at(&self, at: Instant) -> Clock {
        let since = at.saturating_since(Instant::ZERO);
        // Beyond what the system can count is as good as never.
        self.epoch.checked_add(since).unwrap_or_else(|| self.epoch + FAR)
    }

    /// The address that peers send to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The addresses of all lanes, by lane.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    fn lane(&self, number: u16) -> Option<&Lane> {
        if number == SHARED { self.shared.as_ref() } else { self.lanes.get(usize::from(number)) }
    }

    /// The sizes of the socket buffers: the smallest of all lanes.
    pub const fn granted_buffers(&self) -> GrantedBuffers {
        self.granted
    }

    /// What was sent, received and lost so far.
    pub fn counters(&self) -> IoCounters {
        self.meter.read()
    }

    /// Readable when a lane has something, or when a wait is to end.
    pub(crate) fn readiness(&self) -> std::io::Result<OwnedFd> {
        self.ready.0.try_clone()
    }

    #[cfg(test)]
    pub(crate) fn break_segmentation(&self) {
        self.gso_broken.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Which peers sockets that were bound to `bind` can send to.
    pub(crate) const fn reach_of(bind: SocketAddr) -> fn(IpAddr) -> bool {
        Family::of(bind).reach()
    }

    /// The most destinations of outer headers that one endpoint ever has.
    pub(crate) const MAX_OUTER: usize = encapsulate::MAX_OUTER;

    /// The lanes, and among them those of these destinations of outer headers, as far as there is
    /// room for them.
    pub(crate) fn lanes(&self, outer: &[Ipv4Addr]) -> Lanes {
        let (sockets, labels) = (self.lanes.len() as u16, self.labels.len() as u16);
        let numbers = self.encapsulator.as_ref().map(|by| by.numbers(outer)).unwrap_or_default();
        let lane = |(ip, number)| (ip, sockets + labels + number);
        Lanes {
            sockets,
            ports: self.ports,
            labels,
            encapsulates: self.encapsulator.is_some(),
            outer: numbers.into_iter().map(lane).collect(),
        }
    }
}

impl PacketIo for UdpIo {
    type Ready = Ready;

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError> {
        self.send_batch(transmit, contents)
    }

    fn wait(&self, timeout: Duration) -> Ready {
        self.wait_for_lanes(timeout)
    }

    fn take(&self, ready: Ready, deliver: &mut dyn FnMut(Via, &mut [u8])) {
        self.take_ready(ready, deliver);
    }

    fn wake(&self) {
        self.wake_waiting();
    }
}
