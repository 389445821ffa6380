//! The threads of a relay: one reads from clients, one per path reads from the target, and one
//! forwards delayed packets.
//!
//! A packet that a link lets through at once is forwarded by the thread that read it: on a small
//! machine that takes half the time of passing each packet to another thread, and drops no more.
//!
//! A read that fails is either the timeout, or an ECONNREFUSED from the target's host for an earlier
//! packet. Neither ends a thread; each is reported once, so neither makes it spin.

use super::shared::{Direction, Shared};
use std::net::UdpSocket;
use std::thread;

/// Longer than any UDP datagram.
const BUFFER: usize = 1 << 16;

/// Reads packets from clients, and creates a path, with a reader, for each new one.
///
/// It returns once the relay has stopped and the readers of all paths have ended.
pub(super) fn read_clients(shared: &Shared) {
    thread::scope(|scope| {
        let mut buffer = vec![0; BUFFER];
        while shared.is_running() {
            let Ok((len, client)) = shared.front.recv_from(&mut buffer) else { continue };
            let mut state = shared.lock();
            let path = match state.path_of(client) {
                Some(path) => Ok(path),
                None => shared.open_path(&mut state, client, |path, nat| {
                    let name = format!("netem path {path}");
                    let reader = move || read_answers(shared, path, &nat);
                    thread::Builder::new().name(name).spawn_scoped(scope, reader).map(drop)
                }),
            };
            match path {
                Ok(path) => shared.send(&mut state, path, Direction::Up, &buffer[..len]),
                Err(_) => state.ignored += 1,
            }
        }
    });
}

/// Reads the packets that the target sends to one path.
fn read_answers(shared: &Shared, path: usize, nat: &UdpSocket) {
    let mut buffer = vec![0; BUFFER];
    while shared.is_running() {
        let Ok(len) = nat.recv(&mut buffer) else { continue };
        shared.send(&mut shared.lock(), path, Direction::Down, &buffer[..len]);
    }
}

/// Forwards packets that do not pass their link at once.
pub(super) fn forward_when_due(shared: &Shared) {
    let mut state = shared.lock();
    while shared.is_running() {
        state = shared.forward_and_wait(state);
    }
}
