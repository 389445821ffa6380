//! Packets that come into a network namespace.

use crate::Error;
use crate::namespace::Namespace;
use nix::errno::Errno;
use nix::libc::PACKET_HOST;
use nix::sys::socket::{LinkAddr, recvfrom, setsockopt, sockopt};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;

/// Bytes that wait to be read, bookkeeping included: about 3,000 packets of 1,500 bytes.
const BUFFER: usize = 8 << 20;
/// IPv4 as Ethernet says it, in the order of the wire. Not everything: then what goes out would be
/// seen too, and what is lost on the way in.
const IPV4: u16 = 0x0800_u16.to_be();
const LARGEST: usize = 1 << 16;

/// What comes into a namespace by any port, from [`Namespace::capture`] on: IPv4 alone, and not
/// what loss or failures take away.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
}

impl Namespace {
    /// Begins to capture.
    ///
    /// # Errors
    ///
    /// When the namespace cannot be entered, or the kernel refuses.
    pub fn capture(&self) -> Result<Capture, Error> {
        let doing = || Error::io(format!("cannot capture packets in {}", self.name()));
        let open = || -> io::Result<Socket> {
            // Without the Ethernet header.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(i32::from(IPV4).into()))?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        Ok(Capture { socket: self.run(open)?.map_err(doing())? })
    }
}

impl Capture {
    /// The packets that came since it was asked last, in their order; each begins with its IP
    /// header. Of more than some thousand, the later ones are missing.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn packets(&self) -> Result<Vec<Vec<u8>>, Error> {
        let (mut packets, mut buffer) = (Vec::new(), vec![0; LARGEST]);
        loop {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buffer) {
                // On their way to an emulated queue, packets are seen once more.
                Ok((length, from)) if from.is_some_and(is_to_this_port) => {
                    packets.push(buffer[..length].to_vec());
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(packets),
                Err(error) => return Err(Error::io("cannot read captured packets")(error.into())),
            }
        }
    }
}

fn is_to_this_port(from: LinkAddr) -> bool {
    from.pkttype() == PACKET_HOST
}
