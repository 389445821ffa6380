//! A host that sees no packet of others, and sends ICMP messages about them.

use super::rig::{PORT, SOON, answers_calls, open, server, server_address, within};
use crate::Test;
use cloudburst_core::wire::{Kind, packet::VERSION};
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Type and code (RFC 792): port unreachable, fragmentation needed, source route failed, net and host
/// unreachable, prohibited, time exceeded.
const KINDS: [(u8, u8); 7] = [(3, 3), (3, 4), (3, 5), (3, 0), (3, 1), (3, 13), (11, 0)];
const LASTS: Duration = Duration::from_secs(2);

pub(crate) fn tests() -> Vec<Test> {
    vec![Test::new(
        "forged_icmp_fails_no_call_and_costs_no_packet",
        forged_icmp_fails_no_call_and_costs_no_packet,
    )]
}

fn forged_icmp_fails_no_call_and_costs_no_packet() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let client = open(&gateway.clients[0], "ecmp:4", |on| on)?;
    let ports: Vec<u16> = client.local_addrs().iter().map(|addr| addr.port()).collect();
    let client = client.clone();
    let server = server(&gateway.server, "ecmp:4")?;
    let to = server_address(&gateway);
    answers_calls(&client, &server, to)?;
    let before = client.counters();
    let mtu = client.peer(to).map(|peer| peer.sent.mtu);

    let done = Arc::new(AtomicBool::new(false));
    let until = done.clone();
    let from = gateway.clients[0].address();
    let about = gateway.server.address();
    let attacker = &gateway.clients[1];
    let forged = thread::scope(|scope| {
        let forger = scope.spawn(|| attacker.run(move || forge(from, about, &ports, &until)));
        let began_at = Instant::now();
        let mut calls = 0;
        let answered = loop {
            if let Err(failed) = answers_calls(&client, &server, to) {
                break Err(failed);
            }
            calls += 1;
            if began_at.elapsed() > LASTS {
                break Ok(());
            }
        };
        done.store(true, Relaxed);
        let forged = forger.join().expect("it does not panic");
        answered?;
        assert!(calls > 10, "only {calls} calls in {LASTS:?}");
        forged.map_err(|error| Failed::from(format!("raw socket: {error}")))
    })?;
    let after = client.counters();
    assert!(after.io.receive_errors - before.io.receive_errors > 100, "of {forged}: {after:?}");
    assert_eq!(after.io.send_errors.total(), 0);
    assert_eq!(after.io.gso_fallbacks, before.io.gso_fallbacks);
    assert_eq!(after.sender.handshakes_sent, before.sender.handshakes_sent);
    assert_eq!(client.peer(to).map(|peer| peer.sent.mtu), mtu);
    client.send(to, "hello").options(within(SOON)).wait()?;
    Ok(())
}

/// Sends ICMP messages to `from` about packets that it has not sent to the server. Returns how many.
fn forge(from: Ipv4Addr, about: Ipv4Addr, ports: &[u16], done: &AtomicBool) -> io::Result<usize> {
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp)?;
    let to = SockaddrIn::from(SocketAddrV4::new(from, 0));
    let mut sent = 0;
    while !done.load(Relaxed) {
        for &(kind, code) in &KINDS {
            for &port in ports {
                let quoted = [Kind::Hello, Kind::Open, Kind::Symbol][sent % 3];
                let first = VERSION << 4 | quoted as u8;
                let message = icmp(kind, code, SocketAddrV4::new(from, port), about, first);
                sendto(raw.as_raw_fd(), &message, &to, MsgFlags::empty())?;
                sent += 1;
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(sent)
}

/// An ICMP message about a packet of 40 bytes from `from` to the port of the server.
fn icmp(kind: u8, code: u8, from: SocketAddrV4, to: Ipv4Addr, first: u8) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0, 0x02, 0x40];
    // The headers of IPv4 and UDP.
    message.extend([0x45, 0, 0, 68, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    message.extend(from.ip().octets());
    message.extend(to.octets());
    for field in [from.port(), PORT, 48, 0] {
        message.extend(field.to_be_bytes());
    }
    message.extend([first; 40]);
    let sum: u32 = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}
