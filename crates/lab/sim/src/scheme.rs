//! Transports by name, each with the queue disciplines that it is designed for.

use crate::engine::{Time, byte_time};
use crate::fabric::{Clos, Link, Shape, TopologyError};
use crate::queue::{self, CreditConfig, CreditQueue, Depth, Discipline, DropTail};
use crate::queue::{Trimming, TrimmingConfig};
use crate::transport::Transport;
use crate::transport::burst::{self, Burst};
use crate::transport::cloudburst::{Cloudburst, Sessions, Settings};
use crate::transport::expresspass::{self, ExpressPass};
use crate::transport::pfabric::{self, PFabric};
use crate::transport::tcp::{self, Mptcp, Tcp};
use cloudburst_core::config::BurstPolicy;
use std::error::Error;

/// A transport and its queue disciplines, with the parameters of section V-D of the Cloudburst paper where it
/// gives any.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Its name on the command line.
    pub name: &'static str,
    /// The default queue limit of a switch port, in packets.
    pub packets: usize,
    /// Makes the transport for a fabric of this shape whose hosts have this link. Sessions are opened on demand.
    pub transport: fn(&Shape, Link) -> Made,
    /// Makes the queue of a host's port.
    pub nic: fn(Link) -> Discipline,
    /// Makes the queue of a switch port with a limit in packets.
    pub queue: fn(Link, usize) -> Discipline,
}

/// All schemes.
pub static SCHEMES: [Scheme; 10] = [
    Scheme { name: "burst", packets: TINY, transport: burst, nic: unlimited, queue: drop_tail },
    Scheme { name: "cloudburst", packets: TINY, transport: ours, nic: unlimited, queue: drop_tail },
    Scheme {
        name: "cloudburst-paper",
        packets: TINY,
        transport: paper,
        nic: unlimited,
        queue: drop_tail,
    },
    Scheme {
        name: "cloudburst-pull",
        packets: TINY,
        transport: pulled,
        nic: unlimited,
        queue: drop_tail,
    },
    Scheme {
        name: "cloudburst-trim",
        packets: TINY,
        transport: trimmable,
        nic: unlimited,
        queue: trimming,
    },
    Scheme { name: "tcp", packets: DEEP, transport: tcp, nic: unlimited, queue: drop_tail },
    Scheme { name: "dctcp", packets: DEEP, transport: dctcp, nic: unlimited, queue: marking },
    Scheme { name: "mptcp", packets: DEEP, transport: mptcp, nic: unlimited, queue: drop_tail },
    Scheme {
        name: "pfabric",
        packets: PFABRIC,
        transport: pfabric,
        nic: |link| urgent_first(link, PFABRIC),
        queue: urgent_first,
    },
    Scheme {
        name: "expresspass",
        packets: EXPRESSPASS,
        transport: expresspass,
        nic: |link| credits(link, EXPRESSPASS),
        queue: credits,
    },
];

/// A transport, or the reason why it cannot be made.
pub type Made = Result<Box<dyn Transport>, Box<dyn Error + Send + Sync>>;

/// Cloudburst's tiny queue: 1 % of 4 MB (section V).
pub(crate) const TINY: usize = 27;
/// The queue of TCP.
const DEEP: usize = 250;
/// Data packets in ExpressPass' queue (V-D).
const EXPRESSPASS: usize = 100;
/// pFabric's queue: two bandwidth-delay products (V-D).
pub(crate) const PFABRIC: usize = 34;
/// The ECN threshold of DCTCP's queues, in packets.
pub(crate) const MARK_AT: usize = 65;

impl Scheme {
    /// Finds a scheme by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().find(|scheme| scheme.name == name)
    }

    /// A network with the scheme's queues. `packets` overrides the default queue limit of switch ports.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: the first invalid field.
    pub fn fabric(
        &self,
        shape: Shape,
        edge: Link,
        core: Link,
        packets: Option<usize>,
    ) -> Result<Clos, TopologyError> {
        let packets = packets.unwrap_or(self.packets);
        Clos::new(shape, edge, core, self.nic, |link| (self.queue)(link, packets))
    }
}

fn burst(_: &Shape, edge: Link) -> Made {
    Ok(Box::new(Burst::new(burst::Config { link: edge.rate, ..burst::Config::default() })))
}

fn ours(shape: &Shape, edge: Link) -> Made {
    let sessions = Sessions::OnDemand;
    Ok(Box::new(Cloudburst::new(Settings { sessions, ..Settings::ours(edge.rate) }, shape)?))
}

fn paper(shape: &Shape, edge: Link) -> Made {
    let sessions = Sessions::OnDemand;
    Ok(Box::new(Cloudburst::new(Settings { sessions, ..Settings::paper(edge.rate) }, shape)?))
}

/// SCDP: receivers pull all symbols after the first window.
fn scdp(edge: Link) -> Settings {
    let mut settings = Settings { sessions: Sessions::OnDemand, ..Settings::ours(edge.rate) };
    settings.config.policy = BurstPolicy::Pulled { window: None };
    settings
}

fn pulled(shape: &Shape, edge: Link) -> Made {
    Ok(Box::new(Cloudburst::new(scdp(edge), shape)?))
}

/// The DSCP of trimmed packets, which the model's packets do not carry.
const TRIMMED: u8 = 44;

fn trimmable(shape: &Shape, edge: Link) -> Made {
    let mut settings = scdp(edge);
    settings.config.fabric.trim_dscp = Some(TRIMMED);
    Ok(Box::new(Cloudburst::new(settings, shape)?))
}

fn tcp(_: &Shape, _: Link) -> Made {
    Ok(Box::new(Tcp::new(tcp::Config::default())))
}

fn dctcp(_: &Shape, _: Link) -> Made {
    Ok(Box::new(Tcp::new(tcp::Config::dctcp())))
}

/// With a subflow for each of four spines.
fn mptcp(_: &Shape, _: Link) -> Made {
    Ok(Box::new(Mptcp::new(tcp::Config::default(), 4)))
}

fn pfabric(_: &Shape, _: Link) -> Made {
    Ok(Box::new(PFabric::new(pfabric::Config::default())))
}

fn expresspass(_: &Shape, edge: Link) -> Made {
    let config = expresspass::Config::default();
    let bytes = u64::from(config.control) + u64::from(config.packet);
    let credit_interval: Time = bytes * byte_time(edge.rate);
    Ok(Box::new(ExpressPass::new(expresspass::Config { credit_interval, ..config })))
}

fn unlimited(_: Link) -> Discipline {
    DropTail::new(Depth::Unlimited).into()
}

fn drop_tail(_: Link, packets: usize) -> Discipline {
    DropTail::new(Depth::Packets(packets)).into()
}

/// Trims Ethernet frames to 128 bytes, SONiC's default.
fn trimming(_: Link, packets: usize) -> Discipline {
    const ETHERNET_HEADER: u16 = 14;
    let data = packets as u32;
    let header_size = 128 - ETHERNET_HEADER;
    Trimming::new(TrimmingConfig { data, header_size, ..TrimmingConfig::default() }).into()
}

fn marking(_: Link, packets: usize) -> Discipline {
    DropTail::with_ecn(Depth::Packets(packets), Depth::Packets(MARK_AT)).into()
}

fn urgent_first(_: Link, packets: usize) -> Discipline {
    queue::PFabricQueue::new(packets).into()
}

fn credits(link: Link, packets: usize) -> Discipline {
    let config = CreditConfig { data: packets as u32, ..CreditConfig::default() };
    CreditQueue::new(link.rate, config).into()
}
