//! Sending, receiving and counting.

use cloudburst_testbed::{Error, Fabric, Host, Node};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const PORT: u16 = 7000;
/// Long enough for a busy machine; reached only by a test that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for a packet that must not arrive. A packet that was lost does not arrive later either, so a
/// busy machine fails no test.
const NO_ARRIVAL: Duration = Duration::from_millis(100);
pub(crate) const FIRST: u16 = 40_000;

/// A socket on all of the host's addresses of a family, or on one port of them.
pub(crate) fn bound(host: &Host, v6: bool, port: u16) -> Result<UdpSocket, io::Error> {
    let begun = Instant::now();
    let socket = loop {
        let bound = host.run(|| UdpSocket::bind((any(v6), port))).map_err(io::Error::other)?;
        match bound {
            // A child process of another test holds all files until it executes its program.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < PATIENCE =>
            {
                thread::yield_now();
            }
            bound => break bound?,
        }
    };
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn any(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Waits for packets, all of which should arrive. Returns how many do.
pub(crate) fn arrivals(socket: &UdpSocket, expected: usize) -> usize {
    (0..expected).take_while(|_| arrives(socket)).count()
}

/// Counts packets until none arrives for a moment, for networks that lose some on purpose.
pub(crate) fn survivors(socket: &UdpSocket) -> Result<usize, io::Error> {
    socket.set_read_timeout(Some(NO_ARRIVAL))?;
    let survivors = iter::repeat_with(|| arrives(socket)).take_while(|arrives| *arrives).count();
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(survivors)
}

fn arrives(socket: &UdpSocket) -> bool {
    loop {
        match socket.recv(&mut [0; 2048]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received.is_ok(),
        }
    }
}

/// Sends a packet from each of `ports` source ports.
pub(crate) fn from_ports(host: &Host, ports: u16, to: IpAddr) -> io::Result<()> {
    for port in FIRST..FIRST + ports {
        bound(host, to.is_ipv6(), port)?.send_to(b"one of many", (to, PORT))?;
    }
    Ok(())
}

/// The number of packets of both queues that have left `node` for each spine.
pub(crate) fn towards_spines(fabric: &Fabric, node: Node) -> Result<Vec<u64>, Error> {
    let ports = fabric.ports_of(node)?.into_iter();
    let spines = ports.filter(|port| matches!(port.neighbour, Node::Spine(_)));
    Ok(spines.map(|port| port.tiny.sent + port.default.sent).collect())
}

/// The increase of the counters.
pub(crate) fn since(before: &[u64], after: &[u64]) -> Vec<u64> {
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

/// A socket for packets that include their IP header.
pub(crate) fn raw(host: &Host, domain: Domain) -> Result<Socket, io::Error> {
    let open = || Socket::new(domain, Type::RAW, Some(Protocol::from(255)));
    host.run(open).map_err(io::Error::other)?
}

pub(crate) fn send_raw(socket: &Socket, packet: &[u8], to: IpAddr) -> io::Result<usize> {
    socket.send_to(packet, &SockAddr::from(SocketAddr::new(to, 0)))
}

/// A UDP datagram without a checksum, which IPv4 permits.
pub(crate) fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let fields = [from, to, length, 0].map(u16::to_be_bytes).concat();
    [&fields, payload].concat()
}

/// An IPv4 packet. The kernel that sends the innermost one fills in its checksum.
pub(crate) fn ipv4(tos: u8, protocol: u8, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, tos, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend_from_slice(payload);
    packet
}

/// An IPv6 packet with a UDP datagram.
pub(crate) fn ipv6(label: u32, from: Ipv6Addr, to: Ipv6Addr, datagram: &[u8]) -> Vec<u8> {
    let mut packet = (6 << 28 | label).to_be_bytes().to_vec();
    packet.extend((datagram.len() as u16).to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend_from_slice(datagram);
    packet
}
