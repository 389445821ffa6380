//! A switch port that drops selectively (Aeolus): packets that real endpoints send before any answer are
//! dropped, and the others pass.
//!
//! ```text
//!   clients ──▶ relay: one link, with a threshold ──▶ server
//!           ◀──────────── answers ────────────────────
//! ```

use crate::common::tap::{open, read};
use crate::common::{TIMEOUT, builder, bytes};
use cloudburst_net::{Config, EcnMode, Endpoint, Fabric, Tuning};
use cloudburst_netem::{Link, LinkConfig, LinkStats, Mark};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A relay with a single link to the target for all clients.
struct Port {
    addr: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    front: UdpSocket,
    target: SocketAddr,
    link: Mutex<Link>,
    epoch: Instant,
    stopping: AtomicBool,
    /// ECT(0) packets that came.
    ect: Mutex<u64>,
    clients: Mutex<Clients>,
}

/// The clients by number, and the sockets with which they appear to the target.
#[derive(Default)]
struct Clients {
    numbers: HashMap<SocketAddr, u8>,
    sockets: Vec<Arc<UdpSocket>>,
}

impl Port {
    fn start(front: UdpSocket, target: SocketAddr, config: LinkConfig) -> Self {
        let shared = Arc::new(Shared {
            target,
            link: Mutex::new(Link::new(config, 1).expect("the link is valid")),
            epoch: Instant::now(),
            stopping: AtomicBool::new(false),
            ect: Mutex::new(0),
            clients: Mutex::default(),
            front,
        });
        let addr = shared.front.local_addr().expect("it is bound");
        let reader = shared.clone();
        let sender = shared.clone();
        let threads = vec![
            thread::spawn(move || reader.read_clients()),
            thread::spawn(move || sender.forward()),
        ];
        Self { addr, shared, threads }
    }

    /// The counters of the link, and the number of ECT(0) packets that arrived.
    fn stats(&self) -> (LinkStats, u64) {
        (*lock(&self.shared.link).stats(), *lock(&self.shared.ect))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn is_running(&self) -> bool {
        !self.stopping.load(Ordering::SeqCst)
    }

    /// Puts the clients' packets on the link, with the ECN bits that they arrived with.
    fn read_clients(self: &Arc<Self>) {
        thread::scope(|scope| {
            while self.is_running() {
                let Some((packet, bytes)) = read(&self.front) else { continue };
                let number = {
                    let mut clients = lock(&self.clients);
                    let Clients { numbers, sockets } = &mut *clients;
                    *numbers.entry(packet.from).or_insert_with(|| {
                        let nat = Arc::new(open(LOOPBACK, 0));
                        let back = nat.clone();
                        scope.spawn(move || self.pass_back(&back, packet.from));
                        sockets.push(nat);
                        (sockets.len() - 1) as u8
                    })
                };
                let ect = packet.tos.is_some_and(|tos| tos & 0b11 == 0b10);
                *lock(&self.ect) += u64::from(ect);
                let mut link = lock(&self.link);
                let mark = Mark { class: 0, ect };
                link.send_marked(self.epoch.elapsed(), mark, &[&[number], &bytes[..]].concat());
            }
        });
    }

    fn pass_back(&self, nat: &UdpSocket, client: SocketAddr) {
        while self.is_running() {
            let Some((_, bytes)) = read(nat) else { continue };
            let _ = self.front.send_to(&bytes, client);
        }
    }

    /// Forwards the packets that leave the link to the target.
    fn forward(&self) {
        while self.is_running() {
            let packet = lock(&self.link).poll(self.epoch.elapsed());
            let Some(packet) = packet else {
                thread::sleep(Duration::from_micros(50));
                continue;
            };
            let nat = lock(&self.clients).sockets[usize::from(packet[0])].clone();
            let _ = nat.send_to(&packet[1..], self.target);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn scheduled_packets_of_an_incast_survive_where_unscheduled_ones_die() {
    let builder = || {
        let config = Config {
            capacity: 1_000_000_000.into(),
            fabric: Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() },
            tuning: Tuning { probe: true, ..Tuning::default() },
            ..Config::default()
        };
        builder().config(config)
    };
    let front = open(LOOPBACK, 0);
    let known_as = front.local_addr().unwrap();
    let server = builder().known_as([known_as]).build().unwrap();
    // The queue holds all that the clients may send after an answer.
    let link = LinkConfig {
        rate: Some(100_000_000),
        queue_bytes: Some(1_000_000),
        selective: Some(6_000),
        ..LinkConfig::default()
    };
    let port = Port::start(front, (LOOPBACK, server.local_addr().port()).into(), link);
    let clients: Vec<Endpoint> = (0..CLIENTS).map(|_| builder().build().unwrap()).collect();
    let server = server.clone();
    for client in &clients {
        client.clone().send(port.addr, bytes(100, 0)).wait().unwrap();
        server.recv().wait_for(TIMEOUT).expect("it came").unwrap();
    }
    let (before, ect_before) = port.stats();
    thread::scope(|scope| {
        for (client, seed) in clients.iter().zip(0..) {
            let to = port.addr;
            scope.spawn(move || client.clone().send(to, bytes(40_000, seed)).wait().unwrap());
        }
        for _ in &clients {
            let message = server.recv().wait_for(TIMEOUT).expect("it came").unwrap();
            assert_eq!(message.bytes.len(), 40_000);
        }
    });
    let (stats, ect) = port.stats();
    let unscheduled = (stats.sent - before.sent) - (ect - ect_before);
    println!(
        "{unscheduled} Not-ECT packets, {} of them dropped; {} ECT(0), {} dropped",
        stats.selectively_dropped - before.selectively_dropped,
        ect - ect_before,
        stats.queue_dropped
    );
    // The opening of one client alone takes 29 times 120 us, at a tenth of its own rate.
    assert!(stats.selectively_dropped > before.selectively_dropped);
    assert_eq!(stats.queue_dropped, 0, "ECT(0) packets pass");
    assert!(ect - ect_before > CLIENTS, "there were some beside probes");
}
