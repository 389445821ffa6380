//! The setup of a world: its hosts, their configurations, and how it ends.

use crate::choices::Choices;
use crate::recipe::Recipe;
use cloudburst_core::code::{Code, Degree};
use cloudburst_core::config::{
    BurstPolicy, Classes, Config, Fabric, ListenPorts, PullOrder, Security, Tuning,
};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

/// The port of egress 0 of every host. That of egress `k` is `k` higher.
pub(crate) const PORT: u16 = 7000;
const MAX_HOSTS: usize = 4;
/// The DSCP of trimmed packets, which these links have no use for.
const TRIM_DSCP: u8 = 44;
/// The flags of a world whose links serve classes.
const CLASSED: u8 = 2 | 128;

#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) configs: Vec<Config>,
    pub(crate) security: Security,
    pub(crate) egresses: u16,
    pub(crate) start: Instant,
    /// The seed of the faults of links.
    pub(crate) seed: u64,
    pub(crate) end: End,
    /// Whether links serve classes of packets by strict priority. Each host then has its own
    /// setting for classes.
    pub(crate) classed: bool,
    /// The classes that switches give to packets of each host; an empty list changes none.
    pub(crate) remarks: Vec<&'static [u8]>,
}

/// How a world ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Nothing arrives any more.
    Dark,
    /// The network heals, and nothing is sent for the time `rest`. If `replays`, a stranger keeps
    /// replaying old handshakes.
    Heals { rest: Duration, replays: bool },
    /// The network heals while all processes are stopped. When they continue, applications send
    /// before the packets that waited are read.
    Paused,
}

impl End {
    fn read(choices: &mut Choices<'_>) -> Self {
        let byte = choices.u8();
        match byte % 8 {
            0..=3 => Self::Heals {
                rest: Duration::from_secs(5) * u32::from(byte >> 5),
                replays: byte & 16 != 0,
            },
            4 | 5 => Self::Paused,
            _ => Self::Dark,
        }
    }
}

impl Setup {
    pub(crate) fn read(choices: &mut Choices<'_>) -> Self {
        let flags = choices.u8();
        let hosts = 2 + choices.below(MAX_HOSTS - 1);
        let classed = flags & CLASSED == CLASSED;
        let mut setup = Self {
            classed,
            remarks: Vec::new(),
            end: End::read(choices),
            security: if flags & 1 != 0 {
                Security::trusted_network()
            } else {
                Security::pre_shared([7; 32])
            },
            egresses: 1 + u16::from(flags >> 2 & 3),
            start: Instant::from_nanos(if flags & 16 != 0 { 0 } else { 1_000_000_000 }),
            seed: choices.u8().into(),
            configs: (0..hosts).map(|host| config(choices, flags, host, hosts)).collect(),
        };
        if classed {
            for config in &mut setup.configs {
                config.fabric.classes = classes(choices.pick(&CLASSES));
            }
            setup.remarks = (0..hosts).map(|_| choices.pick(&REMARKS)).collect();
        }
        setup
    }

    pub(crate) fn recipe(&self, host: usize) -> Recipe {
        let mut secret = [0x5e; 32];
        secret[0] = host as u8;
        Recipe {
            config: self.configs[host].clone(),
            listen: ListenPorts::one(PORT),
            security: self.security.clone(),
            secret,
            egresses: self.egresses,
            addr: address(host, 0),
            ports: self.egresses,
            shared: None,
            interface_mtu: 1_500,
        }
    }
}

/// The address of an egress of a host.
pub(crate) fn address(host: usize, egress: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + host as u8], PORT + egress))
}

/// The one of `hosts` hosts that has `address`, if any.
pub(crate) fn host_at(address: SocketAddr, hosts: usize) -> Option<usize> {
    (0..hosts).find(|&host| self::address(host, 0).ip() == address.ip())
}

fn config(choices: &mut Choices<'_>, flags: u8, host: usize, hosts: usize) -> Config {
    let max_message = choices.pick(&[131_072, 2_000, 16_384]);
    let mtu = choices.pick(&[576, 1500]);
    let capacity = choices.pick(&[1_000_000_000, 10_000_000, 1_000_000]);
    let rate = choices.pick(&[1.0, 0.5]);
    let train = choices.pick(&[64, 1, 4]);
    let trims = flags & 128 != 0 && (flags & 2 == 0 || host.is_multiple_of(2));
    let config = Config {
        max_message,
        mtu,
        capacity: capacity.into(),
        rate: rate.into(),
        code: choices.pick(&CODES),
        policy: match choices.pick(&POLICIES) {
            // On a fast link, there would be too many packets to play.
            BurstPolicy::Oblivious if capacity < 1_000_000_000 => BurstPolicy::UntilStop,
            policy => policy,
        },
        fabric: Fabric { trim_dscp: trims.then_some(TRIM_DSCP), ..Fabric::default() },
        deadline: choices.pick(&[2_000, 10, 100, 5].map(Duration::from_millis)),
        tuning: Tuning {
            train,
            pull_order: if flags & 32 != 0 {
                PullOrder::ShortestFirst
            } else {
                PullOrder::RoundRobin
            },
            probe: flags & 64 != 0,
            max_redundancy: choices.pick(&[32, 2, 8]),
            blocks_in_flight: choices.pick(&[2, 1, 3]),
            send_messages: Some(choices.pick(&[64, 4, 8])),
            send_bytes: Some(choices.pick(&[1 << 20, 2_000, 20_000])),
            receive_messages: Some(choices.pick(&[1024, 1, 2])),
            receive_bytes: Some(choices.pick(&[1 << 20, 1_000, 10_000])),
            decode_bytes: Some(2 * max_message + choices.pick(&[1 << 20, 0, 10_000])),
            decode_bytes_per_peer: Some(2 * max_message + choices.pick(&[1 << 20, 0, 10_000])),
            decode_timeout: choices.pick(&[5_000, 100, 10].map(Duration::from_millis)),
            max_peers: Some(choices.pick(&[4096, hosts, hosts + 1])),
        },
        ..Config::default()
    };
    config.check().expect("every choice above is in its range");
    config
}

/// Options of one message that differ from the configuration.
pub(crate) fn options(choices: &mut Choices<'_>) -> SendOptions {
    let byte = choices.u8();
    let deadline = [None, Some(1), Some(20), Some(200), Some(2_000)][usize::from(byte % 5)];
    let mut options = SendOptions::default().priority(byte % (SendOptions::MAX_PRIORITY + 1));
    options.deadline = deadline.map(Duration::from_millis);
    options.code = CODES.get(usize::from(byte / 5) % (CODES.len() + 1)).copied();
    options.policy = POLICIES.get(usize::from(byte / 35)).copied();
    options.wait = !byte.is_multiple_of(3);
    options
}

fn classes(text: &str) -> Classes {
    text.parse().expect("the thresholds ascend")
}

/// Settings with two to four classes of symbols, or one.
const CLASSES: [&str; 5] =
    ["left:2000", "left:1000/10000/50000", "one", "sent:1000/20000", "sent:500/5000/50000"];

/// Rewritten classes: unchanged, one for all packets, the reverse, and one for all symbols.
const REMARKS: [&[u8]; 5] = [&[0, 1, 2, 3, 4], &[0], &[3], &[3, 2, 1, 0], &[0, 1]];

const CODES: [Code; 6] = [
    Code::Rlf256,
    Code::Lt(Degree::Fixed(5)),
    Code::LtSystematic(Degree::Dense),
    Code::Lt(Degree::RobustSoliton),
    Code::Lt(Degree::Fixed(2)),
    Code::LtSystematic(Degree::IdealSoliton),
];

const POLICIES: [BurstPolicy; 6] = [
    BurstPolicy::Budgeted { margin: 1.0 / 16.0 },
    BurstPolicy::Budgeted { margin: 0.0 },
    BurstPolicy::Oblivious,
    BurstPolicy::Budgeted { margin: 4.0 },
    BurstPolicy::Pulled { window: None },
    BurstPolicy::Pulled { window: Some(3) },
];
