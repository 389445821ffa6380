//! Finds the routers that the packets of each source port pass, by TTL-limited probes and the ICMP messages
//! that they cause. Needs no privilege: the messages come by the socket's error queue (IP_RECVERR).

use core::time::Duration;
use nix::cmsg_space;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

/// The most routers to look for: a data centre has five between hosts.
const MAX_HOPS: u8 = 8;
/// How often to probe a router that does not answer: many limit the rate of their answers.
const ATTEMPTS: usize = 3;
/// How long to wait for an answer.
const WAIT: Duration = Duration::from_millis(300);
/// ICMP's "time exceeded in transit" (RFC 792), and ICMPv6's (RFC 4443).
const TIME_EXCEEDED: [(u8, u8); 2] = [(libc::SO_EE_ORIGIN_ICMP, 11), (libc::SO_EE_ORIGIN_ICMP6, 3)];

/// The path of one source port, as far as routers answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) port: u16,
    /// The routers in order; `None` where none answered.
    pub(super) hops: Vec<Option<IpAddr>>,
}

impl Route {
    /// Whether both may be the same path, as far as routers answer.
    fn agrees(&self, other: &Self) -> bool {
        let both = self.hops.iter().zip(&other.hops);
        both.into_iter().all(|(one, other)| one.is_none() || other.is_none() || one == other)
    }

    /// Adds the routers that only `other`, which agrees, knows.
    fn learn(&mut self, other: &Self) {
        self.hops.resize(self.hops.len().max(other.hops.len()), None);
        for (known, more) in self.hops.iter_mut().zip(&other.hops) {
            *known = known.or(*more);
        }
    }
}

/// Returns the distinct paths, each with its ports. Paths that differ only where a router is silent count
/// as one. A port whose path may be any of several is left out.
pub(super) fn distinct(routes: &[Route]) -> Vec<(Route, Vec<u16>)> {
    let mut groups: Vec<(Route, Vec<u16>)> = Vec::new();
    // The most complete paths come first, so that the others can be matched with them.
    let mut by_knowledge: Vec<&Route> = routes.iter().collect();
    by_knowledge.sort_by_key(|route| route.hops.iter().filter(|hop| hop.is_none()).count());
    for route in by_knowledge {
        let mut like = groups.iter_mut().filter(|(known, _)| known.agrees(route));
        match (like.next(), like.next()) {
            (Some((known, ports)), None) => {
                known.learn(route);
                ports.push(route.port);
            }
            (Some(_), Some(_)) => {}
            (None, _) => groups.push((route.clone(), vec![route.port])),
        }
    }
    groups
}

/// Finds the paths to `peer` of `ports` source ports of `local`, with probes marked `dscp`. Also returns their
/// sockets, in the same order, which keep the ports from other programs.
///
/// # Errors
///
/// If the system refuses sockets or their options, or has no route.
pub(super) fn trace(
    local: SocketAddr,
    peer: SocketAddr,
    ports: u16,
    dscp: u8,
) -> io::Result<(Vec<Route>, Vec<UdpSocket>)> {
    let open = |_| open(local, peer, dscp);
    let sockets = (0..ports).map(open).collect::<io::Result<Vec<UdpSocket>>>()?;
    let port =
        |socket: &UdpSocket| Ok(Route { port: socket.local_addr()?.port(), hops: Vec::new() });
    let mut routes = sockets.iter().map(port).collect::<io::Result<Vec<Route>>>()?;
    for ttl in 1..=MAX_HOPS {
        let mut hops = vec![None; sockets.len()];
        for _ in 0..ATTEMPTS {
            for (socket, _) in sockets.iter().zip(&hops).filter(|(_, hop)| hop.is_none()) {
                probe(socket, peer, ttl)?;
            }
            listen(&sockets, ttl, &mut hops)?;
        }
        // The peer, or silent routers, come next. What was found is a lower bound.
        if hops.iter().all(Option::is_none) {
            break;
        }
        routes.iter_mut().zip(hops).for_each(|(route, hop)| route.hops.push(hop));
    }
    Ok((routes, sockets))
}

fn open(local: SocketAddr, peer: SocketAddr, dscp: u8) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local)?;
    socket.set_nonblocking(true)?;
    let tos = i32::from(dscp << 2);
    if peer.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        setsockopt(&socket, sockopt::Ipv4Tos, &tos)?;
    } else {
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        setsockopt(&socket, sockopt::Ipv6TClass, &tos)?;
    }
    Ok(socket)
}

/// Sends a datagram that expires at the router number `ttl`. Its byte is not the first of any packet, so
/// a receiver that it reaches drops it.
fn probe(socket: &UdpSocket, peer: SocketAddr, ttl: u8) -> io::Result<()> {
    if peer.is_ipv4() {
        setsockopt(socket, sockopt::Ipv4Ttl, &ttl.into())?;
    } else {
        setsockopt(socket, sockopt::Ipv6Ttl, &ttl.into())?;
    }
    // The first call may report an ICMP message about an earlier probe, instead of sending.
    socket.send_to(&[ttl], peer).or_else(|_| socket.send_to(&[ttl], peer)).map(drop)
}

/// Reads the routers' answers until all have come or the time is over.
fn listen(sockets: &[UdpSocket], ttl: u8, hops: &mut [Option<IpAddr>]) -> io::Result<()> {
    let deadline = Instant::now() + WAIT;
    while hops.contains(&None) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let mut waiting: Vec<PollFd<'_>> =
            sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::empty())).collect();
        let millis = u16::try_from(left.as_millis()).unwrap_or(u16::MAX).saturating_add(1);
        match poll(&mut waiting, PollTimeout::from(millis)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (socket, hop) in sockets.iter().zip(&mut *hops) {
            while let Some((probed, router)) = answer(socket) {
                if probed.is_none_or(|probed| probed == ttl) {
                    *hop = hop.or(router);
                }
            }
        }
    }
    Ok(())
}

/// Reads the next ICMP message. Returns the TTL of the probe that it answers, if it quotes the probe, and its
/// sender, if it is a "time exceeded".
fn answer(socket: &UdpSocket) -> Option<(Option<u8>, Option<IpAddr>)> {
    let mut payload = [0; 1];
    let mut control_buffer = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    let mut slices = [IoSliceMut::new(&mut payload)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control_buffer),
        flags,
    )
    .ok()?;
    let quoted = message.bytes > 0;
    let router = message.cmsgs().ok()?.find_map(|control| {
        let (error, from) = match control {
            ControlMessageOwned::Ipv4RecvErr(error, from) => {
                (error, from.map(|from| IpAddr::from(from.sin_addr.s_addr.to_ne_bytes())))
            }
            ControlMessageOwned::Ipv6RecvErr(error, from) => {
                (error, from.map(|from| IpAddr::from(from.sin6_addr.s6_addr)))
            }
            _ => return None,
        };
        from.filter(|_| TIME_EXCEEDED.contains(&(error.ee_origin, error.ee_type)))
    });
    Some((quoted.then_some(payload[0]), router))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16, hops: &[u8]) -> Route {
        let hop = |&last: &u8| (last > 0).then(|| IpAddr::from([10, 0, 0, last]));
        Route { port, hops: hops.iter().map(hop).collect() }
    }

    #[test]
    fn routes_are_distinct_if_they_differ_where_routers_answer() {
        let routes = [
            route(1, &[1, 2, 4]),
            route(2, &[1, 3, 4]),
            route(3, &[0, 2, 0]),
            route(4, &[1, 0, 4]),
            route(5, &[1, 2]),
            route(6, &[1, 3, 5]),
        ];
        let groups = distinct(&routes);
        let ports: Vec<&[u16]> = groups.iter().map(|(_, ports)| &ports[..]).collect();
        // The path of port 4 may be that of 1 or of 2.
        assert_eq!(ports, [&[1, 5, 3][..], &[2], &[6]]);
        assert_eq!(groups[0].0.hops, route(0, &[1, 2, 4]).hops);
    }

    #[test]
    fn routes_of_silent_routers_count_as_one() {
        assert_eq!(distinct(&[route(1, &[]), route(2, &[])]).len(), 1);
        assert_eq!(distinct(&[]), []);
    }
}
