//! Hosts and links on one clock. Packets that leave a host enter a link, packets that leave a link
//! enter a host, and timers are served when they are due.
//!
//! Time is an argument, and so are the hosts: callers keep them where they like.

use crate::host::{Departure, Host, Out};
use crate::network::{Hop, Network};
use cloudburst_core::path::Via;
use cloudburst_core::time::Instant;
use core::borrow::BorrowMut;
use std::net::SocketAddr;

/// Maximum number of times that an endpoint's timeout may be due at one moment.
const MAX_SPINS: usize = 4;

/// An observer that decides what happens to packets. By default, each method observes nothing and
/// lets everything pass.
pub trait Watch {
    /// A host put a packet on the wire. `hop` is the route that it would take, or `None` if its
    /// address has no host. Returns the route that it takes, or `None` if it does not leave.
    fn on_departure(&mut self, _departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        hop
    }

    /// A packet reaches a host that is running.
    fn on_arrival(&mut self, _to: usize, _via: Via, _packet: &[u8]) {}

    /// A host has handled an input. The packets that it sent in response have not departed yet.
    fn on_served(&mut self, _number: usize, _host: &mut Host) {}
}

/// An observer that lets everything pass.
#[derive(Debug)]
pub struct Nobody;

impl Watch for Nobody {}

/// The time of the next event.
pub fn next_at<H: BorrowMut<Host>>(hosts: &[H], network: &Network) -> Option<Instant> {
    let timeouts = hosts.iter().filter_map(|host| host.borrow().poll_timeout());
    timeouts.chain(network.next_at()).min()
}

/// Drains a host that was given an input.
pub fn drain<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    number: usize,
    watch: &mut impl Watch,
) {
    serve(hosts, network, now, number, watch, |host, out| host.drain(now, out));
}

/// Hands a packet that arrived by `via`, from a link or elsewhere, to a host.
pub fn hand_in<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    (to, via, packet): (usize, Via, Vec<u8>),
    watch: &mut impl Watch,
) {
    if hosts[to].borrow().is_running() {
        watch.on_arrival(to, via, &packet);
    }
    serve(hosts, network, now, to, watch, |host, out| host.handle(now, via, packet, out));
}

/// Does everything that is due at `now`: packets first, then timers.
///
/// # Panics
///
/// If an endpoint's timeout is still due at this moment after it has been handled repeatedly.
pub fn run_moment<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    watch: &mut impl Watch,
) {
    while let Some((hop, packet)) = network.poll(now) {
        hand_in(hosts, network, now, (hop.to, hop.via(), packet), watch);
    }
    for number in 0..hosts.len() {
        run_timers(hosts, network, now, number, watch);
    }
}

/// Resumes a paused host. The packets that waited for it are handed in before its timers run.
pub fn resume<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    number: usize,
    watch: &mut impl Watch,
) {
    for (via, packet) in hosts[number].borrow_mut().resume() {
        hand_in(hosts, network, now, (number, via, packet), watch);
    }
    run_timers(hosts, network, now, number, watch);
}

fn run_timers<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    number: usize,
    watch: &mut impl Watch,
) {
    for _ in 0..MAX_SPINS {
        serve(hosts, network, now, number, watch, |host, out| host.handle_timeout(now, out));
        if hosts[number].borrow().poll_timeout().is_none_or(|at| at > now) {
            return;
        }
    }
    panic!("host {number} is due again after {MAX_SPINS} timeouts at {now:?}");
}

fn serve<H: BorrowMut<Host>>(
    hosts: &mut [H],
    network: &mut Network,
    now: Instant,
    number: usize,
    watch: &mut impl Watch,
    input: impl FnOnce(&mut Host, &mut Out<'_>),
) {
    let mut sent = Vec::new();
    let mut out = |transmit, packet: &[u8]| sent.push((transmit, packet.to_vec()));
    input(hosts[number].borrow_mut(), &mut out);
    watch.on_served(number, hosts[number].borrow_mut());
    for (transmit, packet) in sent {
        let source = hosts[number].borrow().recipe().address(transmit.via.egress);
        let departure = Departure { from: number, source, transmit, packet };
        let hop = route(hosts, number, source, transmit.via.remote);
        if let Some(hop) = watch.on_departure(&departure, hop) {
            network.send(now, hop, departure.transmit.marking, &departure.packet);
        }
    }
}

/// The route of a packet; `None` if its destination has no host. Among hosts that share an address,
/// the source port decides.
pub fn route<H: BorrowMut<Host>>(
    hosts: &[H],
    from: usize,
    source: SocketAddr,
    destination: SocketAddr,
) -> Option<Hop> {
    let egress_of = |(to, host): (usize, &H)| {
        let host: &Host = host.borrow();
        let egress = host.is_alive().then(|| host.recipe().egress_at(destination)).flatten()?;
        Some(Hop { from, to, egress, source })
    };
    let takers: Vec<Hop> = hosts.iter().enumerate().filter_map(egress_of).collect();
    let dealt = usize::from(source.port()).checked_rem(takers.len())?;
    Some(takers[dealt])
}
