//! Packets that come into a network namespace.

use crate::Error;
use crate::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read};

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
            match (&self.socket).read(&mut buffer) {
                Ok(length) => packets.push(buffer[..length].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(packets),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot read captured packets")(error)),
            }
        }
    }
}
