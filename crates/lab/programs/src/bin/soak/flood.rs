//! Junk and replayed packets at the port of a node.

use cloudburst_core::rng::SplitMix64;
use cloudburst_testbed::{Error, Star};
use core::time::Duration;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// `IPPROTO_RAW`: packets sent through the socket include their header.
const WITH_HEADER: i32 = 255;
/// Packets of each kind every [`EVERY`].
const BATCH: usize = 20;
const EVERY: Duration = Duration::from_millis(10);
/// Packets that are captured to be sent again.
const KEPT: usize = 5_000;

/// A flood, until it is dropped.
#[derive(Debug)]
pub struct Flood {
    ended: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Sends junk from the host `attacker` to `target`, and what the router has forwarded there once more, from
    /// where it came.
    pub fn start(star: &Star, attacker: u8, target: SocketAddr, seed: u64) -> Result<Self, Error> {
        let capture = star.router.capture()?;
        let failed = |error| Error::Io { doing: "a flood".into(), source: error };
        let again = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(WITH_HEADER)));
        let again = star.router.run(again).map_err(failed)?;
        let junk = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
        let junk = star.hosts[usize::from(attacker) - 1].run(junk).map_err(failed)?;
        let ended = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU64::new(0));
        let until = ended.clone();
        let count = sent.clone();
        let thread = thread::spawn(move || {
            let mut random = SplitMix64::new(seed);
            let mut captured: Vec<Vec<u8>> = Vec::new();
            while !until.load(Relaxed) {
                let mut to_target = capture.packets().unwrap_or_default();
                to_target.retain(|packet| is_to(packet, target));
                // Senders leave the checksum to their interface: it is not there yet.
                to_target.iter_mut().for_each(|packet| packet[26..28].fill(0));
                captured.extend(to_target.into_iter().take(KEPT - captured.len()));
                for _ in 0..BATCH {
                    let mut bytes = vec![0; 1 + random.below(1_472) as usize];
                    bytes.iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
                    // The kinds of packets of the protocol, so that some get further than the first byte.
                    bytes[0] = (random.below(256) as u8 & 0x0f) | 0x30;
                    let mut went = junk.send_to(&bytes, target).is_ok() as u64;
                    if !captured.is_empty() {
                        let packet = &captured[random.below(captured.len() as u64) as usize];
                        went += again.send_to(packet, &target.into()).is_ok() as u64;
                    }
                    count.fetch_add(went, Relaxed);
                }
                thread::sleep(EVERY);
            }
        });
        Ok(Self { ended, sent, thread: Some(thread) })
    }

    /// Ends it. Returns the number of packets sent.
    pub fn end(mut self) -> u64 {
        self.join();
        self.sent.load(Relaxed)
    }

    fn join(&mut self) {
        self.ended.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.join();
    }
}

/// Whether an IPv4 packet without options is a datagram to `target`'s address.
fn is_to(packet: &[u8], target: SocketAddr) -> bool {
    let SocketAddr::V4(target) = target else { return false };
    packet.len() > 28
        && packet[0] == 0x45
        && packet[9] == 17
        && packet[16..20] == target.ip().octets()
}
