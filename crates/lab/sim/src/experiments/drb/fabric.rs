//! The paper's fabrics, and the settings of TCP.

use crate::engine::{MS, Time, US};
use crate::experiment::Scale;
use crate::fabric::{Clos, Link, Shape, TopologyError};
use crate::queue::{Depth, Discipline, DropTail};
use crate::transport::tcp::{Config, LoadBalancing};
use cloudburst_core::path::{self, Order};
use core::error::Error;

/// The minimum retransmission timeout of Linux and NS3.
pub(super) const RTO_MIN: Time = 200 * MS;
/// How long a receiver holds packets that are out of order.
const HOLD: Time = 10 * MS;
/// The window that the paper's text gives.
const WINDOW: u64 = 256 << 10;
/// The window of TCP without window scaling.
const UNSCALED: u64 = 65_535;
/// The suffix of schemes with that window.
const SUFFIX: &str = "-64k";
const GBPS: u64 = 1_000_000_000;

/// One of the two topologies. Its number is the `x` or the load of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fabric {
    /// 24 ports, 3,456 servers, all links of 1 Gb/s.
    FatTree,
    /// d0 = 4, d1 = 64, d2 = 24, 3,840 servers, 5 Gb/s between switches.
    Vl2,
}

impl Fabric {
    pub(super) const ALL: [Self; 2] = [Self::FatTree, Self::Vl2];
    /// The numbers of all fabrics.
    pub(super) const NUMBERS: [f64; 2] = [0.0, 1.0];

    pub(super) fn of(number: f64) -> Self {
        if number == 0.0 { Self::FatTree } else { Self::Vl2 }
    }

    pub(super) const fn number(self) -> f64 {
        Self::NUMBERS[self as usize]
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FatTree => "Fat-tree",
            Self::Vl2 => "VL2",
        }
    }

    /// Its shape with `oversubscription` times the servers. The short forms are a Fat-tree of 8 ports and 128 servers,
    /// and a VL2 of 120 servers.
    pub(super) fn shape(self, scale: Scale, oversubscription: u16) -> Shape {
        let (d0, d1, d2) = vl2(scale);
        match self {
            Self::FatTree => Shape::fat_tree(ports(scale), oversubscription),
            // Without over-subscription, the uplinks of 5 Gb/s carry the full rate of all servers.
            Self::Vl2 => Shape::vl2(5 * d0 * oversubscription, d0, d1, d2),
        }
    }

    const fn core_rate(self) -> u64 {
        match self {
            Self::FatTree => GBPS,
            Self::Vl2 => 5 * GBPS,
        }
    }

    /// The network. Ports hold 128 KB at 1 Gb/s and 640 KB at 5 Gb/s. With `ecn` they mark from 32 and 160 KB on. The
    /// ports of hosts are unlimited.
    pub(super) fn build(self, shape: Shape, ecn: bool) -> Result<Clos, TopologyError> {
        let edge = Link { rate: GBPS, delay: 5 * US };
        let core = Link { rate: self.core_rate(), delay: 5 * US };
        let nic = |_| DropTail::new(Depth::Unlimited).into();
        let queue = |link: Link| -> Discipline {
            let times = (link.rate / GBPS) as usize;
            let limit = Depth::Bytes(times * (128 << 10));
            let mark_at = if ecn { Depth::Bytes(times * (32 << 10)) } else { Depth::Unlimited };
            DropTail::with_ecn(limit, mark_at).into()
        };
        Ok(Clos::new(shape, edge, core, nic, queue)?.over_cores())
    }

    /// The time of a data packet between racks without queueing, from its arrival at the first switch until it has left
    /// the last switch: five transmissions and four links.
    pub(super) const fn unqueued(self) -> Time {
        let byte = 8_000_000_000_000 / self.core_rate();
        4 * 1_500 * byte + 1_500 * 8_000 + 4 * 5 * US
    }

    /// The digit-reversal order of its cores.
    fn digit_reversal(self, scale: Scale) -> Result<Order, path::ShapeError> {
        let (d0, d1, d2) = vl2(scale);
        Ok(Order::DigitReversal(match self {
            Self::FatTree => path::Shape::fat_tree(ports(scale))?,
            Self::Vl2 => path::Shape::vl2(d0, d1, d2)?,
        }))
    }
}

fn ports(scale: Scale) -> u16 {
    scale.of(8, 24)
}

/// d0, d1 and d2.
fn vl2(scale: Scale) -> (u16, u16, u16) {
    scale.of((2, 8, 6), (4, 64, 24))
}

/// The name of a scheme without the suffix for its window, and the window.
pub(super) fn window(scheme: &str) -> (&str, u64) {
    match scheme.strip_suffix(SUFFIX) {
        Some(scheme) => (scheme, UNSCALED),
        None => (scheme, WINDOW),
    }
}

/// The name of a scheme's window in figures and tables.
pub(super) fn window_name(scheme: &str) -> &'static str {
    if scheme.ends_with(SUFFIX) { "64 KB" } else { "256 KB" }
}

/// The TCP of a scheme: `ecmp`, `mptcp`, `rb`, `rrb` or `drb`, with or without the suffix for the smaller window.
pub(super) fn tcp(
    scheme: &str,
    fabric: Fabric,
    scale: Scale,
) -> Result<Config, Box<dyn Error + Send + Sync>> {
    let (name, window) = window(scheme);
    let balancing = match name {
        "ecmp" | "mptcp" => LoadBalancing::PerFlow,
        "rb" => LoadBalancing::PerPacket(Order::Random),
        "rrb" => LoadBalancing::PerPacket(Order::RoundRobin),
        "drb" => LoadBalancing::PerPacket(fabric.digit_reversal(scale)?),
        _ => return Err(format!("unknown scheme `{scheme}`").into()),
    };
    let resequencing = (balancing != LoadBalancing::PerFlow).then_some(HOLD);
    let rto_min = RTO_MIN;
    let rto_initial = RTO_MIN;
    Ok(Config { window, rto_min, rto_initial, resequencing, balancing, ..Config::default() })
}
