//! One socket and its options.

use crate::error::BuildError;
use cloudburst_core::naming::is_alias;
use nix::libc;
use nix::sys::socket::{GetSockOpt, SetSockOpt, SockaddrStorage, getsockopt, setsockopt, sockopt};
use rand::RngReader;
use rand::rngs::SysRng;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// The option that sends the flow label of an address.
#[derive(Clone, Copy, Debug)]
struct FlowInfoSend;

/// The options that forbid fragments of IPv4 and IPv6 packets.
#[derive(Clone, Copy, Debug)]
struct MtuDiscover;
#[derive(Clone, Copy, Debug)]
struct Ipv6MtuDiscover;

nix::setsockopt_impl!(
    MtuDiscover,
    libc::IPPROTO_IP,
    libc::IP_MTU_DISCOVER,
    i32,
    sockopt::SetStruct<i32>
);
nix::setsockopt_impl!(
    Ipv6MtuDiscover,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU_DISCOVER,
    i32,
    sockopt::SetStruct<i32>
);

nix::setsockopt_impl!(
    FlowInfoSend,
    libc::IPPROTO_IPV6,
    libc::IPV6_FLOWINFO_SEND,
    bool,
    sockopt::SetBool
);

/// The socket of one egress.
#[derive(Debug)]
pub(super) struct EgressSocket {
    pub(super) socket: UdpSocket,
    /// Whether the system segments batches (GSO).
    pub(super) gso: AtomicBool,
    /// The last value of the system's drop counter.
    pub(super) drops: AtomicU32,
}

/// The families of addresses that a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
    /// IPv6, and IPv4 in mapped form.
    Both,
}

/// The sizes of a socket's buffers, as the system accounts for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantedBuffers {
    /// Bytes requested for each buffer.
    pub wanted: usize,
    /// Bytes of each receive buffer.
    pub receive: usize,
    /// Bytes of each send buffer.
    pub send: usize,
}

impl Family {
    pub(super) const fn of(bind: SocketAddr) -> Self {
        match bind.ip() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(ip) if ip.is_unspecified() => Self::Both,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The address in the form that the socket needs.
    pub(super) fn to_socket(self, peer: SocketAddr) -> SocketAddr {
        match (self, peer) {
            (Self::Both, SocketAddr::V4(peer)) => {
                SocketAddrV6::new(peer.ip().to_ipv6_mapped(), peer.port(), 0, 0).into()
            }
            _ => peer,
        }
    }
}

/// The canonical form of the address of a message.
pub(super) fn from_sockaddr(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let v6 = || address.as_sockaddr_in6().map(|&v6| SocketAddr::V6(v6.into()));
    Some(canonical(v4.or_else(v6)?))
}

/// The canonical form of an address: IPv4 if it is IPv4-mapped. Aliases stay as they are.
pub(crate) fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) if !is_alias(&peer) => SocketAddr::new(ip.into(), peer.port()),
        _ => peer,
    }
}

impl EgressSocket {
    pub(super) fn open(
        addr: SocketAddr,
        family: Family,
        tos: u8,
        buffers: usize,
        reuse_port: bool,
    ) -> Result<Self, BuildError> {
        let refused = |source| BuildError::Bind { addr, source };
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))
            .map_err(refused)?;
        if addr.is_ipv6() {
            let only_v6 = family != Family::Both;
            socket.set_only_v6(only_v6).map_err(|e| failed("IPV6_V6ONLY", e))?;
        }
        if reuse_port {
            socket.set_reuse_port(true).map_err(|e| failed("SO_REUSEPORT", e))?;
        }
        request_buffer(&socket, sockopt::RcvBuf, sockopt::RcvBufForce, buffers)?;
        request_buffer(&socket, sockopt::SndBuf, sockopt::SndBufForce, buffers)?;
        set_options(&socket, addr, family, tos)?;
        socket.bind(&addr.into()).map_err(refused)?;
        Ok(Self::new(socket))
    }

    /// Takes over a socket that is bound to `addr`.
    pub(super) fn adopt(
        socket: UdpSocket,
        addr: SocketAddr,
        family: Family,
        tos: u8,
        buffers: usize,
    ) -> Result<Self, BuildError> {
        let unfit = |why| BuildError::UnfitSocket { addr, why };
        if socket.peer_addr().is_ok() {
            return Err(unfit("it is connected, so it receives from one peer only"));
        }
        let socket = Socket::from(socket);
        // This cannot be changed after binding.
        let only_v6 = || socket.only_v6().map_err(|e| failed("IPV6_V6ONLY", e));
        if family == Family::Both && only_v6()? {
            return Err(unfit(
                "it takes only IPv6 (IPV6_V6ONLY), but an endpoint at `[::]` takes IPv4, too",
            ));
        }
        // The process that bound it may have had the privilege for larger buffers, which this one may lack.
        if granted_bytes(&socket, sockopt::RcvBuf)? < buffers {
            request_buffer(&socket, sockopt::RcvBuf, sockopt::RcvBufForce, buffers)?;
        }
        if granted_bytes(&socket, sockopt::SndBuf)? < buffers {
            request_buffer(&socket, sockopt::SndBuf, sockopt::SndBufForce, buffers)?;
        }
        set_options(&socket, addr, family, tos)?;
        Ok(Self::new(socket))
    }

    fn new(socket: Socket) -> Self {
        // Older kernels and some sandboxes do not have it.
        let gso = AtomicBool::new(getsockopt(&socket, sockopt::UdpGsoSegment).is_ok());
        Self { socket: socket.into(), gso, drops: AtomicU32::new(0) }
    }

    /// Chooses distinct random flow labels, and makes the socket send them.
    pub(super) fn choose_flow_labels(&self, count: u16) -> Result<Vec<u32>, BuildError> {
        setsockopt(&self.socket, FlowInfoSend, &true)
            .map_err(|e| failed("IPV6_FLOWINFO_SEND", e))?;
        let mut labels = Vec::new();
        while labels.len() < usize::from(count) {
            let mut bytes = [0; 4];
            let read = RngReader(SysRng).read_exact(&mut bytes);
            read.map_err(BuildError::refused("random bytes"))?;
            // 0 means no label.
            let label = u32::from_ne_bytes(bytes) & 0xf_ffff;
            if label != 0 && !labels.contains(&label) {
                labels.push(label);
            }
        }
        Ok(labels)
    }

    pub(super) fn local_addr(&self) -> Result<SocketAddr, BuildError> {
        local_addr(&self.socket)
    }
}

pub(super) fn local_addr(socket: &UdpSocket) -> Result<SocketAddr, BuildError> {
    socket.local_addr().map_err(|e| failed("getsockname", e))
}

/// Sets the options that can be set before or after binding.
fn set_options(
    socket: &Socket,
    addr: SocketAddr,
    family: Family,
    tos: u8,
) -> Result<(), BuildError> {
    // Packets are sent whole or not at all, whatever ICMP has told the system: the endpoint finds out
    // itself what a path carries, and a fragment that is lost loses all others of its packet.
    if family != Family::V6 {
        setsockopt(socket, MtuDiscover, &libc::IP_PMTUDISC_PROBE)
            .map_err(|e| failed("IP_MTU_DISCOVER", e))?;
    }
    if family != Family::V4 {
        setsockopt(socket, Ipv6MtuDiscover, &libc::IPV6_PMTUDISC_PROBE)
            .map_err(|e| failed("IPV6_MTU_DISCOVER", e))?;
    }
    // Failures are harmless: without these, more packets are dropped, or drops and marks are not seen, or
    // calls to a closed port wait for their deadline.
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
    let _ = setsockopt(socket, sockopt::RxqOvfl, &1);
    if family != Family::V6 {
        let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
        let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &true);
    }
    if family != Family::V4 {
        let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
        let _ = setsockopt(socket, sockopt::Ipv6RecvErr, &true);
    }
    if addr.ip().is_unspecified() {
        // The destination of each packet. On sockets for both families, that of IPv4 is mapped.
        match family {
            Family::V4 => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)
                .map_err(|e| failed("IP_PKTINFO", e))?,
            Family::V6 | Family::Both => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)
                .map_err(|e| failed("IPV6_RECVPKTINFO", e))?,
        }
    }
    mark(socket, family, tos)?;
    socket.set_nonblocking(true).map_err(|e| failed("O_NONBLOCK", e))
}

/// Sets the byte of DSCP and ECN, and reads it back.
fn mark(socket: &Socket, family: Family, tos: u8) -> Result<(), BuildError> {
    let byte = i32::from(tos);
    let verify = |option, granted| {
        if granted == byte {
            return Ok(());
        }
        let text = format!("requested {byte:#04x}, got {granted:#04x}");
        Err(failed(option, io::Error::other(text)))
    };
    if family != Family::V6 {
        let granted = setsockopt(socket, sockopt::Ipv4Tos, &byte)
            .and_then(|()| getsockopt(socket, sockopt::Ipv4Tos));
        verify("IP_TOS", granted.map_err(|e| failed("IP_TOS", e))?)?;
    }
    if family != Family::V4 {
        let granted = setsockopt(socket, sockopt::Ipv6TClass, &byte)
            .and_then(|()| getsockopt(socket, sockopt::Ipv6TClass));
        verify("IPV6_TCLASS", granted.map_err(|e| failed("IPV6_TCLASS", e))?)?;
    }
    Ok(())
}

/// Requests a buffer, within the system's limits first, and beyond them if that is allowed.
fn request_buffer(
    socket: &Socket,
    size: impl SetSockOpt<Val = usize> + GetSockOpt<Val = usize>,
    beyond_limits: impl SetSockOpt<Val = usize>,
    wanted: usize,
) -> Result<(), BuildError> {
    let wanted = wanted.min(i32::MAX as usize);
    setsockopt(socket, size, &wanted).map_err(|e| failed("SO_RCVBUF or SO_SNDBUF", e))?;
    if granted_bytes(socket, size)? < wanted {
        // Needs CAP_NET_ADMIN; without it, `granted` warns the user.
        let _ = setsockopt(socket, beyond_limits, &wanted);
    }
    Ok(())
}

/// The smallest buffers of all egresses. Warns, once, if they are smaller than `wanted`.
pub(super) fn granted<'a>(
    egresses: impl IntoIterator<Item = &'a EgressSocket>,
    wanted: usize,
) -> Result<GrantedBuffers, BuildError> {
    let mut least = GrantedBuffers { wanted, receive: usize::MAX, send: usize::MAX };
    for EgressSocket { socket, .. } in egresses {
        least.receive = least.receive.min(granted_bytes(socket, sockopt::RcvBuf)?);
        least.send = least.send.min(granted_bytes(socket, sockopt::SndBuf)?);
    }
    for (granted, sysctl) in
        [(least.receive, "net.core.rmem_max"), (least.send, "net.core.wmem_max")]
    {
        if granted < wanted {
            tracing::warn!(
                wanted,
                granted,
                "socket buffers are smaller than wanted, and bursts will overflow them: \
                 `sysctl -w {sysctl}={wanted}`"
            );
        }
    }
    Ok(least)
}

/// The granted size of a buffer: Linux doubles it, for its own bookkeeping, and reports the double.
fn granted_bytes(
    socket: &impl AsFd,
    size: impl GetSockOpt<Val = usize>,
) -> Result<usize, BuildError> {
    Ok(getsockopt(socket, size).map_err(|e| failed("SO_RCVBUF or SO_SNDBUF", e))? / 2)
}

fn failed(option: &'static str, source: impl Into<io::Error>) -> BuildError {
    BuildError::SocketOption { option, source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_addresses_are_mapped_only_inside_dual_stack_sockets() {
        let v4: SocketAddr = "10.0.0.1:7".parse().unwrap();
        let v6: SocketAddr = "[fe80::1]:7".parse().unwrap();
        let both = Family::of("[::]:0".parse().unwrap());
        assert_eq!(both.to_socket(v4), "[::ffff:10.0.0.1]:7".parse().unwrap());
        assert_eq!(canonical(both.to_socket(v4)), v4);
        assert_eq!(canonical(both.to_socket(v6)), v6);
    }
}
