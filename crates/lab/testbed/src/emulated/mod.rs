//! Queues that the kernel does not have: those that trim packets or drop selectively.
//!
//! ```text
//!               +-- others --> default queue -------------------------+
//!   port: HTB --+                                                     +--> link
//!               +-- DSCP --> divert == relay     +--> tiny queue -----+
//!                                      |         | (priority 1:10)
//!                                      +- Link --+
//!                                   a thread of each switch
//! ```
//!
//! At each port of a switch, a filter redirects packets with the DSCP to a veth pair. A thread reads
//! them from its other end as whole frames, and passes them through an emulated link with the rate of
//! the port. Frames that the link delivers are sent by the port with a priority that names the class of
//! the tiny queue: HTB puts them there without consulting filters. The link has the limit and the
//! policy; the kernel's queue is as fast, so hardly any frames wait there unless others share the port.
//!
//! A frame enters the link at the time at which the kernel received it, so a late thread drops and
//! trims the same packets. The kernel's timestamps are of the wall clock, which may be set; the links
//! use a monotonic clock, and only the age of a frame is measured by the wall clock.

mod counts;
mod frame;

pub(crate) use counts::{Counts, read};

use crate::address::mac;
use crate::namespace::Namespace;
use crate::topology::{Link as Wire, Node, Topology};
use crate::{Error, plan};
use cloudburst_netem::{Link, LinkConfig, Trim};
use etherparse::IpDscp;
use nix::cmsg_space;
use nix::ifaddrs::getifaddrs;
use nix::libc::timespec;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, bind, recvmsg, sendto, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// All protocols, in network byte order.
const EVERYTHING: u16 = 0x0003_u16.to_be();
/// How often the thread checks whether it should end.
const TICK: Duration = Duration::from_millis(20);
/// Enough for all ports of a switch to be busy for longer than this thread may be delayed.
const BUFFER: usize = 16 << 20;
const LARGEST: usize = 1 << 16;

/// A thread that emulates the queues of a switch until it is dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// # Errors
    ///
    /// If the namespace or its ports do not exist, or packet sockets are not allowed.
    pub(crate) fn start(topology: &Topology, node: Node, place: &Namespace) -> Result<Self, Error> {
        let switch = place.run(|| Switch::open(topology, node))?;
        let doing = format!("cannot emulate queues in {} (CAP_NET_RAW)", place.name());
        let mut switch = switch.map_err(Error::io(doing))?;
        let ended = Arc::new(AtomicBool::new(false));
        let until = ended.clone();
        let thread = thread::Builder::new()
            .name("queues".into())
            .spawn(move || switch.run(&until))
            .map_err(Error::io("cannot start a thread"))?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Switch {
    incoming: Socket,
    outgoing: Socket,
    /// Accepts clients that read the counters.
    asking: UnixListener,
    ports: Vec<EmulatedPort>,
    /// The DSCP of trimmed packets.
    trimmed: Option<IpDscp>,
    /// The epoch of the links' time.
    epoch: Instant,
    /// The time of the links: that of the last frame, or later.
    now: Duration,
}

struct EmulatedPort {
    neighbour: Node,
    /// The destination of frames that leave by this port.
    destination: [u8; 6],
    device: LinkAddr,
    link: Link,
}

impl Switch {
    /// Opens the sockets. Must be called in the namespace of `node`.
    fn open(topology: &Topology, node: Node) -> io::Result<Self> {
        // Packet sockets on a veth pair: a TUN device would need an unsafe `ioctl`, and a bridge between
        // two namespaces would double the number of namespaces.
        let incoming = Socket::new(Domain::PACKET, Type::RAW, Some(i32::from(EVERYTHING).into()))?;
        incoming.set_nonblocking(true)?;
        setsockopt(&incoming, sockopt::RcvBufForce, &BUFFER)?;
        setsockopt(&incoming, sockopt::ReceiveTimestampns, &true)?;
        bind(incoming.as_raw_fd(), &device(plan::RELAY)?)?;
        let mut buffer = vec![0; LARGEST];
        // Discards frames from before it was bound: of all ports, in both directions.
        while receive(&incoming, &mut buffer).is_some() {}
        let outgoing = Socket::new(Domain::PACKET, Type::RAW, None::<Protocol>)?;
        setsockopt(&outgoing, sockopt::SndBufForce, &BUFFER)?;
        setsockopt(&outgoing, sockopt::Priority, &plan::TINY_CLASS)?;
        let trimmed = topology.trim.map(|trim| IpDscp::try_new(trim.dscp)).transpose();
        let port = |neighbour: Node| {
            Ok(EmulatedPort {
                neighbour,
                destination: mac(neighbour, node),
                device: device(&neighbour.to_string())?,
                link: link(topology, Wire::between(node, neighbour))?,
            })
        };
        Ok(Self {
            incoming,
            outgoing,
            asking: counts::listen()?,
            ports: topology.neighbours(node).into_iter().map(port).collect::<io::Result<_>>()?,
            trimmed: trimmed.map_err(io::Error::other)?,
            epoch: Instant::now(),
            now: Duration::ZERO,
        })
    }

    fn run(&mut self, ended: &AtomicBool) {
        let mut buffer = vec![0; LARGEST];
        while !ended.load(Ordering::Relaxed) {
            let is_asked = self.wait();
            while let Some((length, age)) = receive(&self.incoming, &mut buffer) {
                self.now = entered(self.now, self.epoch.elapsed(), age);
                self.take(&buffer[..length]);
                self.send();
            }
            self.now = self.epoch.elapsed();
            self.send();
            if is_asked {
                let counts = self.ports.iter().map(|port| (port.neighbour, Counts::of(&port.link)));
                // The client may be gone.
                let _ = counts::answer(&self.asking, counts.collect());
            }
        }
    }

    /// Waits until a frame has arrived, one is due, or a client wants the counters. Returns whether a
    /// client does.
    fn wait(&self) -> bool {
        let due = self.ports.iter().filter_map(|port| port.link.next_at()).min();
        let longest = due.map_or(TICK, |due| due.saturating_sub(self.epoch.elapsed()).min(TICK));
        let mut ready = [
            PollFd::new(self.incoming.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.asking.as_fd(), PollFlags::POLLIN),
        ];
        ppoll(&mut ready, Some(longest.into()), None).is_ok() && ready[1].any() == Some(true)
    }

    /// Puts a frame on the link of its port.
    fn take(&mut self, frame: &[u8]) {
        let port = self.ports.iter_mut().find(|port| frame.starts_with(&port.destination));
        // The kernel itself sends packets on new interfaces.
        let Some(port) = port else { return };
        port.link.send_marked(self.now, frame::mark(frame), frame);
    }

    /// Sends the frames that the links have delivered by now.
    fn send(&mut self) {
        for port in &mut self.ports {
            while let Some(mut frame) = port.link.poll(self.now) {
                if let Some(dscp) = self.trimmed.filter(|_| frame::is_cut(&frame)) {
                    // Only IP packets are known to be truncated.
                    let _ = frame::mend(&mut frame, dscp);
                }
                // A full queue or a link that is down loses the packet, as in any switch.
                let to = self.outgoing.as_raw_fd();
                let _ = sendto(to, &frame, &port.device, MsgFlags::MSG_DONTWAIT);
            }
        }
    }
}

/// The emulated queue of a port.
fn link(topology: &Topology, wire: Wire) -> io::Result<Link> {
    let packets = topology.tiny_packets as usize;
    let trim = topology.trim.map(|trim| {
        let header = trim.bytes as usize;
        Trim { header, queue: packets * topology.mtu as usize / header }
    });
    let config = LinkConfig {
        rate: Some(topology.link_rate(wire)),
        queue: packets,
        trim,
        selective: topology.selective.map(|bytes| bytes as usize),
        ..LinkConfig::default()
    };
    // Nothing here is random.
    Link::new(config, 0).map_err(io::Error::other)
}

/// Returns the address of an interface of this namespace.
fn device(name: &str) -> io::Result<LinkAddr> {
    let addresses = getifaddrs()?.filter(|address| address.interface_name == name);
    let mut devices = addresses.filter_map(|address| address.address?.as_link_addr().copied());
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface {name}"));
    devices.next().ok_or_else(missing)
}

/// Returns when a frame of this age at `clock` entered the link; the one before it did at `last`.
fn entered(last: Duration, clock: Duration, age: Duration) -> Duration {
    clock.saturating_sub(age).max(last)
}

/// Returns the length of the next frame, and its age.
fn receive(socket: &Socket, buffer: &mut [u8]) -> Option<(usize, Duration)> {
    let mut control = cmsg_space!(timespec);
    let mut slices = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::empty();
    let received =
        recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags).ok()?;
    let at = received.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(at) => Some(at.into()),
        _ => None,
    });
    Some((received.bytes, at.map(age).unwrap_or_default()))
}

/// Returns how long ago the wall clock showed `stamp`; zero if it was set back since.
fn age(stamp: Duration) -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH + stamp).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_neither_stops_a_link_nor_reorders_its_frames() {
        let at = Duration::from_millis;
        assert_eq!(entered(at(5), at(20), at(2)), at(18));
        // After a step back, the stamps of earlier frames are in the future.
        let ahead = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + at(3_600_000);
        assert_eq!(entered(at(18), at(21), age(ahead)), at(21));
        // After a step forward, frames that have just arrived seem old.
        let behind = ahead - at(7_200_000);
        assert!(age(behind) >= at(3_600_000));
        assert_eq!(entered(at(21), at(22), age(behind)), at(21));
    }
}
