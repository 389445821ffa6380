//! Hosts around a router, to move them and their addresses while endpoints run.

use crate::error::Error;
use crate::wire::End;
use std::fs;
use std::net::Ipv4Addr;

/// Hosts, each on its own wire to one router. Its network namespaces have no names, as those of a
/// [`Wire`](crate::Wire), so nothing is left behind.
///
/// ```text
///   host 1: 10.9.1.2 on `wire` --- `host1`  \
///   host 2: 10.9.2.2 on `wire` --- `host2`    router 10.9.0.1
///   ...                                     /
/// ```
///
/// All packets to 10.9.N.0/24 go to host N, whatever addresses it has, and all others that it sends go to
/// the router: nothing needs ARP, and no address keeps a route from being used. Each packet is carried
/// singly, so that rules of the router see it.
#[derive(Debug)]
pub struct Star {
    /// Host N is at index N - 1.
    pub hosts: Vec<End>,
    /// The router, which only forwards.
    pub router: End,
}

impl Star {
    /// Builds the network with `hosts` hosts, at most 250.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], [`Error::Tool`] or [`Error::Io`].
    pub fn up(hosts: u8) -> Result<Self, Error> {
        let router = End::enter(Ipv4Addr::new(10, 9, 0, 1))?;
        router.command("ip", "link set lo up")?;
        router.command("ip", "address add 10.9.0.1/32 dev lo")?;
        let forward = router.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
        forward.map_err(Error::io("ip_forward"))?;
        let hosts = (1..=hosts).map(|host| End::enter(Self::address(host, 2)));
        let star = Self { hosts: hosts.collect::<Result<_, _>>()?, router };
        for (host, number) in star.hosts.iter().zip(1_u8..) {
            let port = Self::port(number);
            star.router.join(&port, "wire", host)?;
            let offloads = "tso off gso off gro off tx-udp-segmentation off";
            host.command("ip", "link set lo up")?;
            host.command("ethtool", &format!("-K wire {offloads}"))?;
            star.router.command("ethtool", &format!("-K {port} {offloads}"))?;
            host.command("ip", &format!("link set wire address {}", Self::mac(0, number)))?;
            host.command("ip", &format!("address add {}/32 dev wire", host.address()))?;
            host.command("ip", "link set wire up")?;
            let mac = Self::mac(1, number);
            host.command("ip", &format!("neighbour add 10.9.0.1 lladdr {mac} dev wire"))?;
            host.command("ip", "route add default via 10.9.0.1 dev wire onlink")?;
            star.router.command("ip", &format!("link set {port} address {mac}"))?;
            star.connect(number)?;
        }
        Ok(star)
    }

    /// Returns address `number` of host `host`. Each host has its number 2 at first.
    #[must_use]
    pub const fn address(host: u8, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, host, number)
    }

    /// Returns the interface of the router towards host `host`.
    #[must_use]
    pub fn port(host: u8) -> String {
        format!("host{host}")
    }

    /// Sets the router's interface towards `host` up, with its routes.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn connect(&self, host: u8) -> Result<(), Error> {
        let port = Self::port(host);
        let next = Self::address(host, 254);
        let mac = Self::mac(0, host);
        self.router.command("ip", &format!("link set {port} up"))?;
        self.router.command("ip", &format!("neighbour replace {next} lladdr {mac} dev {port}"))?;
        let to = Self::address(host, 0);
        let route = format!("route replace {to}/24 via {next} dev {port} onlink");
        self.router.command("ip", &route).map(drop)
    }

    /// Sets it down: the router has no route to `host`, which sees no carrier.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn disconnect(&self, host: u8) -> Result<(), Error> {
        self.router.command("ip", &format!("link set {} down", Self::port(host))).map(drop)
    }

    fn mac(side: u8, host: u8) -> String {
        format!("02:00:00:00:{side:02x}:{host:02x}")
    }
}
