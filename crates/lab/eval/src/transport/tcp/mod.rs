//! Kernel TCP: plain, replicated (RepFlow; paper V-B), or over several paths by MPTCP (RFC 8684).
//!
//! A call sends the same request over one or more connections, on the calling thread. The first
//! whole response ends the call. Only `poll` blocks, so a copy on a dead path does not delay the
//! others, and copies cost no threads.

mod exchange;
mod late;
mod server;
mod socket;
#[cfg(test)]
mod tests;

use super::{Call, Listening, Peer, Transport};
use crate::Failure;
use cloudburst_core::rng::SplitMix64;
use exchange::{Exchange, Route, poll_until};
use late::Late;
use server::Server;
pub(crate) use socket::TcpSettings;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// One host's end.
pub(crate) struct Tcp {
    settings: TcpSettings,
    server: Server,
    late: Late,
    /// The routes to each peer: one, or one for each path if copies have paths of their own.
    routes: OnceLock<Vec<Vec<Arc<Route>>>>,
}

impl Tcp {
    /// Listens on all addresses of the calling thread's network namespace, on a port that the kernel
    /// chooses. Calls connect from the namespace of their own thread.
    ///
    /// # Errors
    ///
    /// If the settings are invalid, or the kernel refuses them.
    pub(crate) fn open(settings: TcpSettings) -> Result<Self, Failure> {
        let name = settings.name();
        let open = || {
            settings.check()?;
            let server = Server::open(&settings)?;
            let late = Late::open()?;
            Ok::<_, String>(Self { settings, server, late, routes: OnceLock::new() })
        };
        open().map_err(Failure::transport(name))
    }

    fn routes(&self, peers: &[Peer]) -> Result<Vec<Vec<Arc<Route>>>, String> {
        let me = self.settings.me;
        let own = usize::from(me).checked_sub(1).and_then(|place| peers.get(place));
        let own = own.ok_or(format!("this is host {me} of {}", peers.len()))?;
        let all = (1..).zip(peers);
        all.map(|(host, peer)| self.routes_to(host, peer, &own.path_addresses)).collect()
    }

    fn routes_to(
        &self,
        host: u16,
        peer: &Peer,
        own_paths: &[IpAddr],
    ) -> Result<Vec<Arc<Route>>, String> {
        let [port, ..] = peer.listening.ports[..] else {
            return Err(format!("host {host} has no listening port"));
        };
        let route = |to, from| Arc::new(Route::new(host, SocketAddr::new(to, port), from));
        if self.settings.copies == 1 || peer.path_addresses.is_empty() {
            return Ok(vec![route(peer.address, None)]);
        }
        let here = own_paths.len();
        let there = peer.path_addresses.len();
        if here != there || there < self.settings.copies {
            return Err(format!(
                "{} copies need as many paths, or more, and the same number on both hosts: host \
                 {host} has {there} path addresses, and host {} has {here}",
                self.settings.copies, self.settings.me
            ));
        }
        let pairs = peer.path_addresses.iter().zip(own_paths);
        Ok(pairs.map(|(to, from)| route(*to, Some(*from))).collect())
    }

    /// Chooses the routes of a call's copies: different ones if there are several.
    fn choose(&self, call: &Call) -> Result<Vec<&Arc<Route>>, String> {
        let peers = self.routes.get().ok_or("called before it was connected")?;
        let place = usize::from(call.to).checked_sub(1);
        let Some(routes) = place.and_then(|place| peers.get(place)) else {
            return Err(format!("no host {}: there are {}", call.to, peers.len()));
        };
        if let [only] = &routes[..] {
            return Ok(vec![only; self.settings.copies]);
        }
        // Seeded by the message, so its paths do not depend on the order of calls.
        let message = u64::from(call.from) << 48 | u64::from(call.to) << 32 | u64::from(call.id);
        let mut random = SplitMix64::new(message);
        let mut left: Vec<_> = routes.iter().collect();
        let next = |_| left.swap_remove(random.below(left.len() as u64) as usize);
        Ok((0..self.settings.copies).map(next).collect())
    }
}

impl Transport for Tcp {
    fn listening(&self) -> Listening {
        Listening { ports: vec![self.server.port()], certificate: Vec::new() }
    }

    fn connect(&self, peers: &[Peer]) -> Result<(), Failure> {
        let name = self.settings.name();
        let routes = self.routes(peers).map_err(Failure::transport(name))?;
        let again = |_| "connected twice";
        self.routes.set(routes).map_err(again).map_err(Failure::transport(name))
    }

    fn call(&self, call: Call) -> Result<(), String> {
        let until = Instant::now() + call.within;
        let request: Arc<[u8]> = call.encode().into();
        let mut failed = Vec::new();
        let mut running = Vec::new();
        for route in self.choose(&call)? {
            match Exchange::begin(route, &self.settings, &request, call.response, until) {
                Ok(exchange) => running.push((exchange, true)),
                Err(reason) => failed.push(reason),
            }
        }
        while !running.is_empty() {
            let mut still = Vec::with_capacity(running.len());
            let mut is_done = false;
            for (mut exchange, is_ready) in running {
                let advanced = if is_ready { exchange.advance() } else { Ok(false) };
                match advanced {
                    Ok(true) => {
                        exchange.finish();
                        is_done = true;
                    }
                    Ok(false) => still.push(exchange),
                    Err(reason) => failed.push(exchange.blame(reason)),
                }
            }
            if is_done {
                self.late.take_over(still);
                return Ok(());
            }
            if still.is_empty() {
                break;
            }
            if Instant::now() >= until {
                let late = format!("timed out after {:?}", call.within);
                failed.extend(still.iter().map(|exchange| exchange.blame(&late)));
                break;
            }
            let mut fds: Vec<_> = still.iter().map(Exchange::poll_fd).collect();
            let ready = poll_until(&mut fds, Some(until))
                .map_err(|reason| format!("cannot wait for sockets: {reason}"))?;
            running = still.into_iter().zip(ready).collect();
        }
        Err(failed.join("; "))
    }
}
