//! ICMP messages that nothing listens at a port, from the error queues of sockets (ip(7)).

use super::socket::{EgressSocket, from_sockaddr};
use arrayvec::ArrayVec;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

/// Bytes that are kept of a quoted packet: those that identify it, and a few more.
const QUOTED_LEN: usize = 32;
/// Space for the control messages of an error.
const CONTROL_LEN: usize = 512;
/// The maximum number of errors that are read of a socket at once, and of refused packets that wait.
const MAX_ERRORS: usize = 64;
/// The origin, type and code of "port unreachable" (RFC 792, RFC 4443).
const PORT_UNREACHABLE: [(u8, u8, u8); 2] =
    [(libc::SO_EE_ORIGIN_ICMP, 3, 3), (libc::SO_EE_ORIGIN_ICMP6, 1, 4)];

/// A packet to a port at which nothing listens.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// Where it was sent.
    pub(super) to: SocketAddr,
    /// Its first bytes, as far as they were quoted.
    pub(super) quoted: ArrayVec<u8, QUOTED_LEN>,
}

/// Reads the error queue of a socket, and adds what was refused. Returns the number of errors.
pub(super) fn read(egress: &EgressSocket, refused: &mut Vec<Refused>) -> usize {
    let mut control = vec![0; CONTROL_LEN];
    for found in 0..MAX_ERRORS {
        let mut quoted = [0; QUOTED_LEN];
        let mut slice = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let fd = egress.socket.as_raw_fd();
        let Ok(message) = recvmsg(fd, &mut slice, Some(&mut control), flags) else { return found };
        let len = message.bytes.min(QUOTED_LEN);
        if let Some(to) = closed_port(&message)
            && refused.len() < MAX_ERRORS
        {
            refused.push(Refused { to, quoted: quoted[..len].iter().copied().collect() });
        }
    }
    MAX_ERRORS
}

/// Where the quoted packet was sent, if nothing listens there.
fn closed_port(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<SocketAddr> {
    let is_closed_port = |control| match control {
        // One of IPv4 is wrapped in one of IPv6 by a socket for both.
        ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
            PORT_UNREACHABLE.contains(&(error.ee_origin, error.ee_type, error.ee_code))
        }
        _ => false,
    };
    message.cmsgs().ok()?.any(is_closed_port).then(|| from_sockaddr(message.address.as_ref()?))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::config::UdpConfig;
    use crate::io::poller::Poller;
    use crate::io::receive::Inbox;
    use crate::io::sockets::Sockets;
    use core::time::Duration;

    #[test]
    fn error_queues_are_emptied_and_tell_what_was_refused() {
        for (bind, to) in [
            ("127.0.0.1:0", "127.0.0.1:9"),
            ("[::1]:0", "[::1]:9"),
            ("[::]:0", "[::1]:9"),
            ("[::]:0", "127.0.0.1:9"),
        ] {
            let to: SocketAddr = to.parse().unwrap();
            let config = UdpConfig::for_test(bind.parse().unwrap(), 1);
            let sockets = Sockets::open(&config, Vec::new()).unwrap();
            let egress = &sockets.egresses[0];
            let inbox = Inbox::new(Poller::watch_egresses([(0, egress)]).unwrap());
            for count in [1, 3, 2 * MAX_ERRORS] {
                for number in 0..count as u8 {
                    let to = sockets.family.to_socket(to);
                    // The first call may report an earlier refusal instead.
                    while egress.socket.send_to(&[number; 40], to).is_err() {}
                }
                let mut refused = Vec::new();
                let mut rounds = 0;
                while refused.is_empty() || inbox.poller.is_ready() {
                    let ready = inbox.wait(&sockets, Duration::from_secs(20));
                    inbox.take(&sockets, ready, false, &mut |_| panic!("nothing has arrived"));
                    inbox.take_refused(&mut |to, quoted| refused.push((to, quoted.to_vec())));
                    rounds += 1;
                    assert!(rounds < 1_000, "the socket stays ready");
                }
                assert!(refused.len() <= count && refused.iter().all(|(at, _)| *at == to));
                assert_eq!(refused[0].1, [0; QUOTED_LEN]);
            }
        }
    }
}
