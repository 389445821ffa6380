//! Why an endpoint was not built.

use crate::path_map::{PathMap, PathMapError};
use cloudburst_core::config::ConfigError;
use nix::errno::Errno;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an endpoint was not built. No socket or thread of it remains.
///
/// The text includes the system's error, which [`source`](core::error::Error::source) therefore does not
/// return again: see [`os_error`](Self::os_error).
///
/// # Example
///
/// ```
/// # use cloudburst_net::{BuildError, Config, Endpoint, Security};
/// # let security = Security::pre_shared([7; 32]);
/// # let loopback = "127.0.0.1:0".parse()?;
/// let config = Config { rate: 2.0.into(), ..Config::default() };
/// match Endpoint::builder().bind(loopback).config(config).security(security).build() {
///     Ok(endpoint) => println!("listening on {}", endpoint.local_addr()),
///     Err(BuildError::Bind { addr, source }) => eprintln!("is {addr} in use? {source}"),
///     Err(error) if error.os_error().is_some() => eprintln!("ask the administrator: {error}"),
///     Err(error) => eprintln!("{error}"), // setting `rate` is 2: it must be above 0 and at most 1
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// `r#source`: thiserror would make a field `source` the error's source, whose text this error's text has already.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The builder was not told how to authenticate peers.
    #[error(
        "no security was chosen: call `.security(Security::pre_shared(key))` or, if any host that \
         reaches the endpoint may use it, `.security(Security::trusted_network())`"
    )]
    NoSecurity,
    /// An address that peers cannot send to.
    #[error(
        "an endpoint cannot be known as {address}, because peers cannot send to it: give the IP \
         address and the port that they send to"
    )]
    KnownAs {
        /// The address.
        address: SocketAddr,
    },
    /// The path map was refused.
    #[error(transparent)]
    Paths(#[from] PathMapError),
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refuses a socket, or to bind it to the address.
    #[error("cannot bind a UDP socket to {addr}{advice}: {source}", advice = after_refusal(source))]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        r#source: io::Error,
    },
    /// The sockets for [`Builder::build_on`](crate::Builder::build_on) are not bound to the addresses that
    /// the endpoint needs.
    #[error(
        "this endpoint takes messages at {}, and the sockets that it was given are bound to {}: give it \
         exactly one socket for each of its addresses",
        list(expected),
        list(given)
    )]
    Sockets {
        /// Where it takes messages: the address to bind to and, if the path map needs more ports, those after
        /// it.
        expected: Vec<SocketAddr>,
        /// The addresses that the given sockets are bound to.
        given: Vec<SocketAddr>,
    },
    /// A socket for [`Builder::build_on`](crate::Builder::build_on) cannot be used.
    #[error("the socket that is bound to {addr} cannot be used: {why}")]
    UnfitSocket {
        /// Its address.
        addr: SocketAddr,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path map writes IP headers itself, for which the system requires a privilege.
    #[error(
        "path map `{map}` needs a raw socket, and the system refuses one{advice}: {source}",
        advice = after_raw_refusal(source)
    )]
    NoRawSocket {
        /// The map.
        map: String,
        /// The system's error.
        r#source: io::Error,
    },
    /// The system refuses to set or read an option of a socket, or its address.
    #[error("cannot use {option} on a socket, which this endpoint needs: {source}")]
    SocketOption {
        /// The name of the option, or of the system call, in the manual.
        option: &'static str,
        /// The system's error.
        r#source: io::Error,
    },
    /// No file can be created in the directory for [`Builder::qlog`](crate::Builder::qlog).
    #[error("cannot write a qlog to the directory {}: {source}", dir.display())]
    Qlog {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        r#source: io::Error,
    },
    /// The system refuses something that every endpoint needs.
    #[error("the system refuses {what}{advice}: {source}", advice = after_refusal(source))]
    System {
        /// What the system refused: a thread, random bytes, or a system call by name, which a seccomp filter
        /// may forbid.
        what: &'static str,
        /// The system's error.
        r#source: io::Error,
    },
}

impl From<BuildError> for io::Error {
    /// The kind is that of the system's error, if there is one, or [`io::ErrorKind::InvalidInput`]. The
    /// [`BuildError`] is in [`io::Error::get_ref`].
    fn from(error: BuildError) -> Self {
        let kind = error.os_error().map_or(io::ErrorKind::InvalidInput, io::Error::kind);
        Self::new(kind, error)
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
}

impl BuildError {
    /// The system's error, if the system is to blame, and not a setting.
    pub const fn os_error(&self) -> Option<&io::Error> {
        match self {
            Self::Bind { source, .. }
            | Self::NoRawSocket { source, .. }
            | Self::SocketOption { source, .. }
            | Self::Qlog { source, .. }
            | Self::System { source, .. } => Some(source),
            Self::NoSecurity
            | Self::KnownAs { .. }
            | Self::Paths(_)
            | Self::Config(_)
            | Self::Sockets { .. }
            | Self::UnfitSocket { .. } => None,
        }
    }

    /// Makes an error of the system's refusal of `what`.
    pub(crate) fn refused<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }

    /// Names the map that needs a raw socket.
    pub(crate) fn of_map(self, paths: &PathMap) -> Self {
        match self {
            Self::NoRawSocket { source, .. } => {
                Self::NoRawSocket { map: paths.to_string(), source }
            }
            other => other,
        }
    }
}

fn after_refusal(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => {
            ": this process has too many files open; raise `ulimit -n`, or lower the number of paths"
        }
        Some(Errno::ENFILE) => ": this host has too many files open; raise `fs.file-max`",
        Some(Errno::ENOSYS | Errno::EPERM | Errno::EACCES) => {
            ": a filter (seccomp) of this process or its container may forbid it"
        }
        _ => "",
    }
}

fn after_raw_refusal(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        ": give the program CAP_NET_RAW (`setcap cap_net_raw+ep PROGRAM`), or use `ecmp`, \
         `flowlabel` or `xpath`, which need no privilege"
    } else {
        after_refusal(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn an_io_error_has_the_kind_of_the_systems_error_and_contains_the_build_error() {
        let addr = "127.0.0.1:7".parse().unwrap();
        let source = Errno::EADDRINUSE.into();
        let error = io::Error::from(BuildError::Bind { addr, source });
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.get_ref().unwrap().is::<BuildError>());
        let error = io::Error::from(BuildError::NoSecurity);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn an_error_prints_the_systems_error_once() {
        let system = |errno: Errno| io::Error::from(errno);
        let addr = "127.0.0.1:7".parse().unwrap();
        for (error, cause) in [
            (BuildError::Bind { addr, source: system(Errno::EADDRINUSE) }, Errno::EADDRINUSE),
            (BuildError::Qlog { dir: "/".into(), source: system(Errno::EROFS) }, Errno::EROFS),
            (BuildError::refused("a thread")(Errno::EAGAIN), Errno::EAGAIN),
        ] {
            assert!(error.to_string().ends_with(&format!(": {}", system(cause))), "{error}");
            assert!(error.source().is_none(), "{error}");
            assert_eq!(error.os_error().unwrap().raw_os_error(), Some(cause as i32));
        }
        assert!(BuildError::NoSecurity.os_error().is_none());
    }

    #[test]
    fn an_error_names_a_remedy_only_where_it_helps() {
        let raw = |errno: Errno| {
            let source = io::Error::from(errno);
            BuildError::NoRawSocket { map: "bounce:10.0.0.9".into(), source }.to_string()
        };
        for denied in [Errno::EPERM, Errno::EACCES] {
            assert!(raw(denied).contains("CAP_NET_RAW"), "{}", raw(denied));
        }
        assert!(raw(Errno::EMFILE).contains("`ulimit -n`"), "{}", raw(Errno::EMFILE));
        assert_eq!(
            raw(Errno::EAFNOSUPPORT),
            "path map `bounce:10.0.0.9` needs a raw socket, and the system refuses one: Address family \
             not supported by protocol (os error 97)"
        );
        let refused = |errno: Errno| BuildError::refused("a thread")(errno).to_string();
        assert_eq!(
            refused(Errno::EAGAIN),
            "the system refuses a thread: Resource temporarily unavailable (os error 11)"
        );
        assert!(refused(Errno::EMFILE).contains("`ulimit -n`"), "{}", refused(Errno::EMFILE));
        let addr = "127.0.0.1:7".parse().unwrap();
        let source = Errno::EMFILE.into();
        let bind = BuildError::Bind { addr, source }.to_string();
        assert!(bind.contains("`ulimit -n`"), "{bind}");
    }
}
