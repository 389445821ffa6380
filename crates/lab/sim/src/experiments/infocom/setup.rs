//! The setups of schemes: a transport for messages, one for the background, and the queues of ports.

use super::site::Site;
use crate::engine::{Time, US};
use crate::fabric::{Clos, Link, TopologyError};
use crate::queue::{
    Classes, CreditConfig, CreditQueue, Depth, Discipline, Limits, PFabricQueue, SharedBuffer,
    Strict, Weighted,
};
use crate::scheme::PFABRIC;
use crate::transport::Transport;
use crate::transport::burst::{self, Burst};
use crate::transport::cloudburst::{Cloudburst, Paths, Settings};
use crate::transport::expresspass::{self, ExpressPass};
use crate::transport::pfabric::{self, PFabric};
use crate::transport::tcp::{self, Mptcp, Tcp, Throttle};
use cloudburst_core::code::Code;
use cloudburst_core::config::{self, BurstPolicy, ConfigError, Rate, Thresholds};
use cloudburst_core::path::Order;
use std::error::Error;

/// The numbers of the transports of messages and of background flows.
pub(super) const MESSAGES: u8 = 0;
pub(super) const BACKGROUND: u8 = 1;

/// The setup of a scheme: how messages travel, and in which queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Setup {
    /// DCTCP with ECMP, in one queue with the background.
    Dctcp {
        /// The minimum retransmission timeout, if it differs from that of the network.
        rto_min: Option<Time>,
    },
    /// PIAS with two priorities. Messages of up to 95 KB never leave the first.
    Pias,
    /// DCTCP with this many copies of each message on different paths.
    Replicated(u8),
    /// MPTCP with a subflow on each path, in the queue of messages.
    Mptcp,
    /// Cloudburst.
    Cloudburst(CloudburstSetup),
    /// A model of Algorithm 1 with a code that needs no extra symbols. It paces at the rate r from the first packet on,
    /// whereas an endpoint may send the packets of 500 us back to back.
    Model {
        /// r.
        rate: f64,
    },
    /// pFabric with the parameters of V-D.
    PFabric,
    /// QJump with messages at the guaranteed level, f = 1, and background at f = n.
    QJump,
    /// QJump with the parameters of its authors' scripts: K = 15, queues of 150 packets, timeouts of 200 us, and
    /// messages at full throughput.
    QJumpScripts,
    /// ExpressPass with a maximum credit rate of 518 Mb/s per flow, as in its paper; V-D says 500 Mb/s.
    ExpressPass {
        /// The initial credit rate of a flow, as a share of the maximum.
        initial_rate: f64,
    },
}

/// The setup of Cloudburst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CloudburstSetup {
    /// Whether it has the paper's code and algorithm. Otherwise it has this project's defaults.
    pub(super) paper: bool,
    /// How symbols are mapped to paths.
    pub(super) paths: Paths,
    /// The order in which packets visit paths.
    pub(super) order: Order,
    /// Whether its queue is tiny. Otherwise it has the limit of any port.
    pub(super) tiny: bool,
    /// The weight of its queue, or of all its queues together; the background's is 1.
    pub(super) weight: u32,
    /// Messages with at most this many bytes left are in the first of two classes. `None` means one class.
    pub(super) urgent: Option<u32>,
    /// The rate at which a host sends, as a share of its link's.
    pub(super) rate: f64,
    /// Whether receivers pull messages.
    pub(super) pulled: bool,
    /// Whether an endpoint is polled for packets only when its host's link is free.
    pub(super) blocks: bool,
    /// Whether hosts lower their rate while it causes losses on all paths.
    pub(super) adaptive: bool,
}

/// The queue limit of a pFabric host's port, in packets: more than it ever holds.
const MANY: usize = 4_096;

/// The setups of all schemes: their names on the command line, their titles in figures and tables.
pub(super) const SETUPS: [(&str, &str, Setup); 35] = [
    ("dctcp", "DCTCP", Setup::Dctcp { rto_min: None }),
    ("dctcp-fast", "DCTCP, RTOmin 200 us", Setup::Dctcp { rto_min: Some(200 * US) }),
    ("pias", "PIAS", Setup::Pias),
    ("replicated-2", "DCTCP, 2 copies", Setup::Replicated(2)),
    ("replicated-3", "DCTCP, 3 copies", Setup::Replicated(3)),
    ("replicated-4", "DCTCP, 4 copies", Setup::Replicated(4)),
    ("mptcp", "MPTCP", Setup::Mptcp),
    ("a", "Cloudburst A, as in the paper", paper(false, false)),
    ("b", "Cloudburst B, as in the paper", paper(true, false)),
    ("c", "Cloudburst C, as in the paper", paper(false, true)),
    ("d", "Cloudburst D, as in the paper", paper(true, true)),
    ("a-ours", "Cloudburst A, our defaults", ours(false, false)),
    ("b-ours", "Cloudburst B, our defaults", ours(true, false)),
    ("c-ours", "Cloudburst C, our defaults", ours(false, true)),
    ("d-ours", "Cloudburst D, our defaults", ours(true, true)),
    (
        "d-pull",
        "Cloudburst D, our defaults, pulled",
        Setup::Cloudburst(CloudburstSetup { pulled: true, ..OURS }),
    ),
    (
        "d-adaptive",
        "Cloudburst D, as in the paper, adaptive rate",
        Setup::Cloudburst(CloudburstSetup { adaptive: true, ..PAPER }),
    ),
    (
        "d-ours-adaptive",
        "Cloudburst D, our defaults, adaptive rate",
        Setup::Cloudburst(CloudburstSetup { adaptive: true, ..OURS }),
    ),
    (
        "d-ours-weight-8-adaptive",
        "Cloudburst D, our defaults, weight 8, adaptive rate",
        Setup::Cloudburst(CloudburstSetup { adaptive: true, weight: 8, ..OURS }),
    ),
    (
        "d-ours-blocking",
        "Cloudburst D, our defaults, blocking",
        Setup::Cloudburst(CloudburstSetup { blocks: true, ..OURS }),
    ),
    (
        "d-ours-hashed",
        "Cloudburst D, 16 hashed ports",
        over(Paths::Hashed { ports: 16 }, Order::RoundRobin),
    ),
    (
        "d-ours-known",
        "Cloudburst D, last spine alone",
        over(Paths::Fixed { path: 3 }, Order::RoundRobin),
    ),
    ("d-ours-recycled", "Cloudburst D, recycled paths", over(Paths::Explicit, Order::Recycled)),
    (
        "d-ours-recycled-hashed",
        "Cloudburst D, 16 hashed ports, recycled",
        over(Paths::Hashed { ports: 16 }, Order::Recycled),
    ),
    ("d-ours-rb", "Cloudburst D, random paths", over(Paths::Explicit, Order::Random)),
    (
        "d-ours-weight-8",
        "Cloudburst D, our defaults, weight 8",
        Setup::Cloudburst(CloudburstSetup { weight: 8, ..OURS }),
    ),
    ("d-ours-classes", "Cloudburst D, our defaults, two classes", Setup::Cloudburst(CLASSES)),
    (
        "d-ours-weight-8-classes",
        "Cloudburst D, our defaults, two classes, weight 8",
        Setup::Cloudburst(CloudburstSetup { weight: 8, ..CLASSES }),
    ),
    (
        "d-weight-8",
        "Cloudburst D, as in the paper, weight 8",
        Setup::Cloudburst(CloudburstSetup { weight: 8, ..PAPER }),
    ),
    ("model", "Model of Algorithm 1", Setup::Model { rate: 1.0 }),
    ("pfabric", "pFabric", Setup::PFabric),
    ("qjump", "QJump, f = 1", Setup::QJump),
    ("qjump-scripts", "QJump, authors' scripts", Setup::QJumpScripts),
    ("expresspass", "ExpressPass, alpha 1/16", Setup::ExpressPass { initial_rate: 1.0 / 16.0 }),
    ("expresspass-half", "ExpressPass, alpha 1/2", Setup::ExpressPass { initial_rate: 0.5 }),
];

/// D with the paper's settings.
const PAPER: CloudburstSetup = CloudburstSetup {
    paper: true,
    paths: Paths::Explicit,
    order: Order::RoundRobin,
    tiny: true,
    weight: 1,
    urgent: None,
    rate: 1.0,
    pulled: false,
    // Algorithm 1 sends when the link is free, and does not catch up after a pause.
    blocks: true,
    adaptive: false,
};

/// D with this project's defaults.
const OURS: CloudburstSetup = CloudburstSetup { paper: false, blocks: false, ..PAPER };

/// As [`OURS`], with two classes, the first of which is for the paper's three smaller sizes.
const CLASSES: CloudburstSetup = CloudburstSetup { urgent: Some(20_000), ..OURS };

const fn paper(many_paths: bool, tiny: bool) -> Setup {
    Setup::Cloudburst(CloudburstSetup { paths: paths(many_paths), tiny, ..PAPER })
}

const fn ours(many_paths: bool, tiny: bool) -> Setup {
    Setup::Cloudburst(CloudburstSetup { paths: paths(many_paths), tiny, ..OURS })
}

/// Our defaults over other paths, or in another order.
const fn over(paths: Paths, order: Order) -> Setup {
    Setup::Cloudburst(CloudburstSetup { paths, order, ..OURS })
}

/// All paths, or a single hashed one.
const fn paths(many: bool) -> Paths {
    if many { Paths::Explicit } else { Paths::Hashed { ports: 1 } }
}

/// The title of a scheme in figures and tables.
pub(super) fn title(scheme: &str) -> String {
    let found = SETUPS.iter().find(|known| known.0 == scheme);
    found.map_or(scheme, |known| known.1).to_owned()
}

impl Setup {
    /// The setup of the scheme of this name.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let found = SETUPS.iter().find(|known| known.0 == name);
        found.map(|known| known.2).ok_or_else(|| format!("unknown scheme `{name}`"))
    }

    /// Returns this setup with another rate of Cloudburst, as a share of the link's.
    pub(super) fn at_rate(self, rate: f64) -> Self {
        match self {
            Self::Cloudburst(setup) => Self::Cloudburst(CloudburstSetup { rate, ..setup }),
            Self::Model { .. } => Self::Model { rate },
            other => other,
        }
    }

    /// The code of its messages, if they are encoded.
    pub(super) fn code(self, site: &Site) -> Option<Code> {
        match self {
            Self::Cloudburst(setup) => Some(setup.settings(site).ok()?.config.code),
            _ => None,
        }
    }

    /// The number of queues of its messages.
    const fn queues(self) -> usize {
        match self {
            Self::Cloudburst(CloudburstSetup { urgent: Some(_), .. }) => 2,
            _ => 1,
        }
    }

    /// The transports of messages and background.
    pub(super) fn transports(
        self,
        site: &Site,
    ) -> Result<Vec<Box<dyn Transport>>, Box<dyn Error + Send + Sync>> {
        let dctcp = tcp::Config {
            rto_min: site.rto_min,
            rto_initial: site.rto_min,
            ..tcp::Config::dctcp()
        };
        let in_class = |class| tcp::Config { tagging: tcp::Tagging::Fixed(class), ..dctcp.clone() };
        let throttled = |factor, config: tcp::Config| {
            let hosts = site.shape.hosts() as u32;
            let packet = 1_500;
            let rate = site.edge.rate;
            let delay = 4 * US;
            let throttle = Throttle { hosts, packet, rate, delay, factor };
            tcp::Config { throttle: Some(throttle), ..config }
        };
        let [messages, background]: [Box<dyn Transport>; 2] = match self {
            Self::Dctcp { rto_min } => {
                let rto_min = rto_min.unwrap_or(site.rto_min);
                let config = tcp::Config { rto_min, rto_initial: rto_min, ..in_class(0) };
                [boxed(Tcp::new(config.clone())), boxed(Tcp::new(config))]
            }
            Self::Pias => {
                let tagging = tcp::Tagging::ByBytes(vec![95_000]);
                let pias = tcp::Config { tagging, ..dctcp };
                [boxed(Tcp::new(pias.clone())), boxed(Tcp::new(pias))]
            }
            Self::Replicated(copies) => {
                let many = tcp::Config { copies, ..in_class(0) };
                [boxed(Tcp::new(many)), boxed(Tcp::new(in_class(0)))]
            }
            Self::Mptcp => {
                let config = tcp::Config { reaction: tcp::Reaction::None, ..in_class(0) };
                let subflows = site.shape.ways as u8;
                [boxed(Mptcp::new(config, subflows)), boxed(Tcp::new(in_class(1)))]
            }
            Self::Cloudburst(setup) => {
                let cloudburst = Cloudburst::new(setup.settings(site)?, &site.shape)?;
                [boxed(cloudburst), boxed(Tcp::new(in_class(self.queues() as u8)))]
            }
            Self::Model { rate } => {
                let config =
                    burst::Config { rate, link: site.edge.rate, ..burst::Config::default() };
                [boxed(Burst::new(config)), boxed(Tcp::new(in_class(1)))]
            }
            Self::PFabric => {
                let config = pfabric::Config::default();
                [boxed(PFabric::new(config)), boxed(PFabric::new(config))]
            }
            Self::QJump => {
                let messages = throttled(1, in_class(0));
                let background = throttled(site.shape.hosts() as u32, in_class(1));
                [boxed(Tcp::new(messages)), boxed(Tcp::new(background))]
            }
            Self::QJumpScripts => {
                let short =
                    |config| tcp::Config { rto_min: 200 * US, rto_initial: 200 * US, ..config };
                [boxed(Tcp::new(short(in_class(0)))), boxed(Tcp::new(short(in_class(1))))]
            }
            Self::ExpressPass { initial_rate } => {
                let config = expresspass::Config { initial_rate, ..expresspass::Config::default() };
                [boxed(ExpressPass::new(config)), boxed(ExpressPass::new(config))]
            }
        };
        Ok(vec![messages, background])
    }

    /// The network with the queues of the scheme. Hosts' ports are like those of switches, but unlimited. Where
    /// messages have a queue of their own, it has strict priority at hosts, which can order their own packets.
    pub(super) fn fabric(self, site: &Site) -> Result<Clos, TopologyError> {
        let Site { shape, edge, core, .. } = *site;
        // Each class of a port has a reserve of the size of the tiny queue, and shares the rest of the memory. A
        // leaf has the most ports.
        let ports = u64::from(shape.hosts_per_leaf + shape.ways);
        let is_one = matches!(self, Self::Dctcp { .. } | Self::Replicated(_));
        let classes = if is_one { 1 } else { self.queues() + 1 };
        let reserved = ports * (classes * site.tiny) as u64;
        let shared = site.buffer.saturating_sub(reserved);
        let mut switches: Vec<Option<SharedBuffer>> = Vec::new();
        Clos::with_switches(
            shape,
            edge,
            core,
            |link| self.queue(site, link, None),
            |switch, link| {
                if switches.len() <= switch {
                    switches.resize(switch + 1, None);
                }
                let buffer = switches[switch].get_or_insert_with(|| SharedBuffer::new(shared, 1.0));
                self.queue(site, link, Some(buffer))
            },
        )
    }

    /// The queue of a switch port whose memory is `buffer`, or of a host's port if `buffer` is `None`.
    fn queue(self, site: &Site, link: Link, buffer: Option<&SharedBuffer>) -> Discipline {
        let limit = if buffer.is_some() { site.port } else { Depth::Unlimited };
        let within = |classes: Classes| match buffer {
            Some(buffer) => classes.with_buffer(buffer, site.tiny as u64),
            None => classes,
        };
        let k = Limits::with_ecn(limit, Depth::Packets(site.mark_at));
        match self {
            Self::Dctcp { .. } | Self::Replicated(_) => {
                Strict::new(within(Classes::new(link, &[k]))).into()
            }
            Self::Pias => {
                let classes = Classes::new(link, &[Limits::NONE; 2]).with_port(k);
                Strict::new(within(classes)).into()
            }
            Self::Mptcp | Self::Cloudburst(_) | Self::Model { .. } if buffer.is_none() => {
                let mut limits = vec![Limits::NONE; self.queues()];
                limits.push(k);
                Strict::new(Classes::new(link, &limits)).into()
            }
            Self::Mptcp => {
                let classes = Classes::new(link, &[Limits::new(limit), k]);
                Weighted::new(within(classes), &[1, 1]).into()
            }
            Self::Cloudburst(_) | Self::Model { .. } => {
                let (tiny, weight) = match self {
                    Self::Cloudburst(setup) => (setup.tiny, setup.weight),
                    _ => (true, 1),
                };
                let own = match tiny {
                    true => Limits::new(Depth::Bytes(site.tiny)),
                    false => Limits::new(limit),
                };
                let strict = self.queues();
                let mut limits = vec![own; strict];
                limits.push(k);
                let classes = within(Classes::new(link, &limits));
                Weighted::with_strict(classes, strict, &[weight, 1]).into()
            }
            Self::PFabric => {
                PFabricQueue::new(if buffer.is_some() { PFABRIC } else { MANY }).into()
            }
            Self::QJump => Strict::new(within(Classes::new(link, &[k; 2]))).into(),
            Self::QJumpScripts => {
                let limit = if buffer.is_some() { Depth::Packets(150) } else { Depth::Unlimited };
                Strict::new(Classes::new(link, &[Limits::with_ecn(limit, Depth::Packets(15)); 2]))
                    .into()
            }
            Self::ExpressPass { .. } => {
                let mut config = CreditConfig::default();
                if buffer.is_none() {
                    config.data = u32::MAX;
                }
                CreditQueue::new(link.rate, config).into()
            }
        }
    }
}

impl CloudburstSetup {
    /// The settings of all hosts.
    fn settings(self, site: &Site) -> Result<Settings, ConfigError> {
        let link = site.edge.rate;
        let mut settings = if self.paper { Settings::paper(link) } else { Settings::ours(link) };
        settings.config.rate =
            if self.adaptive { Rate::Adaptive(self.rate) } else { Rate::Fixed(self.rate) };
        if let Some(bytes) = self.urgent {
            settings.config.fabric.classes = config::Classes::ByLeft(Thresholds::new(&[bytes])?);
        }
        if self.pulled {
            settings.config.policy = BurstPolicy::Pulled { window: None };
        }
        settings.send_buffer = self.blocks.then_some(0);
        settings.paths = self.paths;
        settings.config.order = self.order;
        Ok(settings)
    }
}

fn boxed(transport: impl Transport + 'static) -> Box<dyn Transport> {
    Box::new(transport)
}
