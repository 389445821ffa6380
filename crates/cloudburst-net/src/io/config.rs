//! Which sockets to open.

use std::net::SocketAddr;

/// How the sockets are to be opened.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{DEFAULT_DSCP, io::UdpConfig, io::UdpIo};
/// let config = UdpConfig {
///     bind: "127.0.0.1:0".parse()?,
///     reuse_port: false,
///     sockets: 4,
///     ports: 1,
///     flow_labels: 0,
///     encapsulates: false,
///     dscps: vec![DEFAULT_DSCP],
///     trim_dscp: None,
///     socket_buffers: 1 << 20,
/// };
/// let io = UdpIo::open(&config, Vec::new())?;
/// assert_eq!(io.local_addrs().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The address that peers send to: that of egress 0, unless it is shared. All egresses have its
    /// IP.
    pub bind: SocketAddr,
    /// Whether others may have that address, too (SO_REUSEPORT).
    pub reuse_port: bool,
    /// How many sockets, at least one.
    pub sockets: u16,
    /// How many of them have ports in a row, from that of egress 0 on; at least one.
    pub ports: u16,
    /// How many IPv6 flow labels, if any.
    pub flow_labels: u16,
    /// Whether packets may be sent within others, which takes CAP_NET_RAW.
    pub encapsulates: bool,
    /// The DSCPs of classes 0, 1 and so on, each from 0 to 63; one to eight. Classes beyond the
    /// last share it.
    pub dscps: Vec<u8>,
    /// The DSCP that switches give packets which they trim, if another.
    pub trim_dscp: Option<u8>,
    /// Bytes to ask for, for each receive and each send buffer.
    pub socket_buffers: usize,
}
