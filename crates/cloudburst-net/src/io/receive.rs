//! Receives datagrams in batches.

use super::filter::is_refusal;
use super::marks::is_ce;
use super::poller::{Poller, Ready};
use super::socket::{EgressSocket, from_sockaddr};
use super::sockets::Sockets;
use super::source::destination;
use super::unreachable::{self, Refused};
use cloudburst_core::burst::Datagrams;
use cloudburst_core::path::Via;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, recvmsg,
};
use nix::{cmsg_space, libc};
use std::array;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The buffers that one call fills. Each may hold many datagrams that the system has coalesced.
const BUFFERS: usize = 16;
/// The most bytes that the system coalesces.
const BUFFER_LEN: usize = 65_536;
/// The most rounds over all egresses in one call that takes all packets.
const MAX_ROUNDS: usize = 64;

/// The contents of one buffer.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    from: SocketAddr,
    /// The local address to answer from, if the system reported it.
    local: Option<IpAddr>,
    len: usize,
    /// Bytes in each datagram but the last.
    segment: usize,
    /// DSCP and ECN, if the system reported them.
    mark: Option<u8>,
}

/// Receives packets from sockets.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) poller: Poller,
    /// The receive buffers, of the thread that takes packets.
    buffers: Mutex<Vec<u8>>,
    /// Packets to closed ports that were not taken yet, and whether there are any.
    refused: Mutex<Vec<Refused>>,
    has_refused: AtomicBool,
}

impl Inbox {
    pub(super) fn new(poller: Poller) -> Self {
        let buffers = Mutex::new(vec![0; BUFFERS * BUFFER_LEN]);
        Self { poller, buffers, refused: Mutex::default(), has_refused: AtomicBool::new(false) }
    }

    /// Calls `handle` with the destination and the first bytes of each packet that was refused.
    pub(super) fn take_refused(&self, handle: &mut dyn FnMut(SocketAddr, &[u8])) {
        if self.has_refused.load(Relaxed) && self.has_refused.swap(false, Relaxed) {
            for refused in self.refused().drain(..) {
                handle(refused.to, &refused.quoted);
            }
        }
    }

    fn refused(&self) -> MutexGuard<'_, Vec<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the errors of a socket, which would keep it ready forever. Returns how many were in its queue.
    fn read_errors(&self, sockets: &Sockets, egress: &EgressSocket) -> usize {
        let mut refused = self.refused();
        let found = unreachable::read(egress, &mut refused);
        self.has_refused.store(!refused.is_empty(), Relaxed);
        // Reading the queue clears the pending errors that come from it, but for those that are new.
        if let Ok(Some(error)) = egress.socket.take_error()
            && found == 0
        {
            sockets.meter.receive_errors.add(1);
            tracing::debug!(%error, "a socket reports an error");
        }
        sockets.meter.receive_errors.add(found);
        found
    }

    /// Waits for packets for at most `timeout`.
    pub(super) fn wait(&self, sockets: &Sockets, timeout: Duration) -> Ready {
        self.poller.wait(timeout).unwrap_or_else(|error| {
            if sockets.meter.receive_errors.add(1) == 0 {
                tracing::warn!(%error, "cannot wait for packets");
            }
            Poller::rest();
            Ready::nothing()
        })
    }

    /// Takes one batch of each egress that is ready, or everything that is there, up to a limit.
    pub(super) fn take(
        &self,
        sockets: &Sockets,
        mut ready: Ready,
        all: bool,
        deliver: &mut dyn FnMut(Datagrams<'_>),
    ) {
        for _ in 0..MAX_ROUNDS {
            if !self.take_round(sockets, &ready, deliver) || !all {
                break;
            }
            ready = self.wait(sockets, Duration::ZERO);
        }
    }

    /// Takes one batch of each egress that is ready. Returns whether more may have been there.
    fn take_round(
        &self,
        sockets: &Sockets,
        ready: &Ready,
        deliver: &mut dyn FnMut(Datagrams<'_>),
    ) -> bool {
        let mut egresses = ready.egresses().peekable();
        if egresses.peek().is_none() {
            return false;
        }
        // After a panic, they hold just other bytes.
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut came = 0;
        let mut errors = 0;
        let mut more = ready.is_full();
        let mut error = None;
        for (number, failed) in egresses {
            let Some(egress) = sockets.egress(number) else { continue };
            errors += if failed { self.read_errors(sockets, &egress) } else { 0 };
            let filled = sockets.receive_egress(number, &egress, &mut buffers, deliver);
            came += filled.unwrap_or(0);
            error = filled.err().or(error);
            // After an error, the socket may still hold packets. Otherwise, only a full batch is a reason for
            // another call: one that finds no packet takes 300 ns.
            more |= failed || !filled.is_ok_and(|filled| filled < BUFFERS);
        }
        drop(buffers);
        if self.poller.rest_if_fruitless(came + errors > 0) {
            let error = error.map(tracing::field::display);
            tracing::warn!(error, "sockets are readable, but give no packet: nothing arrives");
        }
        more && came > 0
    }
}

impl Sockets {
    /// Takes one batch of an egress. Returns how many buffers it filled.
    fn receive_egress(
        &self,
        number: u16,
        egress: &EgressSocket,
        buffers: &mut [u8],
        deliver: &mut dyn FnMut(Datagrams<'_>),
    ) -> Result<usize, Errno> {
        let mut arrived = [None; BUFFERS];
        let filled = match self.read(egress, buffers, &mut arrived) {
            Ok(filled) => filled,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            Err(error) => {
                // An ICMP message about an earlier packet, or trouble with the interface.
                self.meter.receive_errors.add(1);
                return Err(error);
            }
        };
        self.meter.batches_received.add(filled);
        for (buffer, arrived) in buffers.chunks_mut(BUFFER_LEN).zip(arrived) {
            let Some(Arrived { from, local, len, segment, mark }) = arrived else { continue };
            let via = Via { egress: number, local, remote: from };
            let datagrams = len.div_ceil(segment).max(1);
            self.meter.datagrams_received.add(datagrams);
            if let Some(mark) = mark {
                self.dscps.note(&self.meter, mark, datagrams, from, &buffer[..len]);
            }
            let ce = mark.is_some_and(is_ce);
            // A coalesced batch is delivered under one lock: 44 packets take some 20 us.
            deliver(Datagrams { via, bytes: &mut buffer[..len], segment_size: segment, ce });
        }
        Ok(filled)
    }

    fn read(
        &self,
        egress: &EgressSocket,
        buffers: &mut [u8],
        arrived: &mut [Option<Arrived>; BUFFERS],
    ) -> Result<usize, Errno> {
        if !self.takes_singly.load(Relaxed) {
            match self.read_batch(egress, buffers, arrived) {
                // A filter that was installed after the sockets were opened.
                Err(error) if is_refusal(error) => self.take_singly(error),
                read => return read,
            }
        }
        self.read_singly(egress, buffers, arrived)
    }

    /// Fills all buffers by one system call.
    fn read_batch(
        &self,
        egress: &EgressSocket,
        buffers: &mut [u8],
        arrived: &mut [Option<Arrived>; BUFFERS],
    ) -> Result<usize, Errno> {
        // New headers for each call: the system shortens them to what it wrote, and the next call
        // might not have enough space in shortened ones.
        let mut headers =
            MultiHeaders::<SockaddrStorage>::preallocate(BUFFERS, Some(control_space()));
        let mut buffers = buffers.chunks_mut(BUFFER_LEN);
        let mut slices: [[IoSliceMut<'_>; 1]; BUFFERS] =
            array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let results = recvmmsg(
            egress.socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        let mut filled = 0;
        for (message, arrived) in results.zip(arrived) {
            filled += 1;
            *arrived = self.read_header(egress, &message);
        }
        Ok(filled)
    }

    /// Fills the buffers by a system call each.
    fn read_singly(
        &self,
        egress: &EgressSocket,
        buffers: &mut [u8],
        arrived: &mut [Option<Arrived>; BUFFERS],
    ) -> Result<usize, Errno> {
        let mut control = control_space();
        let mut filled = 0;
        for (buffer, arrived) in buffers.chunks_mut(BUFFER_LEN).zip(arrived) {
            let mut slice = [IoSliceMut::new(buffer)];
            let fd = egress.socket.as_raw_fd();
            let read = recvmsg(fd, &mut slice, Some(&mut control), MsgFlags::MSG_DONTWAIT);
            match read {
                Ok(message) => *arrived = self.read_header(egress, &message),
                Err(error) if filled == 0 => return Err(error),
                // What has arrived counts; the next call reports an error that lasts.
                Err(_) => break,
            }
            filled += 1;
        }
        Ok(filled)
    }

    pub(super) fn take_singly(&self, error: Errno) {
        self.takes_singly.store(true, Relaxed);
        tracing::warn!(%error, "the system refuses recvmmsg: taking datagrams one by one, at a higher cost");
    }

    /// Reads the header of one buffer. `None` if the contents were truncated.
    fn read_header(
        &self,
        egress: &EgressSocket,
        message: &RecvMsg<'_, '_, SockaddrStorage>,
    ) -> Option<Arrived> {
        let mut segment = message.bytes.max(1);
        let mut mark = None;
        let mut local = None;
        let whole = !message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
        let Some(control) = message.cmsgs().ok().filter(|_| whole) else {
            self.meter.truncated.add(1);
            return None;
        };
        for control in control {
            match control {
                ControlMessageOwned::UdpGroSegments(size) if size > 0 => segment = size as usize,
                ControlMessageOwned::RxqOvfl(drops) => self.count_drops(egress, drops),
                ControlMessageOwned::Ipv4Tos(byte) => mark = Some(byte),
                ControlMessageOwned::Ipv6TClass(class) => mark = u8::try_from(class).ok(),
                other => local = destination(&other).or(local),
            }
        }
        let from = from_sockaddr(message.address.as_ref()?)?;
        Some(Arrived { from, local, len: message.bytes, segment, mark })
    }

    /// Adds drops from the system's own counter, which wraps around, and of which another thread
    /// may have read a later value.
    fn count_drops(&self, egress: &EgressSocket, drops: u32) {
        let newer = |known: u32| {
            let more = drops.wrapping_sub(known);
            (1..u32::MAX / 2).contains(&more).then_some(drops)
        };
        if let Ok(known) = egress.drops.fetch_update(Relaxed, Relaxed, newer) {
            self.meter.kernel_drops.add(drops.wrapping_sub(known) as usize);
        }
    }
}

/// Space for the segment size, the drops, the mark, and the destination, which is longer for IPv6.
fn control_space() -> Vec<u8> {
    cmsg_space!(i32, u32, i32, libc::in6_pktinfo)
}
