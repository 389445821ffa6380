//! The addresses at which peers may reach an endpoint.

use crate::path_map::reaches;
use cloudburst_core::naming::Naming;
use ipnet::IpNet;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the addresses of the interfaces are cached. A look-up takes 15 to 120 us with a few
/// addresses and 1 ms with 450 addresses of 300 interfaces, and unauthenticated packets can cause
/// it.
const CACHED_FOR: Duration = Duration::from_millis(200);

/// All addresses at which peers may reach an endpoint.
#[derive(Debug)]
pub(crate) struct Addresses {
    bind: IpAddr,
    /// The ports of all sockets, the shared one included.
    ports: Vec<u16>,
    known_as: Vec<SocketAddr>,
    interfaces: Mutex<Interfaces>,
}

/// The prefixes that are local to this host, as of the last look-up: single addresses, and on
/// loopback interfaces whole IPv4 prefixes.
#[derive(Debug, Default)]
struct Interfaces {
    /// The network namespace of the sockets.
    network: Option<u64>,
    local: Vec<IpNet>,
    looked_up_at: Option<Instant>,
}

impl Addresses {
    /// The addresses of an endpoint with sockets at `ports` of `bind`, which according to the
    /// application is also `known_as`. All addresses are canonical.
    pub(crate) fn new(
        bind: IpAddr,
        ports: impl IntoIterator<Item = u16>,
        known_as: Vec<SocketAddr>,
    ) -> Self {
        let ports = ports.into_iter().collect();
        let interfaces = Mutex::new(Interfaces { network: network(), ..Interfaces::default() });
        let addresses = Self { bind, ports, known_as, interfaces };
        addresses.is_local(Ipv4Addr::LOCALHOST.into());
        addresses
    }

    /// How `address` relates to the endpoint.
    pub(crate) fn naming(&self, address: SocketAddr) -> Naming {
        let ip = address.ip().to_canonical();
        let port = address.port();
        // Scope ids mean something on one host only. An address in `known_as` may be shared by
        // several hosts, so it is not this host's own, even if an interface has it.
        if self.known_as.iter().any(|known| known.ip() == ip && known.port() == port) {
            return Naming::Translated;
        }
        let is_own = self.ports.contains(&port) && self.is_local(ip);
        if is_own { Naming::Own } else { Naming::Foreign }
    }

    /// Whether the sockets can send to `ip`.
    pub(crate) fn reach(&self, ip: IpAddr) -> bool {
        reaches(self.bind, ip)
    }

    /// Whether the sockets take packets to `ip`.
    fn is_local(&self, ip: IpAddr) -> bool {
        if !self.reach(ip) {
            return false;
        }
        if ip.is_unspecified() || ip == self.bind {
            return true;
        }
        if !self.bind.is_unspecified() {
            return false;
        }
        let mut interfaces = self.interfaces.lock().unwrap_or_else(PoisonError::into_inner);
        interfaces.refresh(Instant::now(), look_up);
        ip.is_loopback() || interfaces.local.iter().any(|net| net.contains(&ip))
    }
}

impl Interfaces {
    /// Looks the addresses up again unless the last look-up is recent. If the system refuses, the
    /// previous ones remain.
    fn refresh(&mut self, now: Instant, look_up: impl FnOnce() -> nix::Result<Vec<IpNet>>) {
        if self
            .looked_up_at
            .is_some_and(|looked_up_at| now.duration_since(looked_up_at) < CACHED_FOR)
        {
            return;
        }
        // A thread of another namespace sees the addresses of another network.
        if self.looked_up_at.is_some() && network() != self.network {
            return;
        }
        self.looked_up_at = Some(now);
        match look_up() {
            Ok(local) => self.local = local,
            Err(error) => tracing::debug!(%error, "the system does not list its addresses"),
        }
    }
}

/// The network namespace of this thread.
fn network() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|namespace| namespace.ino())
}

fn look_up() -> nix::Result<Vec<IpNet>> {
    Ok(getifaddrs()?.filter_map(|interface| local(&interface)).collect())
}

/// The addresses that the system treats as its own because of an address of an interface.
fn local(interface: &InterfaceAddress) -> Option<IpNet> {
    let address = interface.address.as_ref()?;
    // The system keeps the addresses of an interface that is down, but their network is not reached.
    if !interface.flags.contains(InterfaceFlags::IFF_UP) {
        return None;
    }
    if let Some(address) = address.as_sockaddr_in6() {
        return Some(IpAddr::from(address.ip()).into());
    }
    let ip = IpAddr::from(address.as_sockaddr_in()?.ip());
    let mask = || Some(IpAddr::from(interface.netmask.as_ref()?.as_sockaddr_in()?.ip()));
    // Linux accepts packets to any address of a prefix that a loopback interface has.
    match mask().filter(|_| interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)) {
        Some(mask) => IpNet::with_netmask(ip, mask).ok(),
        None => Some(ip.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn addresses(bind: &str, known_as: &[&str]) -> Addresses {
        let bind: IpAddr = bind.parse().unwrap();
        let known_as = known_as.iter().map(|address| address.parse().unwrap()).collect();
        Addresses::new(bind, [7000, 41_000], known_as)
    }

    fn naming(addresses: &Addresses, address: &str) -> Naming {
        addresses.naming(address.parse().unwrap())
    }

    /// An address of this host that is not a loopback one, if it has any.
    fn of_an_interface() -> Option<IpAddr> {
        let single = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        let mut local = look_up().unwrap().into_iter().filter(single).map(|net| net.addr());
        local.find(|ip| ip.is_ipv4() && !ip.is_loopback())
    }

    #[test]
    fn an_endpoint_bound_to_one_address_has_no_other() {
        let addresses = addresses("127.0.0.1", &[]);
        for own in ["127.0.0.1:7000", "127.0.0.1:41000", "[::ffff:127.0.0.1]:7000"] {
            assert_eq!(naming(&addresses, own), Naming::Own, "{own}");
        }
        for foreign in ["127.0.0.1:7001", "127.0.0.2:7000", "[::1]:7000", "10.0.0.1:7000"] {
            assert_eq!(naming(&addresses, foreign), Naming::Foreign, "{foreign}");
        }
    }

    #[test]
    fn an_endpoint_bound_to_all_addresses_has_every_address_of_the_host() {
        for bind in ["0.0.0.0", "::"] {
            let addresses = addresses(bind, &[]);
            let ip = of_an_interface();
            let ours = ip.iter().map(|ip| SocketAddr::new(*ip, 7000).to_string());
            let loopback = ["127.0.0.1:7000", "127.9.9.9:41000"].map(String::from);
            for own in ours.chain(loopback) {
                assert_eq!(naming(&addresses, &own), Naming::Own, "{own} on {bind}");
            }
            // TEST-NET-3: no interface has it.
            for foreign in ["203.0.113.7:7000", "127.0.0.1:7001", "224.0.0.1:7000"] {
                assert_eq!(naming(&addresses, foreign), Naming::Foreign, "{foreign} on {bind}");
            }
        }
    }

    #[test]
    fn families_that_the_sockets_do_not_have_are_foreign() {
        assert_eq!(naming(&addresses("0.0.0.0", &[]), "[::]:7000"), Naming::Foreign);
        assert_eq!(naming(&addresses("::1", &[]), "127.0.0.1:7000"), Naming::Foreign);
        assert_eq!(naming(&addresses("::1", &[]), "[::1]:7000"), Naming::Own);
    }

    #[test]
    fn the_unspecified_address_is_own() {
        for (bind, address) in
            [("0.0.0.0", "0.0.0.0:7000"), ("10.0.0.1", "0.0.0.0:7000"), ("::", "[::]:7000")]
        {
            assert_eq!(naming(&addresses(bind, &[]), address), Naming::Own, "{address} on {bind}");
        }
    }

    #[test]
    fn the_scope_of_a_link_local_address_is_ignored() {
        let addresses = addresses("fe80::1", &["[fe80::2]:443"]);
        assert_eq!(naming(&addresses, "[fe80::1%3]:7000"), Naming::Own);
        assert_eq!(naming(&addresses, "[fe80::2%3]:443"), Naming::Translated);
    }

    #[test]
    fn an_address_in_known_as_is_translated_even_if_it_is_own() {
        let addresses = addresses("127.0.0.1", &["203.0.113.7:443", "127.0.0.1:7000"]);
        assert_eq!(naming(&addresses, "203.0.113.7:443"), Naming::Translated);
        assert_eq!(naming(&addresses, "[::ffff:203.0.113.7]:443"), Naming::Translated);
        assert_eq!(naming(&addresses, "203.0.113.7:7000"), Naming::Foreign);
        assert_eq!(naming(&addresses, "127.0.0.1:7000"), Naming::Translated);
        assert_eq!(naming(&addresses, "127.0.0.1:41000"), Naming::Own);
    }

    #[test]
    fn interface_addresses_are_cached_for_a_while() {
        let net = |text: &str| Ok(vec![text.parse().unwrap()]);
        let start = Instant::now();
        let mut interfaces = Interfaces { network: network(), ..Interfaces::default() };
        interfaces.refresh(start, || net("10.0.0.1/32"));
        interfaces.refresh(start + CACHED_FOR / 2, || panic!("looked up a moment ago"));
        assert_eq!(interfaces.local, net("10.0.0.1/32").unwrap());
        interfaces.refresh(start + CACHED_FOR, || net("10.0.0.2/32"));
        assert_eq!(interfaces.local, net("10.0.0.2/32").unwrap(), "the old address is gone");
        interfaces.network = None;
        interfaces.refresh(start + 2 * CACHED_FOR, || panic!("from another network"));
        interfaces.network = network();
        interfaces.refresh(start + 2 * CACHED_FOR, || Err(Errno::EMFILE));
        assert_eq!(interfaces.local, net("10.0.0.2/32").unwrap());
    }

    #[test]
    fn a_whole_prefix_of_the_loopback_interface_is_local() {
        let local = look_up().unwrap();
        assert!(local.contains(&"127.0.0.1/8".parse().unwrap()), "{local:?}");
    }
}
