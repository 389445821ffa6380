//! The command to run at the sender.

use crate::pairing::Code;
use crate::plan::Key;
use data_encoding::HEXLOWER;
use nix::ifaddrs::getifaddrs;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Returns two lines for the user of a receiver that senders reach at `address`. The second is the command, ready to
/// copy except for FILE.
pub(super) fn lines(key: &Key, address: SocketAddr) -> [String; 2] {
    let host = host(address);
    let (text, before, option) = match key {
        Key::Made(key) => {
            ("at the sender, run:", format!("CBRST_KEY={} ", HEXLOWER.encode(key)), String::new())
        }
        Key::Environment(_) => {
            ("at the sender, with the same CBRST_KEY, run:", String::new(), String::new())
        }
        Key::File(path, _) => (
            "at the sender, with a copy of the key file, run:",
            String::new(),
            format!("--key-file {} ", quoted(path)),
        ),
        Key::Insecure => (
            "no key: anyone who can reach this port can send; at the sender, run:",
            String::new(),
            "--insecure ".into(),
        ),
    };
    [text.into(), format!("  {before}cbrst-send {option}{host} FILE...")]
}

/// Returns the same two lines for a receiver that shows a code.
pub(super) fn pairing(code: Code, address: SocketAddr) -> [String; 2] {
    let text = format!("the code is {code}; at the sender, run this command, which asks for it:");
    [text, format!("  cbrst-send --pair - {} FILE...", host(address))]
}

/// Returns the host and port for senders to use. For an unspecified address, the host is the source address of
/// packets along the default route, or else an address of an interface.
fn host(local: SocketAddr) -> String {
    if !local.ip().is_unspecified() {
        return local.to_string();
    }
    let v4 = || outgoing(([0, 0, 0, 0], 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into());
    let v6 = || {
        let far = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        local.is_ipv6().then(|| outgoing((Ipv6Addr::UNSPECIFIED, 0).into(), (far, 9).into()))?
    };
    if let Some(mut address) = v4().or_else(v6) {
        address.set_port(local.port());
        return address.to_string();
    }
    let interfaces = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
        v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
    });
    SocketAddr::new(reachable(interfaces, local.is_ipv6()), local.port()).to_string()
}

/// Picks, from the addresses of a host without a default route, one that others may have a route to.
fn reachable(addresses: impl Iterator<Item = IpAddr>, takes_v6: bool) -> IpAddr {
    let is_for_others = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => takes_v6 && !ip.is_loopback() && !ip.is_unicast_link_local(),
    };
    let mut addresses: Vec<IpAddr> = addresses.filter(is_for_others).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Returns the source address of packets to `far`. Sends none.
fn outgoing(any: SocketAddr, far: SocketAddr) -> Option<SocketAddr> {
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(far).ok()?;
    socket.local_addr().ok()
}

/// Quotes the path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    // Only NUL cannot be quoted, and no path has one.
    shlex::try_quote(&text).map(Cow::into_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_is_printed_as_part_of_the_command() {
        let lines = lines(&Key::Made([0xab; 32]), ([10, 0, 0, 2], 7000).into());
        let key = "ab".repeat(32);
        let line = format!("  CBRST_KEY={key} cbrst-send 10.0.0.2:7000 FILE...");
        assert_eq!(lines[1], line);
    }

    #[test]
    fn a_key_that_the_user_has_is_not_printed() {
        for key in [Key::Environment([0xab; 32].into()), Key::File("a b".into(), [0xab; 32].into())]
        {
            let lines = lines(&key, "[::1]:7000".parse().unwrap()).concat();
            assert!(!lines.contains("abab") && lines.contains("cbrst-send"), "{lines}");
            assert!(lines.contains("[::1]:7000"), "{lines}");
        }
    }

    #[test]
    fn without_a_default_route_an_address_of_an_interface_is_named() {
        let named = |addresses: &[&str], takes_v6| {
            let addresses = addresses.iter().map(|ip| ip.parse().unwrap());
            reachable(addresses, takes_v6).to_string()
        };
        let all = ["127.0.0.1", "169.254.1.1", "::1", "fe80::1", "2001:db8::1", "10.0.0.1"];
        assert_eq!(named(&all, true), "10.0.0.1");
        assert_eq!(named(&all[..5], true), "2001:db8::1");
        assert_eq!(named(&all[..5], false), "127.0.0.1");
        assert_eq!(named(&all[..1], true), "127.0.0.1");
    }

    #[test]
    fn paths_are_quoted_as_one_word_of_the_shell() {
        assert_eq!(quoted(Path::new("/etc/k.hex")), "/etc/k.hex");
        assert_eq!(quoted(Path::new("a b")), "'a b'");
        assert_eq!(quoted(Path::new("it's $5")), r#""it's "'$5'"#);
    }
}
