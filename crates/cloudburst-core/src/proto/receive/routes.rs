//! Return paths: answers to a peer take turns on the paths by which its symbols arrive.

use crate::id::PathId;
use crate::path::{PathMap, Via};
use crate::proto::limits::MAX_ROUTES;

/// A route is quiet once this many symbols per route have arrived on other routes: one scheduling
/// quantum of the sender, with the default packet trains.
const QUIET_AFTER: u64 = 4;
/// A quiet route takes one turn in this many.
const QUIET_TURNS: u32 = 16;
/// Turns that each ACK request adds to a quiet route.
const DOUBT: u32 = 2;
/// Most copies of an answer to a peer that has had none for long: one by a route, the others by
/// paths of the receiver's own. Together they are no longer than the symbol that they answer.
const COPIES: usize = 4;

/// How often to send an answer of `len` bytes to a peer that has had none for long: all of them
/// together are no larger than what it sent, of `limit` bytes.
pub(super) fn copies(len: usize, limit: usize) -> usize {
    (limit / len.max(1)).clamp(1, COPIES)
}

/// The return paths to one peer, indexed by the path number that its packets carry.
#[derive(Debug, Default)]
pub(super) struct Routes {
    routes: Vec<Route>,
    next: usize,
    /// Symbols that came by any route.
    symbols: u64,
    /// Answers that did not take a route.
    alternates: usize,
}

#[derive(Debug)]
struct Route {
    /// The peer's path whose symbols came by it.
    path: PathId,
    via: Via,
    /// `symbols` when the last one came.
    last_symbol: u64,
    /// Turns that it did not get since it went quiet, or was last taken.
    passed: u32,
}

impl Routes {
    /// An authentic packet of the peer's path `path` came by `via`.
    pub(super) fn learn(&mut self, path: PathId, via: Via) {
        self.symbols += 1;
        let last_symbol = self.symbols;
        if let Some(known) = self.routes.iter_mut().find(|known| known.path == path) {
            (known.via, known.last_symbol) = (via, last_symbol);
        } else if self.routes.len() < MAX_ROUTES {
            self.routes.push(Route { path, via, last_symbol, passed: 0 });
        }
    }

    /// The peer requests an ACK: what it was told may have been lost. Quiet routes are tried
    /// sooner.
    pub(super) fn doubt(&mut self) {
        self.routes.iter_mut().for_each(|route| route.passed += DOUBT);
    }

    /// The next way back that is a path of our own, to the address of the next route: all ways by
    /// which the peer's symbols come may be dead the other way.
    pub(super) fn take_alternate(&mut self, own: &dyn PathMap) -> Option<(PathId, Via)> {
        let (path, via) = self.take()?;
        let ways = own.paths(via.remote, 1);
        let way = ways.get(self.alternates % ways.len().max(1)).copied();
        self.alternates += 1;
        Some((path, way.unwrap_or(via)))
    }

    /// The next route in turn. What brings no symbols any more hardly takes answers back: such
    /// routes are passed over most of the time, but not always, for one may work in one direction.
    pub(super) fn take(&mut self) -> Option<(PathId, Via)> {
        let routes = self.routes.len();
        let quiet = QUIET_AFTER * routes as u64;
        for _ in 0..routes {
            let turn = self.next % routes;
            self.next = turn + 1;
            let route = &mut self.routes[turn];
            route.passed += 1;
            if self.symbols - route.last_symbol < quiet || route.passed >= QUIET_TURNS {
                route.passed = 0;
                return Some((PathId(turn as u16), route.via));
            }
        }
        // Symbols come by a route that there was no room for.
        let turn = self.next.checked_rem(routes)?;
        self.next = turn + 1;
        Some((PathId(turn as u16), self.routes[turn].via))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Egresses;
    use std::net::SocketAddr;

    #[test]
    fn alternates_take_all_paths_of_our_own_in_turn() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut routes = Routes::default();
        routes.learn(PathId(0), Via { egress: 0, remote: peer });
        let egresses = |own: &dyn PathMap, routes: &mut Routes| {
            let taken = (0..6).filter_map(|_| routes.take_alternate(own));
            taken.map(|(_, via)| via.egress).collect::<Vec<_>>()
        };
        assert_eq!(egresses(&Egresses(4), &mut routes), [0, 1, 2, 3, 0, 1]);
        assert_eq!(egresses(&Egresses(0), &mut routes), [0; 6], "no own path");
        assert_eq!(routes.take().map(|(_, via)| via.egress), Some(0));
        assert_eq!((copies(100, 1_452), copies(100, 299), copies(100, 85)), (4, 2, 1));
    }
}
