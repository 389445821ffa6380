//! The MTU of routes, as the system knows it.

use super::socket::Family;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Asks the system for the MTU of routes.
// By a socket of its own, which belongs to the network namespace of the others, whatever thread asks.
#[derive(Debug)]
pub(crate) struct Routes {
    /// One of each family that the endpoint sends by: once connected to an address of IPv4, a socket of
    /// IPv6 has no route to its own family any more.
    sockets: Vec<UdpSocket>,
}

impl Routes {
    /// Routes of packets from `ip`, to which an endpoint is bound.
    pub(crate) fn of(ip: IpAddr) -> io::Result<Self> {
        let bind = SocketAddr::new(ip, 0);
        let both = Family::of(bind) == Family::Both;
        let other = both.then_some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        let sockets = [bind].into_iter().chain(other).map(|bind| {
            let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
            if bind.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.bind(&bind.into())?;
            Ok(socket.into())
        });
        Ok(Self { sockets: sockets.collect::<io::Result<_>>()? })
    }

    /// The MTU of packets to `remote`: that of the interface, unless the route has one of its own or ICMP
    /// has reported a smaller one lately. `None` if there is no route.
    pub(crate) fn mtu(&self, remote: SocketAddr) -> Option<usize> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        self.sockets.iter().find_map(|socket| {
            // Nothing is sent, and the next call replaces the address.
            socket.connect(remote).ok()?;
            // Linux takes this option of IPv4 on sockets of IPv6, too.
            usize::try_from(getsockopt(socket, sockopt::IpMtu).ok()?).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_carries_more_than_any_link() {
        for (bind, remotes) in [
            ("127.0.0.1", &["127.0.0.1:7", "127.0.0.2:7"][..]),
            ("0.0.0.0", &["127.0.0.1:7"]),
            ("::1", &["[::1]:7"]),
            ("::", &["127.0.0.1:7", "[::1]:7", "127.0.0.1:7"]),
        ] {
            let routes = Routes::of(bind.parse().unwrap()).unwrap();
            for remote in remotes {
                let mtu = routes.mtu(remote.parse().unwrap());
                assert!(mtu >= Some(16_384), "{remote} from {bind}: {mtu:?}");
            }
        }
    }

    #[test]
    fn a_peer_of_the_other_family_has_no_route() {
        let routes = Routes::of("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(routes.mtu("[::1]:7".parse().unwrap()), None);
        assert!(routes.mtu("127.0.0.1:7".parse().unwrap()).is_some(), "and the next one has");
    }
}
