//! Sends batches. Every failure counts as packet loss.

use super::loss::any;
use super::marks::Mark;
use super::socket::EgressSocket;
use super::sockets::{Egress, SHARED, Sockets};
use super::source::Source;
use crate::limits::MAX_UDP_PAYLOAD;
use arrayvec::ArrayVec;
use cloudburst_core::error::LocalError;
use cloudburst_core::proto::Transmit;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;

/// The most datagrams in one call with UDP_SEGMENT (UDP_MAX_SEGMENTS of older kernels).
const MAX_SEGMENTS: usize = 64;

/// How often a call is repeated that ends by an error which an ICMP message may have left behind. More than
/// once, because another message may arrive in between.
const PENDING_ERRORS: u32 = 5;

/// Where datagrams go, from which address and with which mark.
struct Destination {
    addr: SockaddrStorage,
    /// The local address that they leave from, unless the system picks it.
    source: Option<Source>,
    /// Their mark, unless it is the socket's own.
    mark: Option<Mark>,
}

impl Sockets {
    /// Sends datagrams. Fails if the system accepted none of them.
    pub(super) fn send_batch(
        &self,
        transmit: &Transmit,
        contents: &[u8],
    ) -> Result<(), LocalError> {
        let number = usize::from(transmit.via.egress);
        let size = transmit.segment_size.max(1);
        let len = transmit.len.min(contents.len());
        let remote = transmit.via.remote;
        let (egress, label) = match self.egress(transmit.via.egress) {
            Some(egress) => (egress, 0),
            // Closed meanwhile: others answer the handshakes there.
            None if transmit.via.egress == SHARED => return Err(LocalError::Other),
            None => match self.labels.get(number - self.egresses.len()) {
                Some(&label) => (Egress::Own(&self.egresses[0]), label),
                None => return self.send_encapsulated(transmit, &contents[..len], size),
            },
        };
        let to = Destination {
            addr: labelled(self.family.to_socket(remote), label).into(),
            source: Source::new(transmit.via.local, remote),
            mark: self.dscps.mark(transmit.marking, remote),
        };
        // One call for a train is most of what sending costs. `sendmmsg` would save a twentieth of
        // a call, `io_uring` a tenth, and MSG_ZEROCOPY nothing, since 64 KB are copied in 8 us.
        let most = (MAX_UDP_PAYLOAD / size).clamp(1, MAX_SEGMENTS);
        let batches = contents[..len].chunks(most * size);
        any(batches.map(|batch| {
            if batch.len() > size && egress.gso.load(Relaxed) {
                self.send_segmented(&egress, &to, batch, size)
            } else {
                self.send_singly(&egress, &to, batch, size)
            }
        }))
    }

    /// Sends each datagram in an outer packet.
    fn send_encapsulated(
        &self,
        transmit: &Transmit,
        contents: &[u8],
        size: usize,
    ) -> Result<(), LocalError> {
        let number = usize::from(transmit.via.egress) - self.egresses.len() - self.labels.len();
        let way = self.encapsulator.as_ref().and_then(|by| Some((by, by.destination(number)?)));
        let (Some((by, outer)), SocketAddr::V4(to)) = (way, transmit.via.remote) else {
            debug_assert!(false, "the path map knows only egresses that exist, and their peers");
            return Err(LocalError::Other);
        };
        let tos = self.dscps.byte(transmit.marking);
        any(contents.chunks(size).map(|datagram| {
            let sent = by.send(tos, outer, to, datagram);
            sent.map_err(|error| self.meter.count_loss(error, 1))?;
            self.meter.batches_sent.add(1);
            self.meter.datagrams_sent.add(1);
            Ok(())
        }))
    }

    /// Sends all datagrams in one call or, if the device cannot segment them, in one call each.
    fn send_segmented(
        &self,
        egress: &EgressSocket,
        to: &Destination,
        batch: &[u8],
        size: usize,
    ) -> Result<(), LocalError> {
        let datagrams = batch.len().div_ceil(size);
        match self.send_once(egress, to, batch, Some(size)) {
            Ok(()) => {
                self.meter.batches_sent.add(1);
                self.meter.datagrams_sent.add(datagrams);
                Ok(())
            }
            Err(error @ (Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP | Errno::EMSGSIZE)) => {
                // The address may be to blame, or an interface whose MTU is smaller than a segment (EINVAL
                // of older kernels, EMSGSIZE of newer ones). After other errors, the device is, if single
                // datagrams pass.
                let singly = self.send_singly(egress, to, batch, size);
                let device = matches!(error, Errno::EIO | Errno::EOPNOTSUPP) && singly.is_ok();
                if device && egress.gso.swap(false, Relaxed) {
                    self.meter.gso_fallbacks.add(1);
                    tracing::debug!(socket = ?egress.socket, "no segmentation offload: sending datagrams one by one");
                }
                singly
            }
            Err(error) => Err(self.meter.count_loss(error, datagrams)),
        }
    }

    /// Sends each datagram in a call of its own.
    fn send_singly(
        &self,
        egress: &EgressSocket,
        to: &Destination,
        batch: &[u8],
        size: usize,
    ) -> Result<(), LocalError> {
        any(batch.chunks(size).map(|datagram| {
            self.send_once(egress, to, datagram, None)
                .map_err(|error| self.meter.count_loss(error, 1))?;
            self.meter.batches_sent.add(1);
            self.meter.datagrams_sent.add(1);
            Ok(())
        }))
    }

    fn send_once(
        &self,
        egress: &EgressSocket,
        to: &Destination,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> Result<(), Errno> {
        #[cfg(test)]
        if segment.is_some()
            && let Some(error) = (self.gso_error)(self.gso_batches.fetch_add(1, Relaxed))
        {
            return Err(error);
        }
        let segment = segment.map(|size| size as u16);
        let segment = segment.as_ref().map(ControlMessage::UdpGsoSegments);
        let mark = to.mark.as_ref().map(Mark::control);
        let mut source = to.source.as_ref().map(Source::control);
        let mut tries = 0..PENDING_ERRORS;
        loop {
            let control: ArrayVec<_, 3> = [segment, mark, source].into_iter().flatten().collect();
            let sent = sendmsg(
                egress.socket.as_raw_fd(),
                &[IoSlice::new(bytes)],
                &control,
                MsgFlags::MSG_DONTWAIT,
                Some(&to.addr),
            );
            match sent {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) if may_be_pending(error) && tries.next().is_some() => {}
                // The host may have lost the source address. Peers accept packets from another one.
                Err(Errno::EINVAL | Errno::ENETUNREACH | Errno::EADDRNOTAVAIL)
                    if source.take().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether an ICMP message about an earlier packet, perhaps a forged one, may be the reason: it ends the next
/// call, whatever that sends and to whom.
const fn may_be_pending(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::EHOSTDOWN
            | Errno::ENONET
            | Errno::ENOPROTOOPT
            | Errno::EPROTO
            | Errno::EOPNOTSUPP
            | Errno::EACCES
            | Errno::EMSGSIZE
    )
}

/// The address with a flow label, in network order, in which the system sends it.
fn labelled(mut to: SocketAddr, label: u32) -> SocketAddr {
    if let SocketAddr::V6(to) = &mut to {
        to.set_flowinfo(label.to_be());
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::config::UdpConfig;
    use cloudburst_core::path::Via;
    use cloudburst_core::proto::{Class, Contents, Ecn, Marking};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    struct Rig {
        sockets: Sockets,
        receiver: UdpSocket,
    }

    impl Rig {
        /// Eight sockets. `gso_error` is the system's error for a batch to segment, by its number.
        fn new(gso_error: fn(usize) -> Option<Errno>) -> Self {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let config = UdpConfig::for_test("127.0.0.1:0".parse().unwrap(), 8);
            let mut sockets = Sockets::open(&config, Vec::new()).unwrap();
            sockets.gso_error = gso_error;
            Self { sockets, receiver }
        }

        /// Sends datagrams, the last of which is shorter.
        fn send(&self, egress: u16, datagrams: usize) -> Result<(), LocalError> {
            let contents = contents(datagrams);
            let transmit = Transmit {
                contents: Contents::Answers,
                via: Via { egress, local: None, remote: self.receiver.local_addr().unwrap() },
                segment_size: SIZE,
                len: contents.len(),
                marking: Marking { class: Class::DATA, ecn: Ecn::NotEct },
            };
            self.sockets.send_batch(&transmit, &contents)
        }

        /// Checks that of `datagrams`, those numbered in `arrive` arrive, in order, and no others.
        fn expect(&self, datagrams: usize, arrive: impl Iterator<Item = usize>) {
            let contents = contents(datagrams);
            let sent: Vec<&[u8]> = contents.chunks(SIZE).collect();
            for at in arrive {
                let mut came = [0; 64];
                let len = self.receiver.recv(&mut came).unwrap();
                assert_eq!(&came[..len], sent[at], "datagram {at}");
            }
            self.receiver.set_nonblocking(true).unwrap();
            assert!(self.receiver.recv(&mut [0; 64]).is_err(), "and no others");
            self.receiver.set_nonblocking(false).unwrap();
        }

        /// Sends datagrams, and checks that they arrive.
        fn send_all(&self, egress: u16, datagrams: usize) {
            self.send(egress, datagrams).unwrap();
            self.expect(datagrams, 0..datagrams);
        }
    }

    /// Bytes of a datagram.
    const SIZE: usize = 30;

    fn contents(datagrams: usize) -> Vec<u8> {
        (0..datagrams * SIZE - 20).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn a_device_without_gso_gets_single_datagrams_from_then_on() {
        let rig = Rig::new(|_| Some(Errno::EIO));
        (0..8).chain(0..8).for_each(|egress| rig.send_all(egress, 4));
        let counters = rig.sockets.meter.read();
        assert_eq!(counters.gso_fallbacks, 8, "once a socket");
        assert_eq!((counters.batches_sent, counters.datagrams_sent), (64, 64));
        assert_eq!(counters.send_errors.total(), 0, "what the device refused was sent again");
    }

    #[test]
    fn one_narrow_path_does_not_end_segmentation_for_the_others() {
        for (narrow, refuse) in [
            (Errno::EINVAL, (|_| Some(Errno::EINVAL)) as fn(usize) -> _),
            (Errno::EMSGSIZE, |_| Some(Errno::EMSGSIZE)),
        ] {
            let rig = Rig::new(refuse);
            rig.send_all(0, 4);
            let counters = rig.sockets.meter.read();
            assert_eq!((counters.batches_sent, counters.datagrams_sent), (4, 4), "{narrow}");
            assert_eq!((counters.gso_fallbacks, counters.send_errors.total()), (0, 0), "{narrow}");
            assert!(rig.sockets.egresses[0].gso.load(Relaxed), "{narrow}");
        }
    }

    #[test]
    fn a_system_call_sends_64_datagrams_or_one_without_gso() {
        for (datagrams, calls) in [(64, 1), (65, 2), (130, 3)] {
            let rig = Rig::new(|_| None);
            rig.send_all(0, datagrams);
            let counters = rig.sockets.meter.read();
            let sent = (counters.batches_sent, counters.datagrams_sent);
            assert_eq!(sent, (calls, datagrams as u64));

            let rig = Rig::new(|_| Some(Errno::EIO));
            rig.send_all(0, datagrams);
            let counters = rig.sockets.meter.read();
            let sent = (counters.batches_sent, counters.datagrams_sent);
            assert_eq!(sent, (datagrams as u64, datagrams as u64));
            assert_eq!(counters.gso_fallbacks, 1, "no other batch was tried");
        }
    }

    #[test]
    fn only_the_datagrams_that_the_system_refuses_are_lost() {
        let rig = Rig::new(|batch| (batch == 1).then_some(Errno::ENOBUFS));
        assert_eq!(rig.send(0, 130), Ok(()), "some of it was sent");
        rig.expect(130, (0..64).chain(128..130));
        let counters = rig.sockets.meter.read();
        assert_eq!((counters.batches_sent, counters.datagrams_sent), (2, 66));
        assert_eq!((counters.send_errors.no_buffer, counters.send_errors.total()), (64, 64));
        assert!(rig.sockets.egresses[0].gso.load(Relaxed), "the device is not to blame");
        rig.send_all(0, 64);
    }

    #[test]
    fn a_device_that_loses_gso_midway_loses_no_datagram() {
        let rig = Rig::new(|batch| (batch == 1).then_some(Errno::EIO));
        rig.send_all(0, 130);
        let counters = rig.sockets.meter.read();
        assert_eq!((counters.batches_sent, counters.datagrams_sent), (1 + 64 + 2, 130));
        assert_eq!((counters.gso_fallbacks, counters.send_errors.total()), (1, 0));
    }

    #[test]
    fn a_port_that_is_closed_costs_no_packet_to_another() {
        let rig = Rig::new(|_| None);
        let egress = &rig.sockets.egresses[0];
        for _ in 0..10 {
            egress.socket.send_to(b"nobody", "127.0.0.1:9").unwrap();
            let pending = PollFd::new(egress.socket.as_fd(), PollFlags::empty());
            assert_eq!(poll(&mut [pending], PollTimeout::MAX), Ok(1), "an error");
            rig.send_all(0, 4);
        }
        assert!(egress.gso.load(Relaxed));
        assert_eq!(rig.sockets.meter.read().send_errors.total(), 0);
    }

    #[test]
    fn it_is_an_error_if_nothing_of_a_long_batch_was_sent() {
        let rig = Rig::new(|_| Some(Errno::ENOBUFS));
        assert_eq!(rig.send(0, 130), Err(LocalError::NoBuffer));
        rig.expect(130, 0..0);
        assert_eq!(rig.sockets.meter.read().send_errors.no_buffer, 130);
    }
}
