//! Hosts whose addresses change, with a translator in front of some.

use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{CallFailure, Outcome};
use cloudburst_core::id::MessageId;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{PathResolver, Via};
use cloudburst_core::proto::{CallId, Event, SendOptions, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

/// How long a packet takes.
pub(super) const DELAY: Duration = Duration::from_millis(1);
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(2);
const PORT: u16 = 7000;

fn patient() -> SendOptions {
    let mut options = SendOptions::default();
    options.deadline = Some(Duration::from_secs(20));
    options
}

pub(super) fn ip(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

pub(super) fn at(host: u8) -> SocketAddr {
    SocketAddr::new(ip(host), PORT)
}

/// A path map whose paths differ in the egress, and which knows the addresses of its host.
struct Map {
    egresses: u16,
    own: Arc<Mutex<Vec<IpAddr>>>,
}

impl PathResolver for Map {
    fn paths(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        (0..self.egresses).map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn naming(&self, address: SocketAddr) -> Naming {
        let is_own = self.own.lock().unwrap().contains(&address.ip());
        if is_own { Naming::Own } else { Naming::Foreign }
    }
}

/// A translator in front of one host.
pub(super) struct Nat {
    pub(super) public: IpAddr,
    /// The public port of each egress.
    pub(super) ports: BTreeMap<u16, u16>,
    next: u16,
}

impl Nat {
    pub(super) fn new(public: IpAddr) -> Self {
        Self { public, ports: BTreeMap::new(), next: 40_000 }
    }

    fn translate(&mut self, egress: u16) -> SocketAddr {
        let next = &mut self.next;
        let port = *self.ports.entry(egress).or_insert_with(|| {
            *next += 1;
            *next
        });
        SocketAddr::new(self.public, port)
    }
}

pub(super) struct End {
    pub(super) host: Transceiver,
    own: Arc<Mutex<Vec<IpAddr>>>,
    /// Whether packets leave from all addresses in turn.
    pub(super) alternates: bool,
    pub(super) nat: Option<Nat>,
    /// Packets sent.
    pub(super) sent: usize,
    pub(super) outcomes: BTreeMap<MessageId, Outcome>,
    pub(super) answers: BTreeMap<CallId, (Instant, Result<usize, CallFailure>)>,
}

impl End {
    fn new(seed: u8, addresses: &[IpAddr], egresses: u16) -> Self {
        let own = Arc::new(Mutex::new(addresses.to_vec()));
        let map = Box::new(Map { egresses, own: own.clone() });
        let ports = ListenPorts::one(PORT);
        let security = Security::pre_shared([7; 32]);
        let seed = Seed::new([seed; 32]);
        let host = Transceiver::new(Config::default(), ports, &security, seed, map).unwrap();
        let outcomes = BTreeMap::new();
        let answers = BTreeMap::new();
        Self { host, own, alternates: false, nat: None, sent: 0, outcomes, answers }
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.own.lock().unwrap().clone()
    }

    /// Gives the host other addresses, of which it may notice nothing.
    pub(super) fn move_to(&mut self, addresses: &[IpAddr]) {
        *self.own.lock().unwrap() = addresses.to_vec();
    }

    fn source(&mut self, via: &Via) -> Option<SocketAddr> {
        let own = self.addresses();
        if let Some(nat) = &mut self.nat {
            return Some(nat.translate(via.egress));
        }
        let pinned = via.local.filter(|local| own.contains(local));
        let turn = if self.alternates { self.sent % own.len() } else { 0 };
        let ip = pinned.or_else(|| own.get(turn).copied())?;
        Some(SocketAddr::new(ip, PORT + via.egress))
    }

    /// By which egress and at which address a packet to `to` arrives.
    fn takes(&self, to: SocketAddr) -> Option<(u16, IpAddr)> {
        match &self.nat {
            Some(nat) => {
                let mut ports = nat.ports.iter();
                let (egress, _) =
                    ports.find(|(_, port)| nat.public == to.ip() && **port == to.port())?;
                Some((*egress, self.addresses()[0]))
            }
            None if self.addresses().contains(&to.ip()) => {
                to.port().checked_sub(PORT).map(|egress| (egress, to.ip()))
            }
            None => None,
        }
    }
}

/// A datagram on its way.
#[derive(Clone)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// What is done to a datagram on its way: those that are to arrive, each after how long.
pub(super) type OnTheWay = Box<dyn FnMut(Instant, Datagram) -> Vec<(Duration, Datagram)>>;

pub(super) struct Net {
    pub(super) now: Instant,
    pub(super) ends: Vec<End>,
    flying: BTreeMap<(Instant, u64), Datagram>,
    count: u64,
    pub(super) on_the_way: OnTheWay,
    /// Bytes that were sent to each address.
    pub(super) sent_to: BTreeMap<IpAddr, usize>,
}

impl Net {
    /// Hosts at these addresses.
    pub(super) fn new(hosts: &[&[IpAddr]]) -> Self {
        let ends = hosts.iter().enumerate();
        let ends = ends.map(|(seed, addresses)| End::new(seed as u8 + 1, addresses, 2)).collect();
        Self {
            now: Instant::from_nanos(1_000_000_000),
            ends,
            flying: BTreeMap::new(),
            count: 0,
            on_the_way: Box::new(|_, datagram| vec![(DELAY, datagram)]),
            sent_to: BTreeMap::new(),
        }
    }

    /// Another host.
    pub(super) fn add(&mut self, addresses: &[IpAddr]) -> usize {
        self.ends.push(End::new(self.ends.len() as u8 + 100, addresses, 2));
        self.ends.len() - 1
    }

    fn send(&mut self) {
        let mut buffer = Vec::new();
        for at in 0..self.ends.len() {
            while let Some(batch) = self.ends[at].host.poll_transmit(self.now, &mut buffer) {
                for bytes in buffer.chunks(batch.segment_size) {
                    let from = self.ends[at].source(&batch.via);
                    self.ends[at].sent += 1;
                    let Some(from) = from else { continue };
                    *self.sent_to.entry(batch.via.remote.ip()).or_default() += bytes.len();
                    let datagram = Datagram { from, to: batch.via.remote, bytes: bytes.to_vec() };
                    for (delay, datagram) in (self.on_the_way)(self.now, datagram) {
                        self.count += 1;
                        self.flying.insert((self.now + delay, self.count), datagram);
                    }
                }
                buffer.clear();
            }
        }
    }

    fn take_events(&mut self) {
        for end in &mut self.ends {
            while let Some(event) = end.host.poll_event() {
                match event {
                    Event::Ended(id, outcome) => drop(end.outcomes.insert(id, outcome)),
                    Event::Answered(call, result) => {
                        end.answers.insert(call, (self.now, result.map(|bytes| bytes.len())));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Runs for `time`.
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        self.run_until(until, |_| false);
    }

    /// Runs until `done`, or `until`.
    pub(super) fn run_until(&mut self, until: Instant, done: impl Fn(&Self) -> bool) {
        loop {
            self.send();
            self.take_events();
            if done(self) {
                return;
            }
            let timers = self.ends.iter().filter_map(|end| end.host.poll_timeout()).min();
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let next = [timers, arrival].into_iter().flatten().min().unwrap_or(until);
            let next = next.max(self.now + Duration::from_nanos(1));
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= next)
            {
                let Datagram { from, to, mut bytes } = entry.remove();
                for end in &mut self.ends {
                    if let Some((egress, local)) = end.takes(to) {
                        let via = Via { egress, local: Some(local), remote: from };
                        end.host.handle_datagram(next, via, &mut bytes);
                        end.host.check_invariants();
                        break;
                    }
                }
            }
            for end in &mut self.ends {
                end.host.handle_timeout(next);
                end.host.check_invariants();
            }
        }
    }

    pub(super) fn call(&mut self, from: usize, to: SocketAddr, len: usize) -> CallId {
        let host = &mut self.ends[from].host;
        let call = host.prepare(Some(Duration::from_secs(20)), &vec![1; len]);
        host.call(self.now, to, &call, &SendOptions::default()).unwrap();
        call.id()
    }

    pub(super) fn send_message(&mut self, from: usize, to: SocketAddr, len: usize) -> MessageId {
        let options = patient();
        self.ends[from].host.send(self.now, to, vec![2; len].into(), &options).unwrap()
    }

    /// Replies to the request that a host has, with `len` bytes.
    pub(super) fn reply(&mut self, host: usize, len: usize) -> SocketAddr {
        let end = &mut self.ends[host].host;
        let request = end.recv_request(self.now).expect("a request has arrived");
        let options = patient();
        end.reply(self.now, &request, Some(&vec![3; len]), &options).unwrap();
        request.peer
    }

    /// Runs until a call has ended. Returns how long that took.
    pub(super) fn until_answered(&mut self, host: usize, call: CallId) -> Duration {
        let began_at = self.now;
        let until = began_at + Duration::from_secs(20);
        self.run_until(until, |net| net.ends[host].answers.contains_key(&call));
        let ended = self.ends[host].answers.get(&call);
        let (at, result) = ended.expect("the call has ended");
        assert!(result.is_ok(), "{result:?}");
        at.saturating_since(began_at)
    }

    /// Has one host call another, which replies at once. Returns how long it took.
    pub(super) fn converse(&mut self, from: usize, to: SocketAddr, callee: usize) -> Duration {
        let began_at = self.now;
        let call = self.call(from, to, 100);
        let until = self.now + Duration::from_secs(20);
        loop {
            self.run(DELAY / 4);
            let request = self.ends[callee].host.recv_request(self.now);
            if let Some(request) = request {
                let host = &mut self.ends[callee].host;
                host.reply(self.now, &request, Some(&[3; 5_000]), &SendOptions::default()).unwrap();
                break;
            }
            assert!(self.now < until, "the request does not arrive");
        }
        self.until_answered(from, call);
        self.now.saturating_since(began_at)
    }

    pub(super) fn is_delivered(&self, host: usize, message: MessageId) -> bool {
        matches!(self.ends[host].outcomes.get(&message), Some(Outcome::Delivered(_)))
    }
}
