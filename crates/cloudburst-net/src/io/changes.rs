//! Notices that addresses or interfaces of this host have come or gone.

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The groups of messages about interfaces, IPv4 and IPv6 addresses: RTMGRP_LINK,
/// RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR.
const GROUPS: u32 = 0x1 | 0x10 | 0x100;
/// RTM_NEWLINK, RTM_NEWADDR and RTM_DELADDR.
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const DELETED_ADDRESS: u16 = 21;
/// IFF_UP and IFF_RUNNING.
const UP_OR_RUNNING: u32 = 0x1 | 0x40;
/// RT_SCOPE_LINK: addresses of this scope and larger ones reach no other network.
const LINK_SCOPE: u8 = 253;
/// Bytes of the header of a message, and of what follows it for an address and for an interface.
const HEADER_LEN: usize = 16;
const ADDRESS_LEN: usize = 8;
const LINK_LEN: usize = 16;
/// The maximum number of datagrams read at once.
const MAX_READ: usize = 64;

/// A netlink socket (rtnetlink(7)) in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Changes(OwnedFd);

impl Changes {
    /// Opens the socket; `None` if the system refuses it, as in some sandboxes.
    pub(super) fn open() -> Option<Self> {
        let opened = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        );
        let bound = opened.and_then(|socket| {
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
            Ok(Self(socket))
        });
        if let Err(error) = &bound {
            tracing::debug!(%error, "changes of this host's addresses go unnoticed");
        }
        bound.ok()
    }

    /// Reads what has been reported. Returns whether packets may leave from other addresses now.
    pub(super) fn read(&self) -> bool {
        let mut buffer = [0; 8_192];
        let mut moved = false;
        for _ in 0..MAX_READ {
            match recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => moved |= is_move(&buffer[..len]),
                Err(nix::errno::Errno::EINTR) => {}
                // Some were lost.
                Err(nix::errno::Errno::ENOBUFS) => moved = true,
                Err(_) => break,
            }
        }
        moved
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a datagram of messages reports an address that other networks reach, or an interface that
/// has gone up or down.
fn is_move(mut messages: &[u8]) -> bool {
    while let Some((header, rest)) = messages.split_first_chunk::<HEADER_LEN>() {
        let [a, b, c, d, e, f, ..] = *header;
        let len = u32::from_ne_bytes([a, b, c, d]) as usize;
        let body = &rest[..len.saturating_sub(HEADER_LEN).min(rest.len())];
        match u16::from_ne_bytes([e, f]) {
            NEW_ADDRESS | DELETED_ADDRESS => {
                if let Some([_, _, _, scope, ..]) = body.first_chunk::<ADDRESS_LEN>()
                    && *scope < LINK_SCOPE
                {
                    return true;
                }
            }
            NEW_LINK => {
                if let Some([.., a, b, c, d]) = body.first_chunk::<LINK_LEN>()
                    && u32::from_ne_bytes([*a, *b, *c, *d]) & UP_OR_RUNNING != 0
                {
                    return true;
                }
            }
            _ => {}
        }
        let aligned = len.next_multiple_of(4).max(HEADER_LEN);
        messages = messages.get(aligned..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = vec![0; HEADER_LEN];
        message[..4].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(body);
        message
    }

    fn link(change: u32) -> Vec<u8> {
        message(NEW_LINK, &[[0; 12].as_slice(), &change.to_ne_bytes()].concat())
    }

    #[test]
    fn addresses_that_others_reach_and_interfaces_that_go_up_or_down_are_moves() {
        let address = |kind, scope| message(kind, &[2, 24, 0, scope, 7, 0, 0, 0]);
        assert!(is_move(&address(NEW_ADDRESS, 0)) && is_move(&address(DELETED_ADDRESS, 200)));
        assert!(!is_move(&address(NEW_ADDRESS, 253)) && !is_move(&address(NEW_ADDRESS, 254)));
        assert!(is_move(&link(1)) && is_move(&link(0x40)) && !is_move(&link(0x100)));
        assert!(is_move(&[link(0), address(NEW_ADDRESS, 0)].concat()));
        assert!(!is_move(&message(99, &[0; 30])));
        for garbage in [&[][..], &[0; 15], &[0; 16], &[0; 40], &[0xff; 64]] {
            assert!(!is_move(garbage));
        }
    }
}
