//! Hosts behind a router, to test address translation and packet filters.

use crate::error::Error;
use crate::wire::End;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Two clients and a server, each on its own wire to one router, which forwards all packets until it
/// is told to translate or filter. Its network namespaces have no names, as those of a
/// [`Wire`](crate::Wire), so nothing is left behind.
///
/// ```text
///   client 10.9.1.2 --- 10.9.1.1 client1 \
///                                          router   server 10.9.3.1 --- 10.9.3.2 server
///   client 10.9.2.2 --- 10.9.2.1 client2 /
/// ```
///
/// The interface of each host is `wire`; those of the router have the names in the picture.
#[derive(Debug)]
pub struct Gateway {
    /// 10.9.1.2 and 10.9.2.2.
    pub clients: [End; 2],
    /// See [`INSIDE`](Self::INSIDE) and [`OUTSIDE`](Self::OUTSIDE).
    pub router: End,
    /// 10.9.3.2.
    pub server: End,
}

impl Gateway {
    /// The router's address on the wire to the first client.
    pub const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 1);
    /// The router's address on the wire to the server.
    pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 9, 3, 1);

    /// Builds the network. The router only forwards.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], [`Error::Tool`] or [`Error::Io`].
    pub fn up() -> Result<Self, Error> {
        let host = |net| End::enter(Ipv4Addr::new(10, 9, net, 2));
        let gateway = Self {
            clients: [host(1)?, host(2)?],
            router: End::enter(Self::OUTSIDE)?,
            server: host(3)?,
        };
        let Self { clients: [first, second], router, server } = &gateway;
        router.command("ip", "link set lo up")?;
        for (net, name, host) in
            [(1, "client1", first), (2, "client2", second), (3, "server", server)]
        {
            let via = Ipv4Addr::new(10, 9, net, 1);
            router.join(name, "wire", host)?;
            for (end, device, address) in [(router, name, via), (host, "wire", host.address())] {
                end.command("ip", &format!("address add {address}/24 dev {device}"))?;
                end.command("ip", &format!("link set {device} up"))?;
            }
            host.command("ip", "link set lo up")?;
            host.command("ip", &format!("route add default via {via}"))?;
        }
        let forward = router.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
        forward.map_err(Error::io("ip_forward"))?;
        Ok(gateway)
    }

    /// Translates packets to the server: they appear to come from [`OUTSIDE`](Self::OUTSIDE), from the
    /// client's port if that is free, or from `random` ports.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn masquerade(&self, random: bool) -> Result<(), Error> {
        let how = if random { "masquerade random" } else { "masquerade" };
        self.rules(&format!(
            "table ip source {{ chain out {{ type nat hook postrouting priority 100; \
             oifname server {how}; }}; }}"
        ))
    }

    /// Has the router forget after `time`, in whole seconds, between which ports no packet has passed.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn forget_after(&self, time: Duration) -> Result<(), Error> {
        // The second is that of exchanges with packets in both directions.
        let set = self.router.run(move || {
            ["udp_timeout", "udp_timeout_stream"].into_iter().try_for_each(|name| {
                let file = format!("/proc/sys/net/netfilter/nf_conntrack_{name}");
                fs::write(file, time.as_secs().to_string())
            })
        });
        set.map_err(Error::io("nf_conntrack_udp_timeout"))
    }

    /// Forwards to `to` the packets that clients send to UDP port `port` of [`INSIDE`](Self::INSIDE).
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn forward(&self, port: u16, to: SocketAddrV4) -> Result<(), Error> {
        self.rules(&format!(
            "table ip destination {{ chain in {{ type nat hook prerouting priority -100; \
             ip daddr {} udp dport {port} dnat to {to}; }}; }}",
            Self::INSIDE
        ))
    }

    /// Drops packets from the server that do not belong to an exchange begun by a client.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn wall(&self) -> Result<(), Error> {
        self.rules(
            "table inet wall { chain forward { type filter hook forward priority 0; \
             ct state established,related accept; iifname != server accept; counter drop; }; }",
        )
    }

    /// Returns the number of packets that the [`wall`](Self::wall) has dropped.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn dropped(&self) -> Result<u64, Error> {
        self.router.counted()
    }

    fn rules(&self, rules: &str) -> Result<(), Error> {
        self.router.command("nft", rules).map(drop)
    }
}
