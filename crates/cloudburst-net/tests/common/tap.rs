//! A relay that forwards everything and records what the kernel reports of each packet.

use cloudburst_core::wire::Kind;
use cloudburst_net::{Builder, Endpoint};
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The option with which the kernel reports the flow label of each packet.
#[derive(Clone, Copy, Debug)]
struct RecvFlowInfo;

nix::setsockopt_impl!(
    RecvFlowInfo,
    libc::IPPROTO_IPV6,
    libc::IPV6_FLOWINFO,
    bool,
    sockopt::SetBool
);

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) from: SocketAddr,
    pub(crate) kind: Option<Kind>,
    /// DSCP and ECN.
    pub(crate) tos: Option<u8>,
    /// Of IPv6.
    pub(crate) flow_label: Option<u32>,
}

/// All packets so far, to the target and back from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) up: Vec<Packet>,
    pub(crate) down: Vec<Packet>,
}

pub(crate) struct Tap {
    front: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    stopping: Arc<AtomicBool>,
}

impl Tap {
    /// A tap in front of the endpoint that `builder` makes, which takes packets to `ip`.
    pub(crate) fn in_front_of(builder: Builder, ip: &str) -> (Endpoint, Self) {
        Self::marking(builder, ip, 0)
    }

    /// Like [`in_front_of`](Self::in_front_of), but forwards packets with `byte` for DSCP and ECN,
    /// whatever they arrived with.
    pub(crate) fn marking(builder: Builder, ip: &str, byte: u8) -> (Endpoint, Self) {
        let ip: IpAddr = ip.parse().expect("an IP address");
        let front = open(ip, byte);
        let known_as = front.local_addr().expect("it is bound");
        let endpoint =
            builder.known_as([known_as]).build().expect("loopback endpoints can be built");
        let target = (ip, endpoint.local_addr().port()).into();
        (endpoint, Self::start(front, target, byte))
    }

    fn start(front: UdpSocket, target: SocketAddr, byte: u8) -> Self {
        let front = Arc::new(front);
        let tap = Self {
            front: front.local_addr().expect("it is bound"),
            seen: Arc::default(),
            stopping: Arc::default(),
        };
        let seen = tap.seen.clone();
        let stopping = tap.stopping.clone();
        thread::spawn(move || {
            let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
            while !stopping.load(Ordering::SeqCst) {
                let Some((packet, bytes)) = read(&front) else { continue };
                seen.lock().expect("no panic").up.push(packet);
                let nat = clients.entry(packet.from).or_insert_with(|| {
                    let nat = Arc::new(open(target.ip(), byte));
                    let back = (nat.clone(), front.clone(), seen.clone(), stopping.clone());
                    thread::spawn(move || pass_back(back, packet.from));
                    nat
                });
                let _ = nat.send_to(&bytes, target);
            }
        });
        tap
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.front
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}

type Back = (Arc<UdpSocket>, Arc<UdpSocket>, Arc<Mutex<Seen>>, Arc<AtomicBool>);

fn pass_back((nat, front, seen, stopping): Back, client: SocketAddr) {
    while !stopping.load(Ordering::SeqCst) {
        let Some((packet, bytes)) = read(&nat) else { continue };
        seen.lock().expect("no panic").down.push(packet);
        let _ = front.send_to(&bytes, client);
    }
}

pub(crate) fn open(ip: IpAddr, byte: u8) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).expect("a loopback socket");
    let set = match ip {
        IpAddr::V4(_) => setsockopt(&socket, sockopt::IpRecvTos, &true),
        IpAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvTClass, &true),
    };
    set.expect("the kernel reports the TOS byte");
    let marked = match ip {
        IpAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4Tos, &byte.into()),
        IpAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6TClass, &byte.into()),
    };
    marked.expect("the kernel marks packets");
    if ip.is_ipv6() {
        setsockopt(&socket, RecvFlowInfo, &true).expect("the kernel reports the flow label");
    }
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("an option");
    socket
}

pub(crate) fn read(socket: &UdpSocket) -> Option<(Packet, Vec<u8>)> {
    let mut bytes = vec![0; 65_536];
    let mut control = nix::cmsg_space!(i32, u32);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::empty(),
    )
    .ok()?;
    let from = received.address?;
    let v4 = from.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let from = v4.or_else(|| from.as_sockaddr_in6().map(|v6| (v6.ip(), v6.port()).into()))?;
    let tos = received.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
        ControlMessageOwned::Ipv6TClass(class) => u8::try_from(class).ok(),
        _ => None,
    });
    let flow_label = received.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::Unknown(info) if info.cmsg_header.cmsg_type == libc::IPV6_FLOWINFO => {
            let info = info.data_bytes.first_chunk().copied()?;
            Some(u32::from_be_bytes(info) & 0xf_ffff)
        }
        _ => None,
    });
    let len = received.bytes;
    bytes.truncate(len);
    Some((Packet { from, kind: Kind::of(&bytes).ok(), tos, flow_label }, bytes))
}
