//! The counters of a switch's emulated queues, available to any process in its namespace.
//!
//! They are served by an abstract Unix socket. Its name belongs to the network namespace, so it is the
//! same for each switch, and it leaves nothing behind.

use crate::topology::Node;
use cloudburst_netem::Link;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

const NAME: &str = "cbrst-testbed-queues";
/// The timeout of a reader. It is long because the thread that answers also forwards packets.
const PATIENCE: Duration = Duration::from_secs(5);

/// The counters of an emulated queue, since the process that emulates it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Packets dropped because it was full.
    pub(crate) dropped: u64,
    pub(crate) dropped_selectively: u64,
    pub(crate) trimmed: u64,
    /// Packets in it now.
    pub(crate) backlog: u64,
}

impl Counts {
    pub(super) fn of(link: &Link) -> Self {
        let stats = link.stats();
        Self {
            dropped: stats.queue_dropped,
            dropped_selectively: stats.selectively_dropped,
            trimmed: stats.trimmed,
            backlog: link.in_flight() as u64,
        }
    }
}

/// The counters of ports, by neighbour.
pub(crate) type Ports = BTreeMap<Node, Counts>;

pub(super) fn listen() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(NAME)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(super) fn answer(asking: &UnixListener, ports: Ports) -> io::Result<()> {
    let (mut stream, _) = asking.accept()?;
    // Frames must not wait for a client that does not read.
    stream.set_nonblocking(true)?;
    stream.write_all(&serde_json::to_vec(&ports)?)
}

/// Reads the counters of the switch in whose namespace the calling thread is. Empty if no process
/// emulates its queues.
pub(crate) fn read() -> io::Result<Ports> {
    match ask() {
        Ok(text) if !text.is_empty() => Ok(serde_json::from_slice(&text)?),
        // There is no such process, or it ended before it answered.
        Ok(_) => Ok(Ports::new()),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Ok(Ports::new()),
            _ => Err(error),
        },
    }
}

fn ask() -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(NAME)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(text)
}
