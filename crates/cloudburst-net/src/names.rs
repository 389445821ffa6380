//! Name resolution.

use crate::endpoint::Endpoint;
use crate::path_map::reaches;
use std::net::{SocketAddr, ToSocketAddrs};
use std::{io, thread};
use tokio::sync::oneshot;

impl Endpoint {
    /// Resolves `name`, such as `cache-7.example:7000`, to the first address of the system's
    /// resolver that this endpoint can send to. An endpoint on an IPv4 address can send only to
    /// IPv4 addresses.
    ///
    /// The look-up runs in a thread of its own, takes milliseconds to seconds, and is not cached:
    /// resolve a peer once, not for each message. Dropping the future leaves the thread to finish
    /// by itself.
    ///
    /// # Errors
    ///
    /// The error of the resolver; [`io::ErrorKind::NotFound`] if it knows no usable address.
    pub async fn resolve(&self, name: impl Into<String>) -> io::Result<SocketAddr> {
        let (found, wait) = oneshot::channel();
        let name = name.into();
        let local = self.local_addr();
        // Once, and not in each send, where it would hide seconds in a message of microseconds. The
        // system's resolver blocks, hence a thread.
        let resolve = move || drop(found.send(resolve(&name, local)));
        thread::Builder::new().name("cbrst-resolve".into()).spawn(resolve)?;
        let panicked = |_| io::Error::other("the thread that resolves the name has panicked");
        wait.await.map_err(panicked)?
    }
}

pub(crate) fn resolve(name: &str, local: SocketAddr) -> io::Result<SocketAddr> {
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
        let on = |local: &str, name| resolve(name, local.parse().unwrap());
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
}
