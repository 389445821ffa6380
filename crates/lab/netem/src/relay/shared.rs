//! The state that the threads of a relay share: sockets, links, and one lock over all of them.

use super::{Link, LinkConfig, Relay};
use crate::rng::SplitMix64;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How long a read blocks before the thread checks whether the relay has ended.
const READ_TIMEOUT: Duration = Duration::from_millis(5);

/// One relay, as its threads see it.
#[derive(Debug)]
pub(super) struct Shared {
    /// The socket that clients send to and receive answers from.
    pub(super) front: UdpSocket,
    target: SocketAddr,
    links: Vec<(LinkConfig, LinkConfig)>,
    epoch: Instant,
    running: AtomicBool,
    state: Mutex<State>,
    /// Wakes the scheduler: a packet is due before its alarm, or the relay ends.
    alarm_changed: Condvar,
}

/// The state that changes while the relay runs.
#[derive(Debug)]
pub(super) struct State {
    /// In order of first appearance; never removed.
    pub(super) paths: Vec<Path>,
    /// Packets without a path.
    pub(super) ignored: u64,
    /// When the scheduler wakes by itself; `None` while no packet is due.
    alarm: Option<Duration>,
    by_client: HashMap<SocketAddr, usize>,
    /// Seeds the links: two numbers per path.
    seeds: SplitMix64,
}

/// One client, its links, and the socket with which it appears to the target.
#[derive(Debug)]
pub(super) struct Path {
    client: SocketAddr,
    /// Connected to the target, so that no other host's packets are received.
    nat: Arc<UdpSocket>,
    pub(super) up: Link,
    pub(super) down: Link,
}

/// A direction on a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    /// From the client to the target.
    Up,
    /// From the target to the client.
    Down,
}

impl Shared {
    /// Checks the links and opens the socket for clients.
    pub(super) fn open(
        front: UdpSocket,
        target: SocketAddr,
        links: Vec<(LinkConfig, LinkConfig)>,
        seed: u64,
    ) -> io::Result<Self> {
        if links.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a relay needs links, got 0"));
        }
        for config in links.iter().flat_map(|(up, down)| [up, down]) {
            config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        }
        front.set_read_timeout(Some(READ_TIMEOUT))?;
        let state = State {
            paths: Vec::new(),
            ignored: 0,
            alarm: None,
            by_client: HashMap::new(),
            seeds: SplitMix64::new(seed),
        };
        Ok(Self {
            front,
            target,
            links,
            epoch: Instant::now(),
            running: AtomicBool::new(true),
            state: Mutex::new(state),
            alarm_changed: Condvar::new(),
        })
    }

    /// Locks the state, also after a panic elsewhere: links are usable between any two calls.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// Tells all threads to end.
    pub(super) fn stop(&self) {
        // Under the lock, or the scheduler could check just before and fall asleep just after.
        let _state = self.lock();
        self.running.store(false, Ordering::Release);
        self.alarm_changed.notify_all();
    }

    /// Sends a packet into a link, forwards the packets that have come out, and leaves the rest to the
    /// scheduler.
    pub(super) fn send(&self, state: &mut State, path: usize, direction: Direction, packet: &[u8]) {
        let now = self.now();
        let path = &mut state.paths[path];
        match direction {
            Direction::Up => path.up.send(now, packet),
            Direction::Down => path.down.send(now, packet),
        }
        path.forward(now, &self.front);
        let Some(next) = path.next_at() else { return };
        if state.alarm.is_none_or(|alarm| next < alarm) {
            self.alarm_changed.notify_one();
        }
    }

    /// Forwards the packets that have come out on all paths, then waits, without the lock, until more
    /// may have, or the relay ends.
    pub(super) fn forward_and_wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let now = self.now();
        state.paths.iter_mut().for_each(|path| path.forward(now, &self.front));
        state.alarm = state.paths.iter().filter_map(Path::next_at).min();
        match state.alarm {
            None => self.alarm_changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(at) => {
                let longest = at.saturating_sub(self.now());
                let woken = self.alarm_changed.wait_timeout(state, longest);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Creates a path for a client that has none, and returns its number. `start_reader` gets the
    /// number and the new socket; the path exists if it succeeds.
    pub(super) fn open_path(
        &self,
        state: &mut State,
        client: SocketAddr,
        start_reader: impl FnOnce(usize, Arc<UdpSocket>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let number = state.paths.len();
        if number >= Relay::MAX_PATHS {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let any: IpAddr = match self.target {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let nat = Arc::new(UdpSocket::bind((any, 0))?);
        nat.connect(self.target)?;
        nat.set_read_timeout(Some(READ_TIMEOUT))?;

        let (up, down) = &self.links[number % self.links.len()];
        let up = Link::new(up.clone(), state.seeds.next_u64()).map_err(io::Error::other)?;
        let down = Link::new(down.clone(), state.seeds.next_u64()).map_err(io::Error::other)?;
        start_reader(number, Arc::clone(&nat))?;
        state.paths.push(Path { client, nat, up, down });
        state.by_client.insert(client, number);
        Ok(number)
    }

    /// Returns the time on the clock of the links. Call it under the lock, so that no link sees time
    /// run backwards.
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

impl State {
    pub(super) fn path_of(&self, client: SocketAddr) -> Option<usize> {
        self.by_client.get(&client).copied()
    }
}

impl Path {
    /// Returns when the next packet comes out in either direction.
    fn next_at(&self) -> Option<Duration> {
        [self.up.next_at(), self.down.next_at()].into_iter().flatten().min()
    }

    /// Forwards the packets that have come out by `now`. It runs under the lock, so that packets depart
    /// in the order in which they left their link.
    ///
    /// A packet whose send fails is lost.
    fn forward(&mut self, now: Duration, front: &UdpSocket) {
        while let Some(packet) = self.up.poll(now) {
            let _ = send_connected(&self.nat, &packet);
        }
        while let Some(packet) = self.down.poll(now) {
            let _ = front.send_to(&packet, self.client);
        }
    }
}

/// Sends on a connected socket. An ECONNREFUSED concerns an earlier packet, sent while the target was
/// not there, but prevents this one from being sent: it is sent again.
fn send_connected(nat: &UdpSocket, packet: &[u8]) -> io::Result<usize> {
    match nat.send(packet) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => nat.send(packet),
        done => done,
    }
}
