//! The schemes: a transport for messages, one for the background, and the queues of switches.

use super::site::Site;
use crate::engine::{Time, US};
use crate::fabric::{Clos, Link, TopologyError};
use crate::queue::{
    Classes, CreditConfig, CreditQueue, Depth, Discipline, Limits, PFabric as PFabricQueue,
    SharedBuffer, Strict, Weighted,
};
use crate::scheme::PFABRIC;
use crate::transport::Transport;
use crate::transport::burst::{self, Burst};
use crate::transport::cloudburst::{Cloudburst, Paths, Settings};
use crate::transport::expresspass::{self, ExpressPass};
use crate::transport::pfabric::{self, PFabric};
use crate::transport::tcp::{self, Mptcp, Tcp, Throttle};
use cloudburst_core::code::Code;
use cloudburst_core::path::Order;
use std::error::Error;

/// The transport of messages, and that of background flows.
pub(super) const MESSAGES: u8 = 0;
pub(super) const BACKGROUND: u8 = 1;

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scheme {
    /// DCTCP with ECMP: one queue for all.
    Dctcp {
        /// The smallest retransmission timeout, if it is not the network's.
        rto_min: Option<Time>,
    },
    /// PIAS: two priorities; messages of up to 95 KB never leave the first.
    Pias,
    /// DCTCP, the same on several paths.
    Replicated(u8),
    /// A subflow on each path, in the queue of messages.
    Mptcp,
    /// Cloudburst.
    Cloudburst {
        /// The paper's code and algorithm, or this project's defaults.
        paper: bool,
        /// How its symbols are mapped to paths.
        paths: Paths,
        /// The order in which they take them.
        order: Order,
        /// Whether its queue is tiny.
        tiny: bool,
        /// The weight of its queue beside the background's.
        weight: u32,
        /// The share of the link's rate that a host sends at.
        rate: f64,
        /// Whether an endpoint is asked for packets only when its host's link is free.
        blocks: bool,
    },
    /// Algorithm 1 with a code that needs no symbol more, as a model: the rate r is kept from the first packet
    /// on, where an endpoint may send 500 us of its rate at once.
    Model {
        /// r.
        rate: f64,
    },
    /// pFabric with V-D's parameters.
    PFabric,
    /// QJump at the guaranteed level, f = 1; the background at f = n.
    QJump,
    /// QJump as its authors' scripts have it: K = 15, queues of 150 packets, timeouts of 200 us; and
    /// messages at full throughput.
    QJumpScripts,
    /// ExpressPass with a maximum credit rate of 518 Mb/s a flow, as in its paper; V-D says 500 Mb/s.
    ExpressPass {
        /// The share of that rate that a flow begins with.
        initial_rate: f64,
    },
}

/// Packets that a host's port of pFabric holds: more than come.
const MANY: usize = 4_096;

/// The names of all schemes.
pub(super) const NAMES: [(&str, Scheme); 29] = [
    ("dctcp", Scheme::Dctcp { rto_min: None }),
    ("dctcp-fast", Scheme::Dctcp { rto_min: Some(200 * US) }),
    ("pias", Scheme::Pias),
    ("replicated-2", Scheme::Replicated(2)),
    ("replicated-3", Scheme::Replicated(3)),
    ("replicated-4", Scheme::Replicated(4)),
    ("mptcp", Scheme::Mptcp),
    ("a", paper(false, false)),
    ("b", paper(true, false)),
    ("c", paper(false, true)),
    ("d", paper(true, true)),
    ("a-ours", ours(false, false)),
    ("b-ours", ours(true, false)),
    ("c-ours", ours(false, true)),
    ("d-ours", ours(true, true)),
    ("d-ours-blocking", BLOCKING),
    ("d-ours-hashed", over(Paths::Hashed { ports: 16 }, Order::RoundRobin)),
    ("d-ours-known", over(Paths::Fixed { path: 3 }, Order::RoundRobin)),
    ("d-ours-recycled", over(Paths::Explicit, Order::Recycled)),
    ("d-ours-recycled-hashed", over(Paths::Hashed { ports: 16 }, Order::Recycled)),
    ("d-ours-rb", over(Paths::Explicit, Order::Random)),
    ("d-ours-weight-8", weighted(ours(true, true), 8)),
    ("d-weight-8", weighted(paper(true, true), 8)),
    ("model", Scheme::Model { rate: 1.0 }),
    ("pfabric", Scheme::PFabric),
    ("qjump", Scheme::QJump),
    ("qjump-scripts", Scheme::QJumpScripts),
    ("expresspass", Scheme::ExpressPass { initial_rate: 1.0 / 16.0 }),
    ("expresspass-half", Scheme::ExpressPass { initial_rate: 0.5 }),
];

const fn paper(many_paths: bool, tiny: bool) -> Scheme {
    cloudburst(true, paths(many_paths), Order::RoundRobin, tiny, true)
}

const fn ours(many_paths: bool, tiny: bool) -> Scheme {
    cloudburst(false, paths(many_paths), Order::RoundRobin, tiny, false)
}

/// Our defaults over other paths, or in another order.
const fn over(paths: Paths, order: Order) -> Scheme {
    cloudburst(false, paths, order, true, false)
}

/// All paths, or one that is hashed.
const fn paths(many: bool) -> Paths {
    if many { Paths::Explicit } else { Paths::Hashed { ports: 1 } }
}

const fn cloudburst(paper: bool, paths: Paths, order: Order, tiny: bool, blocks: bool) -> Scheme {
    Scheme::Cloudburst { paper, paths, order, tiny, weight: 1, rate: 1.0, blocks }
}

/// Our defaults behind sockets that block at once.
const BLOCKING: Scheme = cloudburst(false, Paths::Explicit, Order::RoundRobin, true, true);

const fn weighted(scheme: Scheme, weight: u32) -> Scheme {
    match scheme {
        Scheme::Cloudburst { paper, paths, order, tiny, rate, blocks, .. } => {
            Scheme::Cloudburst { paper, paths, order, tiny, weight, rate, blocks }
        }
        other => other,
    }
}

impl Scheme {
    /// The scheme of this name.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, scheme)| *scheme).ok_or_else(|| format!("no scheme is called `{name}`"))
    }

    /// The same, where Cloudburst sends at a share `rate` of the link.
    pub(super) fn at_rate(self, share: f64) -> Self {
        match self {
            Self::Cloudburst { paper, paths, order, tiny, weight, blocks, .. } => {
                Self::Cloudburst { paper, paths, order, tiny, weight, rate: share, blocks }
            }
            Self::Model { .. } => Self::Model { rate: share },
            other => other,
        }
    }

    /// The code of its messages, if they have one.
    pub(super) fn code(self, site: &Site) -> Option<Code> {
        match self {
            Self::Cloudburst { paper: true, .. } => {
                Some(Settings::paper(site.edge.rate).config.code)
            }
            Self::Cloudburst { paper: false, .. } => {
                Some(Settings::ours(site.edge.rate).config.code)
            }
            _ => None,
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
            let (packet, rate, delay) = (1_500, site.edge.rate, 4 * US);
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
            Self::Cloudburst { paper, paths, order, rate, blocks, .. } => {
                let link = site.edge.rate;
                let mut settings = if paper { Settings::paper(link) } else { Settings::ours(link) };
                settings.config.rate = rate;
                // Algorithm 1 sends when the link is free, and does not catch up after a pause.
                settings.send_buffer = blocks.then_some(0);
                (settings.paths, settings.config.order) = (paths, order);
                let cloudburst = Cloudburst::new(settings, &site.shape)?;
                [boxed(cloudburst), boxed(Tcp::new(in_class(1)))]
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

    /// The network with the queues of the scheme. Hosts' ports are as those of switches, but hold anything, and
    /// where messages have a queue of their own, it comes first: what a host sends itself it can order.
    pub(super) fn fabric(self, site: &Site) -> Result<Clos, TopologyError> {
        let Site { shape, edge, core, .. } = *site;
        // Each class of a port has as much memory of its own as the tiny queue, and shares the rest. A leaf has
        // the most ports.
        let ports = u64::from(shape.hosts_per_leaf + shape.ways);
        let classes = if matches!(self, Self::Dctcp { .. } | Self::Replicated(_)) { 1 } else { 2 };
        let reserved = ports * classes * site.tiny as u64;
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

    /// The queue of a port, of a switch with this memory or of a host.
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
            Self::Mptcp | Self::Cloudburst { .. } | Self::Model { .. } if buffer.is_none() => {
                Strict::new(Classes::new(link, &[Limits::NONE, k])).into()
            }
            Self::Mptcp => {
                let classes = Classes::new(link, &[Limits::new(limit), k]);
                Weighted::new(within(classes), &[1, 1]).into()
            }
            Self::Cloudburst { .. } | Self::Model { .. } => {
                let (tiny, weight) = match self {
                    Self::Cloudburst { tiny, weight, .. } => (tiny, weight),
                    _ => (true, 1),
                };
                let own = match tiny {
                    true => Limits::new(Depth::Bytes(site.tiny)),
                    false => Limits::new(limit),
                };
                Weighted::new(within(Classes::new(link, &[own, k])), &[weight, 1]).into()
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

fn boxed(transport: impl Transport + 'static) -> Box<dyn Transport> {
    Box::new(transport)
}
