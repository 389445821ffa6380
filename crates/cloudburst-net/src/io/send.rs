//! Batches to the wire: whatever goes wrong is packet loss, counted.

use super::UdpIo;
use super::marks::Mark;
use super::socket::Lane;
use cloudburst_core::error::LocalError;
use cloudburst_core::proto::Transmit;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

/// What one call with UDP_SEGMENT takes at most (UDP_MAX_SEGMENTS of older kernels).
const MAX_SEGMENTS: usize = 64;
/// The largest UDP payload over IPv4.
const MAX_BYTES: usize = 65_507;

/// Where datagrams go, and what they carry there.
struct Destination {
    addr: SockaddrStorage,
    /// Unless it is the socket's own.
    mark: Option<Mark>,
}

impl UdpIo {
    /// Sends datagrams; an error if the system took none of them.
    pub(super) fn send_batch(
        &self,
        transmit: &Transmit,
        contents: &[u8],
    ) -> Result<(), LocalError> {
        let number = usize::from(transmit.via.lane);
        let (size, len) = (transmit.segment_size.max(1), transmit.len.min(contents.len()));
        let remote = transmit.via.remote;
        let (lane, label) = match self.lane(transmit.via.lane) {
            Some(lane) => (lane, 0),
            None => match self.labels.get(number - self.lanes.len()) {
                Some(&label) => (&self.lanes[0], label),
                None => {
                    let number = number - self.lanes.len() - self.labels.len();
                    return self.send_encapsulated(number, transmit, &contents[..len], size);
                }
            },
        };
        let to = Destination {
            addr: labelled(self.family.to_socket(remote), label).into(),
            mark: self.dscps.mark(transmit.marking, remote),
        };
        let most = (MAX_BYTES / size).clamp(1, MAX_SEGMENTS);
        let batches = contents[..len].chunks(most * size);
        any(batches.map(|batch| {
            if batch.len() > size && lane.gso.load(Relaxed) {
                self.send_segmented(lane, &to, batch, size)
            } else {
                self.send_singly(lane, &to, batch, size)
            }
        }))
    }

    /// One call for all datagrams; where the device cannot do that, one for each.
    fn send_segmented(
        &self,
        lane: &Lane,
        to: &Destination,
        batch: &[u8],
        size: usize,
    ) -> Result<(), LocalError> {
        let datagrams = batch.len().div_ceil(size);
        match self.send_once(lane, to, batch, Some(size)) {
            Ok(()) => {
                self.meter.batches_sent.add(1);
                self.meter.datagrams_sent.add(datagrams);
                Ok(())
            }
            Err(error @ (Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP | Errno::EMSGSIZE)) => {
                // The address may be to blame, or a path too narrow for a segment, which the
                // system would cut into fragments: the device is, if single datagrams pass.
                let singly = self.send_singly(lane, to, batch, size);
                let device = singly.is_ok() && error != Errno::EMSGSIZE;
                if device && lane.gso.swap(false, Relaxed) {
                    self.meter.gso_fallbacks.add(1);
                    tracing::debug!(socket = ?lane.socket, "no segmentation offload: one by one");
                }
                singly
            }
            Err(error) => self.count_loss(error, datagrams),
        }
    }

    /// One call for each datagram.
    fn send_singly(
        &self,
        lane: &Lane,
        to: &Destination,
        batch: &[u8],
        size: usize,
    ) -> Result<(), LocalError> {
        any(batch.chunks(size).map(|datagram| {
            self.send_once(lane, to, datagram, None).or_else(|error| self.count_loss(error, 1))?;
            self.meter.batches_sent.add(1);
            self.meter.datagrams_sent.add(1);
            Ok(())
        }))
    }

    fn send_once(
        &self,
        lane: &Lane,
        to: &Destination,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> Result<(), Errno> {
        #[cfg(test)]
        if segment.is_some() && self.gso_broken.load(Relaxed) {
            return Err(Errno::EIO);
        }
        let segment = segment.map(|size| size as u16);
        let segment = segment.as_ref().map(ControlMessage::UdpGsoSegments);
        let mark = to.mark.as_ref().map(Mark::control);
        let both;
        let control = match (&segment, &mark) {
            (Some(segment), Some(mark)) => {
                both = [*segment, *mark];
                &both
            }
            (segment, mark) => segment.as_ref().or(mark.as_ref()).map_or(&[][..], slice::from_ref),
        };
        loop {
            let sent = sendmsg(
                lane.socket.as_raw_fd(),
                &[IoSlice::new(bytes)],
                control,
                MsgFlags::MSG_DONTWAIT,
                Some(&to.addr),
            );
            match sent {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts what the system did not take, and says so.
    pub(super) fn count_loss(&self, error: Errno, datagrams: usize) -> Result<(), LocalError> {
        let meter = &self.meter;
        let (class, error) = match error {
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => {
                (&meter.no_buffer, LocalError::NoBuffer)
            }
            Errno::ECONNREFUSED => (&meter.refused, LocalError::Other),
            Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::ENETDOWN
            | Errno::EHOSTDOWN
            | Errno::EADDRNOTAVAIL
            | Errno::ENODEV => (&meter.unreachable, LocalError::Unreachable),
            Errno::EPERM | Errno::EACCES => (&meter.denied, LocalError::Denied),
            Errno::EMSGSIZE => (&meter.too_large, LocalError::TooLarge),
            _ => (&meter.other, LocalError::Other),
        };
        class.add(datagrams);
        Err(error)
    }
}

/// Whether any of these was sent; the last error if none was. All are tried.
pub(super) fn any(sent: impl Iterator<Item = Result<(), LocalError>>) -> Result<(), LocalError> {
    sent.reduce(|any, one| any.or(one)).unwrap_or(Ok(()))
}

/// The address with a flow label, which the system sends as it is: in network order.
fn labelled(mut to: SocketAddr, label: u32) -> SocketAddr {
    if let SocketAddr::V6(to) = &mut to {
        to.set_flowinfo(label.to_be());
    }
    to
}

#[cfg(test)]
mod tests {
    use crate::builder::Builder;
    use crate::path_map::PathMap;
    use cloudburst_core::config::Security;

    #[test]
    fn a_device_that_cannot_segment_gets_single_datagrams_from_then_on() {
        let builder = || {
            let loopback = "127.0.0.1:0".parse().unwrap();
            let builder = Builder::new().bind(loopback).paths(PathMap::ecmp(8));
            builder.security(Security::pre_shared([7; 32]))
        };
        let client = builder().build_without_segmentation().unwrap().blocking();
        let server = builder().build().unwrap().blocking();
        let bytes: Vec<u8> = (0..93_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        for _ in 0..3 {
            client.send(server.local_addr(), bytes.clone()).unwrap();
            assert_eq!(server.recv().unwrap().bytes, bytes);
        }
        let io = client.counters().io;
        assert_eq!(io.gso_fallbacks, 8, "once a socket");
        assert_eq!(io.batches_sent, io.datagrams_sent);
        assert_eq!(io.send_errors.total(), 0, "what the device refused was sent again");
    }
}
