//! Which sockets to open.

use std::net::SocketAddr;

/// Which sockets to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The address that peers send to: that of egress 0, unless it is shared. All egresses have its
    /// IP.
    pub bind: SocketAddr,
    /// Whether other endpoints may bind to that address, too (SO_REUSEPORT).
    pub reuse_port: bool,
    /// The number of sockets, at least one.
    pub sockets: u16,
    /// The number of sockets with consecutive ports, starting at that of egress 0; at least one.
    pub ports: u16,
    /// The number of IPv6 flow labels, or 0.
    pub flow_labels: u16,
    /// Whether packets may be encapsulated, which requires CAP_NET_RAW.
    pub encapsulates: bool,
    /// One to eight DSCPs, each from 0 to 63, of classes 0, 1 and so on. Classes beyond the last
    /// DSCP share it.
    pub dscps: Vec<u8>,
    /// The DSCP that switches set in packets that they trim, if it is another.
    pub trim_dscp: Option<u8>,
    /// The size in bytes to request for each receive buffer and each send buffer.
    pub socket_buffers: usize,
}

#[cfg(test)]
impl UdpConfig {
    pub(super) fn for_test(bind: SocketAddr, sockets: u16) -> Self {
        Self {
            bind,
            reuse_port: false,
            sockets,
            ports: 1,
            flow_labels: 0,
            encapsulates: false,
            dscps: vec![0],
            trim_dscp: None,
            socket_buffers: 65_536,
        }
    }
}
