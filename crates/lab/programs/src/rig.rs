//! A fabric, pairs of endpoints on it, and its counters.

use cloudburst_net::{
    BuildError, Builder, Config, Endpoint, PathMap, PathStats, Receipt, Security, SendError,
};
use cloudburst_testbed::{Error, Fabric, Failure as How, Node, Port, Target, Topology};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The host that sends.
pub const FROM: u16 = 1;
/// The host that receives, on the other leaf.
pub const TO: u16 = 5;
/// The paper's largest message, in bytes.
pub const LARGE: usize = 93_000;
/// The port at which receivers accept messages.
pub const PORT: u16 = 7000;

/// Why a measurement was abandoned.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The fabric could not be built, read or changed; or the program was interrupted.
    #[error(transparent)]
    Fabric(#[from] Error),
    /// An endpoint could not be built.
    #[error("an endpoint could not be built: {0}")]
    Endpoint(#[from] BuildError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A path map of this program is invalid.
    #[error("path map {map}: {source}")]
    Map {
        /// Its text.
        map: String,
        /// What is wrong with it.
        source: cloudburst_net::PathMapError,
    },
}

impl Failure {
    /// Returns whether the program was interrupted.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Fabric(Error::Interrupted))
    }

    /// Converts an error of the system.
    pub fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

/// A fabric that is taken down when this is dropped, and a flag that tells the program to stop.
#[derive(Debug)]
pub struct Rig<'a> {
    /// The fabric.
    pub fabric: Fabric,
    interrupted: &'a AtomicBool,
}

/// An endpoint that takes all messages.
#[derive(Debug)]
pub struct Sink {
    /// The endpoint.
    pub endpoint: Endpoint,
    taking: Option<JoinHandle<()>>,
}

/// An endpoint that sends, and one that takes its messages.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The sender.
    pub sender: Endpoint,
    /// The receiver.
    pub receiver: Sink,
    to: SocketAddr,
    interrupted: &'a AtomicBool,
}

impl<'a> Rig<'a> {
    /// Builds the fabric.
    ///
    /// # Errors
    ///
    /// If it cannot be built, or the program was interrupted.
    pub fn up(topology: &Topology, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        Ok(Self { fabric: Fabric::up_unless(topology, interrupted)?, interrupted })
    }

    /// Checks that the program may continue.
    ///
    /// # Errors
    ///
    /// If the program was interrupted.
    pub fn go_on(&self) -> Result<(), Failure> {
        go_on(self.interrupted)
    }

    /// Returns the capacity of the links. A port of the fabric reports a much higher rate.
    pub fn capacity(&self) -> u64 {
        self.fabric.topology().rate
    }

    /// Returns the settings of an endpoint on links of this fabric.
    pub fn builder(&self, bind: IpAddr, port: u16) -> Builder {
        let capacity = self.capacity();
        let builder = Endpoint::builder()
            .bind(SocketAddr::new(bind, port))
            .config(Config { capacity: capacity.into(), ..Config::default() });
        builder.security(Security::pre_shared([7; 32]))
    }

    /// Opens an endpoint at `host` that takes all messages, on any address of the family of `to`.
    ///
    /// # Errors
    ///
    /// If it cannot be built.
    pub fn sink(&self, host: u16, to: IpAddr) -> Result<Sink, Failure> {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Enough ports for messages by `ecmp:4x4`, and for answers.
        let builder = self.builder(any, PORT).paths(PathMap::ecmp_pairs(16, 4));
        let endpoint = self.fabric.host(host)?.run(|| builder.build())??;
        let inbox = endpoint.clone();
        let taking = thread::spawn(move || while inbox.recv().wait().is_ok() {});
        Ok(Sink { endpoint, taking: Some(taking) })
    }

    /// Opens a pair of endpoints, the sender by `builder`.
    ///
    /// # Errors
    ///
    /// If one of the two cannot be built.
    pub fn pair(&self, builder: Builder, to: IpAddr) -> Result<Pair<'a>, Failure> {
        let receiver = self.sink(TO, to)?;
        let sender = self.fabric.host(FROM)?.run(|| builder.build())??;
        let to = SocketAddr::new(to, PORT);
        let interrupted = self.interrupted;
        Ok(Pair { sender, receiver, to, interrupted })
    }

    /// Makes spines 1 to `dead` drop all packets silently.
    ///
    /// # Errors
    ///
    /// If the fabric cannot be changed.
    pub fn swallow(&self, dead: u16) -> Result<(), Failure> {
        for spine in 1..=dead {
            self.fabric.fail(Target::Node(Node::Spine(spine)), How::Silent)?;
        }
        Ok(())
    }

    /// Returns the ports of the spines to leaf 2, once their counters no longer change.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn spines(&self) -> Result<Vec<Port>, Failure> {
        self.still(|| {
            let spines = (1..=self.fabric.topology().spines).map(Node::Spine);
            spines.map(|spine| Ok(self.fabric.port(spine, Node::Leaf(2))?)).collect()
        })
    }

    /// Returns the port of a host, once its counters no longer change.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn host_port(&self, host: u16) -> Result<Port, Failure> {
        let leaf = self.fabric.host(host)?.leaf();
        let port = || Ok(vec![self.fabric.port(Node::Host(host), leaf)?]);
        Ok(self.still(port)?.remove(0))
    }

    /// Returns the ports of all leaves and spines, once their counters no longer change.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn switches(&self) -> Result<Vec<Port>, Failure> {
        let topology = self.fabric.topology();
        let leaves = (1..=topology.leaves).map(Node::Leaf);
        let switches: Vec<_> = leaves.chain((1..=topology.spines).map(Node::Spine)).collect();
        self.still(|| {
            let ports = switches.iter().map(|&node| Ok(self.fabric.ports_of(node)?));
            Ok(ports.collect::<Result<Vec<_>, Failure>>()?.concat())
        })
    }

    /// Reads counters until they no longer change: packets that wait in queues are not counted yet.
    fn still(&self, read: impl Fn() -> Result<Vec<Port>, Failure>) -> Result<Vec<Port>, Failure> {
        let mut before = read()?;
        loop {
            self.go_on()?;
            let after = read()?;
            if before == after {
                return Ok(after);
            }
            before = after;
        }
    }
}

impl Pair<'_> {
    /// Sends a message of `bytes` bytes; the inner result is how the send ended.
    ///
    /// # Errors
    ///
    /// If the program was interrupted.
    pub fn send(&self, bytes: usize) -> Result<Result<Receipt, SendError>, Failure> {
        go_on(self.interrupted)?;
        Ok(self.sender.send(self.to, vec![7; bytes]).wait())
    }

    /// Returns the sender's paths.
    pub fn paths(&self) -> Vec<PathStats> {
        self.sender.paths(self.to)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.endpoint.blocking_shutdown(Duration::ZERO);
        // While that thread has the endpoint, no other can use the port.
        if let Some(taking) = self.taking.take() {
            let _ = taking.join();
        }
    }
}

/// Checks that the program may continue.
///
/// # Errors
///
/// If the program was interrupted.
pub fn go_on(interrupted: &AtomicBool) -> Result<(), Failure> {
    if interrupted.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    Ok(())
}
