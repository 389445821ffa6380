//! The counters of a switch's emulated queues, for whoever asks in its namespace.
//!
//! Names of abstract Unix sockets belong to a network namespace, so each switch has the same one,
//! and nothing is left of it.

use crate::topology::Node;
use cloudburst_netem::Link;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

const NAME: &str = "cbrst-testbed-queues";
/// The thread that answers forwards packets as well.
const PATIENCE: Duration = Duration::from_secs(5);

/// What an emulated queue has done with packets, since the process that emulates it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Packets that found it full.
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

/// By what ports lead to.
pub(crate) type Ports = BTreeMap<Node, Counts>;

pub(super) fn listen() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(NAME)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(super) fn answer(asking: &UnixListener, ports: Ports) -> io::Result<()> {
    let (mut stream, _) = asking.accept()?;
    // Frames must not wait for somebody who does not read.
    stream.set_nonblocking(true)?;
    stream.write_all(&serde_json::to_vec(&ports)?)
}

/// Asks for the counters of the switch in whose namespace the calling thread is. Nothing where no
/// process emulates its queues.
pub(crate) fn read() -> io::Result<Ports> {
    match ask() {
        Ok(text) if !text.is_empty() => Ok(serde_json::from_slice(&text)?),
        // There is none, or it ended before it answered.
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
