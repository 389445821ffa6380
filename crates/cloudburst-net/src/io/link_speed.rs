//! The capacity of a link, as far as the system knows it.

use cloudburst_core::config::Capacity;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

/// The capacity assumed for loopback, which reports no speed.
const LOOPBACK: u64 = 10_000_000_000;
/// The least capacity assumed if it is unknown.
const UNKNOWN: u64 = Capacity::FALLBACK.bits_per_second();
/// The maximum number of interfaces stacked on each other that are examined.
const MAX_STACKED: usize = 8;
/// Buses of devices that a hypervisor emulates.
const VIRTUAL_BUSES: [&str; 3] = ["virtio", "xen", "vmbus"];

/// Prefixes of the system vendor that the firmware of virtual machines states (SMBIOS).
const HYPERVISORS: [&str; 7] =
    ["QEMU", "Amazon EC2", "Google", "Microsoft", "VMware", "Xen", "Alibaba"];

/// The capacity of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// Whether hardware reports it. Otherwise the link may carry much less.
    pub(crate) is_known: bool,
    pub(crate) bits_per_second: u64,
}

/// The capacity of the interface that holds `ip`; for an unspecified one, of the fastest interface that is up,
/// preferably of one whose capacity is known.
pub(crate) fn detect(ip: IpAddr) -> Link {
    if ip.is_loopback() {
        return Link { is_known: true, bits_per_second: LOOPBACK };
    }
    let sys = Path::new("/sys");
    let is_machine = !is_virtual_machine();
    let links = getifaddrs().into_iter().flatten().filter(|interface| holds(interface, ip));
    let link = links.map(|interface| {
        // An alias such as `eth0:1` is an address of the interface before the colon.
        let device = interface.interface_name.split(':').next().unwrap_or_default();
        let link = link(sys, device);
        Link { is_known: link.is_known && is_machine, ..link }
    });
    link.max().unwrap_or(Link { is_known: false, bits_per_second: UNKNOWN })
}

fn holds(interface: &InterfaceAddress, ip: IpAddr) -> bool {
    let flags = interface.flags;
    if ip.is_unspecified() {
        return flags.contains(InterfaceFlags::IFF_UP)
            && !flags.contains(InterfaceFlags::IFF_LOOPBACK);
    }
    let Some(address) = &interface.address else { return false };
    match ip {
        IpAddr::V4(ip) => address.as_sockaddr_in().is_some_and(|held| held.ip() == ip),
        IpAddr::V6(ip) => address.as_sockaddr_in6().is_some_and(|held| held.ip() == ip),
    }
}

/// The capacity of the interface `device`, where sysfs is mounted at `sys`.
fn link(sys: &Path, device: &str) -> Link {
    let speed = fs::read_to_string(sys.join("class/net").join(device).join("speed"));
    match speed.ok().and_then(|text| parse_speed(&text)) {
        Some(speed) if is_hardware(sys, device, MAX_STACKED) => {
            Link { is_known: true, bits_per_second: speed }
        }
        // The kernel invents a speed: 10 Gb/s for veth; for tun, 10 Mb/s, or as much as veth.
        speed => Link { is_known: false, bits_per_second: speed.unwrap_or(0).max(UNKNOWN) },
    }
}

/// Whether the interface is a physical port, or VLANs, a bond, or a bridge of nothing else.
fn is_hardware(sys: &Path, device: &str, depth: usize) -> bool {
    let interface = sys.join("class/net").join(device);
    let device = interface.join("device");
    if device.exists() {
        let bus = fs::read_link(device.join("subsystem")).unwrap_or_default();
        let is_emulated = VIRTUAL_BUSES.iter().any(|virtual_bus| bus.ends_with(virtual_bus));
        // A virtual function has a share of its port, which nothing tells.
        return !is_emulated && !device.join("physfn").exists();
    }
    let entries = fs::read_dir(&interface).into_iter().flatten().flatten();
    let mut below = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("lower_").map(str::to_owned));
    depth > 0
        && below.next().is_some_and(|first| {
            is_hardware(sys, &first, depth - 1)
                && below.all(|other| is_hardware(sys, &other, depth - 1))
        })
}

/// Whether this is a virtual machine, whose owner may have limited even a device that is passed through.
fn is_virtual_machine() -> bool {
    // CPUID tells on x86 only; elsewhere, the vendor does.
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    if HYPERVISORS.iter().any(|name| vendor.starts_with(name)) {
        return true;
    }
    // The processors do not differ, and there may be hundreds.
    let mut text = Vec::new();
    let read = File::open("/proc/cpuinfo").and_then(|file| file.take(8192).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    read.is_ok() && text.split_whitespace().any(|word| word == "hypervisor")
}

/// The file holds the speed in Mb/s; -1 or 4294967295 if it is unknown.
fn parse_speed(text: &str) -> Option<u64> {
    match text.trim().parse::<i64>() {
        Ok(megabits) if megabits > 0 && megabits < i64::from(u32::MAX) => {
            Some(megabits as u64 * 1_000_000)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_reported_speed_is_in_megabits_per_second() {
        assert_eq!(parse_speed("10000\n"), Some(10_000_000_000));
        for unknown in ["-1\n", "0\n", "4294967295\n", "", "fast"] {
            assert_eq!(parse_speed(unknown), None);
        }
    }

    #[test]
    fn loopback_and_unknown_addresses_have_default_speeds() {
        let loopback = Link { is_known: true, bits_per_second: LOOPBACK };
        assert_eq!(detect(IpAddr::from([127, 0, 0, 1])), loopback);
        assert_eq!(detect("::1".parse().unwrap()), loopback);
        // TEST-NET-3: no interface holds it.
        let unknown = Link { is_known: false, bits_per_second: UNKNOWN };
        assert_eq!(detect(IpAddr::from([203, 0, 113, 7])), unknown);
    }

    /// A directory with the entries of sysfs for some interfaces.
    struct Sys(tempfile::TempDir);

    impl Sys {
        /// An interface on `bus`, or on interfaces `below`, that reports `speed`.
        fn add(&self, name: &str, speed: &str, bus: Option<&str>, below: &[&str]) {
            let interface = self.0.path().join("class/net").join(name);
            fs::create_dir_all(&interface).unwrap();
            fs::write(interface.join("speed"), speed).unwrap();
            if let Some(bus) = bus {
                fs::create_dir(interface.join("device")).unwrap();
                symlink(format!("../../bus/{bus}"), interface.join("device/subsystem")).unwrap();
            }
            for lower in below {
                symlink(format!("../{lower}"), interface.join(format!("lower_{lower}"))).unwrap();
            }
        }
    }

    #[test]
    fn only_hardware_and_what_consists_of_it_is_believed() {
        let sys = Sys(tempfile::tempdir().unwrap());
        sys.add("port1", "25000", Some("pci"), &[]);
        sys.add("port2", "25000", Some("pci"), &[]);
        sys.add("function", "25000", Some("pci"), &[]);
        fs::create_dir(sys.0.path().join("class/net/function/device/physfn")).unwrap();
        sys.add("virtual", "40000", Some("virtio"), &[]);
        sys.add("veth", "10000", None, &[]);
        sys.add("tun", "10", None, &[]);
        sys.add("down", "-1", Some("pci"), &[]);
        sys.add("bond", "50000", None, &["port1", "port2"]);
        sys.add("bond.5", "50000", None, &["bond"]);
        sys.add("bridge", "25000", None, &["port1", "veth"]);
        sys.add("veth.5", "10000", None, &["veth"]);
        for (name, is_known, gigabits) in [
            ("port1", true, 25),
            ("function", false, 25),
            ("virtual", false, 40),
            ("veth", false, 10),
            ("tun", false, 1),
            ("down", false, 1),
            ("bond", true, 50),
            ("bond.5", true, 50),
            ("bridge", false, 25),
            ("veth.5", false, 10),
            ("gone", false, 1),
        ] {
            let expected = Link { is_known, bits_per_second: gigabits * 1_000_000_000 };
            assert_eq!(link(sys.0.path(), name), expected, "{name}");
        }
    }
}
