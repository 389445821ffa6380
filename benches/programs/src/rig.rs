//! A fabric, pairs of endpoints on it, and its counters.

use cloudburst_net::{
    BuildError, Builder, Endpoint, PathMap, PathStats, Receipt, Security, SendError, blocking,
};
use cloudburst_testbed::{Error, Fabric, Failure as How, Node, Port, Target, Topology};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The host that sends.
pub const FROM: u16 = 1;
/// The host that receives, of the other leaf.
pub const TO: u16 = 5;
/// The paper's largest message, in bytes.
pub const LARGE: usize = 93_000;
/// The port that receivers take messages at.
pub const PORT: u16 = 7000;

/// Why nothing more is measured.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The fabric could not be built, read or changed; or somebody wants the program to stop.
    #[error(transparent)]
    Fabric(#[from] Error),
    /// An endpoint could not be built.
    #[error("an endpoint could not be built: {0}")]
    Endpoint(#[from] BuildError),
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A path map that this program wrote is none.
    #[error("path map {map}: {source}")]
    Map {
        /// Its text.
        map: String,
        /// What is wrong with it.
        source: cloudburst_net::PathMapError,
    },
}

impl Failure {
    /// Whether somebody wanted the program to stop.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Fabric(Error::Interrupted))
    }

    /// Makes a failure of what the system says.
    pub fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

/// A fabric that is gone when this is, and whether anybody wants that to be soon.
#[derive(Debug)]
pub struct Rig<'a> {
    /// The fabric.
    pub fabric: Fabric,
    interrupted: &'a AtomicBool,
}

/// An endpoint that takes whatever comes.
#[derive(Debug)]
pub struct Sink {
    /// The endpoint.
    pub endpoint: blocking::Endpoint,
    taking: Option<JoinHandle<()>>,
}

/// An endpoint that sends, and one that takes what it sends.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The one that sends.
    pub sender: blocking::Endpoint,
    /// The one that takes.
    pub receiver: Sink,
    to: SocketAddr,
    interrupted: &'a AtomicBool,
}

impl<'a> Rig<'a> {
    /// Builds it.
    ///
    /// # Errors
    ///
    /// When it cannot be built, or somebody wants the program to stop.
    pub fn up(topology: &Topology, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        Ok(Self { fabric: Fabric::up_unless(topology, interrupted)?, interrupted })
    }

    /// An error once somebody wants the program to stop.
    ///
    /// # Errors
    ///
    /// That one.
    pub fn go_on(&self) -> Result<(), Failure> {
        go_on(self.interrupted)
    }

    /// Settings of an endpoint on links of this fabric.
    pub fn builder(&self, bind: IpAddr, port: u16) -> Builder {
        // A port of the fabric says that it is much faster.
        let capacity = self.fabric.topology().rate;
        let builder = Endpoint::builder().bind(SocketAddr::new(bind, port)).capacity(capacity);
        builder.security(Security::pre_shared([7; 32]))
    }

    /// An endpoint at `host` that takes what comes, on any address of the family of `to`.
    ///
    /// # Errors
    ///
    /// When it cannot be built.
    pub fn sink(&self, host: u16, to: IpAddr) -> Result<Sink, Failure> {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Ports enough for messages by `ecmp:4x4`, and for answers.
        let builder = self.builder(any, PORT).paths(PathMap::ecmp_pairs(16, 4));
        let endpoint = self.fabric.host(host)?.run(|| builder.build())??.blocking();
        let inbox = endpoint.clone();
        let taking = thread::spawn(move || while inbox.recv().is_ok() {});
        Ok(Sink { endpoint, taking: Some(taking) })
    }

    /// A pair of endpoints, the sender as `builder` says.
    ///
    /// # Errors
    ///
    /// When one of the two cannot be built.
    pub fn pair(&self, builder: Builder, to: IpAddr) -> Result<Pair<'a>, Failure> {
        let receiver = self.sink(TO, to)?;
        let sender = self.fabric.host(FROM)?.run(|| builder.build())??.blocking();
        let (to, interrupted) = (SocketAddr::new(to, PORT), self.interrupted);
        Ok(Pair { sender, receiver, to, interrupted })
    }

    /// Makes spines 1 to `dead` swallow whatever they get, and nobody hears of it.
    ///
    /// # Errors
    ///
    /// When the fabric cannot be changed.
    pub fn swallow(&self, dead: u16) -> Result<(), Failure> {
        for spine in 1..=dead {
            self.fabric.fail(Target::Node(Node::Spine(spine)), How::Silent)?;
        }
        Ok(())
    }

    /// What each spine has sent on to leaf 2, once its counters stand still.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn spines(&self) -> Result<Vec<Port>, Failure> {
        self.still(|| {
            let spines = (1..=self.fabric.topology().spines).map(Node::Spine);
            spines.map(|spine| Ok(self.fabric.port(spine, Node::Leaf(2))?)).collect()
        })
    }

    /// The port of a host, once its counters stand still.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn host_port(&self, host: u16) -> Result<Port, Failure> {
        let leaf = self.fabric.host(host)?.leaf();
        let port = || Ok(vec![self.fabric.port(Node::Host(host), leaf)?]);
        Ok(self.still(port)?.remove(0))
    }

    /// The ports of all leaves and spines, once their counters stand still.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn switches(&self) -> Result<Vec<Port>, Failure> {
        let topology = self.fabric.topology();
        let leaves = (1..=topology.leaves).map(Node::Leaf);
        let switches: Vec<_> = leaves.chain((1..=topology.spines).map(Node::Spine)).collect();
        self.still(|| {
            let ports = switches.iter().map(|&node| Ok(self.fabric.ports_of(node)?));
            Ok(ports.collect::<Result<Vec<_>, Failure>>()?.concat())
        })
    }

    /// Packets that wait in queues are still to be counted.
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
    /// Sends a message of so many bytes; the inner result is how that ended.
    ///
    /// # Errors
    ///
    /// Once somebody wants the program to stop.
    pub fn send(&self, bytes: usize) -> Result<Result<Receipt, SendError>, Failure> {
        go_on(self.interrupted)?;
        Ok(self.sender.send(self.to, vec![7; bytes]))
    }

    /// The sender's paths.
    pub fn paths(&self) -> Vec<PathStats> {
        self.sender.paths(self.to)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.endpoint.shutdown(Duration::ZERO);
        // As long as that thread has the endpoint, no other can have the port.
        if let Some(taking) = self.taking.take() {
            let _ = taking.join();
        }
    }
}

/// An error once somebody wants the program to stop.
///
/// # Errors
///
/// That one.
pub fn go_on(interrupted: &AtomicBool) -> Result<(), Failure> {
    if interrupted.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    Ok(())
}
