//! Capture of packets that arrive in a network namespace.

use crate::Error;
use crate::namespace::Namespace;
use crate::wire::End;
use nix::errno::Errno;
use nix::libc::PACKET_HOST;
use nix::sys::socket::{LinkAddr, recvfrom, setsockopt, sockopt};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::AsRawFd;

/// Bytes that may wait to be read, including overhead: about 3,000 packets of 1,500 bytes.
const BUFFER: usize = 8 << 20;
/// The EtherType of IPv4, in network byte order. All protocols would include outgoing packets, and
/// those lost on ingress.
const IPV4: u16 = 0x0800_u16.to_be();
const LARGEST: usize = 1 << 16;

/// The IPv4 packets that arrive in a namespace by any port, from [`Namespace::capture`] on. Packets
/// dropped by loss or failures are not captured.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
}

impl Namespace {
    /// Starts a capture.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered, or a system call fails.
    pub fn capture(&self) -> Result<Capture, Error> {
        let doing = format!("cannot capture packets in {}", self.name());
        self.run(Capture::open)?.map_err(Error::io(doing))
    }
}

impl End {
    /// Starts a capture of the packets that arrive at this host.
    ///
    /// # Errors
    ///
    /// If a system call fails.
    pub fn capture(&self) -> Result<Capture, Error> {
        let doing = format!("cannot capture packets at {}", self.address());
        self.run(Capture::open).map_err(Error::io(doing))
    }
}

impl Capture {
    /// Captures in the namespace of the calling thread.
    fn open() -> io::Result<Self> {
        // Without the Ethernet header.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(i32::from(IPV4).into()))?;
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Returns the packets that arrived since the last call, in order; each begins with its IP
    /// header. Beyond a few thousand, later ones are missing.
    ///
    /// # Errors
    ///
    /// If a system call fails.
    pub fn packets(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut packets = Vec::new();
        let mut buffer = vec![0; LARGEST];
        loop {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buffer) {
                // Packets on their way to an emulated queue are captured a second time.
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
