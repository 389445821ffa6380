//! Peers as users give them, and name resolution.

use crate::driver::Inner;
use crate::error::SendError;
use crate::path_map::reaches;
use crate::settings::left;
use cloudburst_core::proto::SendOptions;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;
use std::{io, thread};
use tokio::sync::oneshot;

/// A peer: an address, or the name of one. Made from a [`SocketAddr`], a text such as `"10.0.0.2:7000"` or
/// `"cache-7.example:7000"`, or a pair of a host and a port.
///
/// Each operation looks a name up anew, which takes milliseconds to seconds and counts against its deadline:
/// [resolve](crate::Endpoint::resolve) the name of a peer that gets many messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Address(SocketAddr),
    /// A name and a port, such as `cache-7.example:7000`.
    Name(String),
}

impl Peer {
    /// The address, where there is no time for a look-up.
    pub(crate) fn address(self) -> Result<SocketAddr, SendError> {
        match self {
            Self::Address(address) => Ok(address),
            Self::Name(name) => {
                let reason = "`begin` does not wait for a look-up".to_owned();
                Err(SendError::NoAddress { name, reason })
            }
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<String> for Peer {
    fn from(name: String) -> Self {
        name.parse().map_or(Self::Name(name), Self::Address)
    }
}

impl From<&str> for Peer {
    fn from(name: &str) -> Self {
        name.parse().map_or_else(|_| Self::Name(name.to_owned()), Self::Address)
    }
}

impl From<&String> for Peer {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl From<(IpAddr, u16)> for Peer {
    fn from(address: (IpAddr, u16)) -> Self {
        Self::Address(address.into())
    }
}

impl From<(&str, u16)> for Peer {
    fn from((host, port): (&str, u16)) -> Self {
        match host.parse::<IpAddr>() {
            Ok(ip) => (ip, port).into(),
            Err(_) => Self::Name(format!("{host}:{port}")),
        }
    }
}

impl Inner {
    /// The address of `peer`, and `options` with what is left of the deadline once it is known.
    pub(crate) async fn find(
        &self,
        peer: Peer,
        options: SendOptions,
    ) -> Result<(SocketAddr, SendOptions), SendError> {
        let name = match peer {
            Peer::Address(address) => return Ok((address, options)),
            Peer::Name(name) => name,
        };
        let within = options.deadline.unwrap_or(self.default_deadline);
        let until = Instant::now().checked_add(within);
        match resolve(name.clone(), self.engine.io().local_addr(), within).await {
            Ok(address) => Ok((address, left(options, until))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(SendError::NotStarted),
            Err(error) => Err(SendError::NoAddress { name, reason: error.to_string() }),
        }
    }
}

/// Resolves `name` to an address that an endpoint on `local` can send to.
pub(crate) async fn resolve(
    name: String,
    local: SocketAddr,
    within: Duration,
) -> io::Result<SocketAddr> {
    let (found, wait) = oneshot::channel();
    let (looked_up, result) = mpsc::channel();
    // The system's resolver blocks, and cannot be interrupted: one thread looks the name up, and one waits for it.
    let spawn = |run: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name("cbrst-resolve".into()).spawn(run)
    };
    spawn(Box::new(move || drop(looked_up.send(look_up(&name, local)))))?;
    spawn(Box::new(move || drop(found.send(result.recv_timeout(within)))))?;
    match wait.await {
        Ok(Ok(found)) => found,
        Ok(Err(RecvTimeoutError::Timeout)) => Err(io::ErrorKind::TimedOut.into()),
        Ok(Err(RecvTimeoutError::Disconnected)) | Err(_) => {
            Err(io::Error::other("the thread that resolves the name has panicked"))
        }
    }
}

fn look_up(name: &str, local: SocketAddr) -> io::Result<SocketAddr> {
    let fits = |peer: &SocketAddr| reaches(local.ip(), peer.ip());
    name.to_socket_addrs()?.find(fits).ok_or_else(|| {
        let family = if local.is_ipv4() { "IPv4" } else { "IPv6" };
        let error = format!(
            "{name} has no {family} address, and this endpoint is bound to {local}; bind it to \
             [::]:{} to reach both",
            local.port()
        );
        io::Error::new(io::ErrorKind::NotFound, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_resolves_to_an_address_that_the_endpoint_reaches() {
        let on = |local: &str, name| look_up(name, local.parse().unwrap());
        let four: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let six: SocketAddr = "[::1]:7".parse().unwrap();
        assert_eq!(on("0.0.0.0:1", "127.0.0.1:7").unwrap(), four);
        assert_eq!(on("[::1]:1", "[::1]:7").unwrap(), six);
        assert_eq!(on("[::]:1", "127.0.0.1:7").unwrap(), four);
        assert_eq!(on("[::]:1", "[::1]:7").unwrap(), six);
        let refused = on("10.0.0.1:1", "[::1]:7").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert_eq!(
            refused.to_string(),
            "[::1]:7 has no IPv4 address, and this endpoint is bound to 10.0.0.1:1; bind it to \
             [::]:1 to reach both"
        );
        assert!(on("0.0.0.0:1", "no port").is_err());
    }

    #[test]
    fn a_peer_is_an_address_where_no_look_up_is_needed() {
        let address: SocketAddr = "[::1]:7".parse().unwrap();
        for peer in ["[::1]:7".into(), String::from("[::1]:7").into(), ("::1", 7).into()] {
            assert_eq!(Peer::Address(address), peer);
        }
        let name = Peer::Name("cache-7.example:7".into());
        assert_eq!(
            (Peer::from("cache-7.example:7"), ("cache-7.example", 7).into()),
            (name.clone(), name)
        );
    }
}
