//! Sockets with the settings of a TCP.

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::fs;
use std::io;

/// The settings of a TCP under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TcpSettings {
    /// This host's number, from 1.
    pub(crate) me: u16,
    /// The congestion control of both ends, by the kernel's name: `cubic`, `bbr`.
    pub(crate) congestion: String,
    /// The number of connections that the same request takes at once; 1 is plain TCP.
    pub(crate) copies: usize,
    /// The DSCP of both ends' packets.
    pub(crate) dscp: u8,
    /// Whether both ends use MPTCP, whose paths the system configures (`ip mptcp`).
    pub(crate) multipath: bool,
}

impl TcpSettings {
    pub(super) fn name(&self) -> &'static str {
        if self.multipath { "MPTCP" } else { "TCP" }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.copies == 0 {
            return Err("0 copies of a request: expected at least 1".into());
        }
        if self.dscp >= 64 {
            return Err(format!("DSCP {}: expected 0 to 63", self.dscp));
        }
        Ok(())
    }

    /// A socket that is not connected yet.
    pub(super) fn socket(&self) -> Result<Socket, String> {
        let protocol = if self.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
        let socket = socket.map_err(|reason| match self.multipath {
            true => format!(
                "cannot open an MPTCP socket: {reason}; the kernel needs CONFIG_MPTCP, and 1 in \
                 {ENABLED} (now: {})",
                content(ENABLED)
            ),
            false => format!("cannot open a TCP socket: {reason}"),
        })?;
        self.tune(&socket)?;
        Ok(socket)
    }

    /// Sets the options of both ends, also on accepted sockets, which may not inherit all of them.
    pub(super) fn tune<'a>(&self, socket: impl Into<SockRef<'a>>) -> Result<(), String> {
        let socket = socket.into();
        let refused = |option: &str| {
            let option = option.to_owned();
            move |reason: io::Error| format!("the kernel refuses {option}: {reason}")
        };
        socket.set_tcp_nodelay(true).map_err(refused("TCP_NODELAY"))?;
        socket.set_tos_v4(u32::from(self.dscp) << 2).map_err(refused("IP_TOS"))?;
        socket.set_tcp_congestion(self.congestion.as_bytes()).map_err(|reason| {
            format!(
                "the kernel refuses the congestion control `{}`: {reason}; {AVAILABLE} lists {}",
                self.congestion,
                content(AVAILABLE)
            )
        })
    }
}

const ENABLED: &str = "/proc/sys/net/mptcp/enabled";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

fn content(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|reason| reason.to_string(), |text| text.trim().into())
}
