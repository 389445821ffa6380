//! Schemes, and their names as text.

use cloudburst_core::code::{Code, Degree};
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::path::Order;
use cloudburst_net::{Classes, Config, Fabric, PathMap, Rate, Tuning};
use cloudburst_testbed::{Queues, Weights};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// A transport, its settings, and the queues that it uses in the network. Its text is as listed by
/// `cbrst-eval schemes`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scheme {
    /// `none`: no short messages at all, only the background.
    BackgroundAlone,
    /// Kernel TCP, with a pool of connections for each pair of hosts.
    Tcp {
        /// `TCP_CONGESTION`.
        congestion: Congestion,
        /// The number of connections that carry the same message at once.
        copies: usize,
        /// The queue that it uses.
        queue: TcpQueue,
    },
    /// `mptcp`: the kernel's MPTCP, in the queue for short messages.
    Mptcp,
    /// `quic`: quinn, with a connection for each pair of hosts.
    Quic,
    /// Cloudburst and its settings.
    Cloudburst(CloudburstSettings),
}

/// A queue of the switches, for TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpQueue {
    /// The queue of the background.
    Default,
    /// The queue for short messages, as deep as the default one.
    Short,
    /// The same queue with a weight that stands for strict priority.
    First,
}

/// A congestion control algorithm of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Congestion {
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, version 1.
    Bbr,
}

impl Congestion {
    /// The kernel's name for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

impl FromStr for Congestion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cubic" => Ok(Self::Cubic),
            "bbr" => Ok(Self::Bbr),
            _ => Err("expected cubic or bbr".into()),
        }
    }
}

/// Cloudburst and its settings. The defaults are the library's, except that of `weight`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CloudburstSettings {
    /// The paper's design choices that are enabled.
    pub(crate) design: Design,
    /// `code=`, in the text form of [`Code`].
    pub(crate) code: Code,
    /// `policy=`, in the text form of [`BurstPolicy`].
    pub(crate) policy: BurstPolicy,
    /// `order=`, as in `cbrst-send --order`.
    pub(crate) order: Order,
    /// `train=`: `Tuning::train`.
    pub(crate) train: usize,
    /// `rate=`: the share of `Config::rate`, the paper's r.
    pub(crate) rate: f64,
    /// `adaptive_rate=`: whether `Config::rate` adapts, true or false.
    pub(crate) adaptive_rate: bool,
    /// `paths=explicit`, or `paths=ecmp:N`.
    pub(crate) paths: Paths,
    /// `pull_above=`: `Fabric::pull_above`.
    pub(crate) pull_above: usize,
    /// `classes=`, as in `cbrst-send --classes`, with a queue for each class.
    pub(crate) classes: Classes,
    /// `weight=`: the weight of the queue for short messages, where that of the default queue is 1.
    pub(crate) weight: u32,
}

/// The designs of the paper's section V-A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Design {
    /// Coding alone: each message on one random path, in deep queues.
    A,
    /// Coding and multiple paths, in deep queues.
    B,
    /// Coding and tiny queues.
    C,
    /// All three.
    D,
}

/// How packets are spread over paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Paths {
    /// By an address of the peer for each path (XPath).
    Explicit,
    /// By ports, which switches hash.
    Map(PathMap),
}

/// The default weight of the queue for short messages, where that of the default queue is 1. The
/// paper gives none.
const WEIGHT: u32 = 8;
/// The code of the paper (IV-A), whose short name is `lt`.
const PAPER: Code = Code::Lt(Degree::Fixed(5));
/// The weights that stand for strict priority.
const FIRST: Weights = Weights { tiny: 100, default: 1 };

impl Scheme {
    /// The names of all schemes, with descriptions.
    pub(crate) const LIST: [(&'static str, &'static str); 13] = [
        ("tcp-cubic", "kernel TCP, CUBIC, ECMP, in the default queue"),
        ("tcp-bbr", "kernel TCP, BBR, ECMP, in the default queue"),
        ("tcp-short", "kernel TCP, CUBIC, ECMP, in a deep queue for short messages"),
        ("pias", "kernel TCP, CUBIC, in a deep queue with weight 100 (PIAS with two levels)"),
        ("replicated-2", "kernel TCP, CUBIC, 2 copies on different paths, in the default queue"),
        ("replicated-4", "kernel TCP, CUBIC, 4 copies on different paths, in the default queue"),
        ("mptcp", "the kernel's Multipath TCP, in a deep queue for short messages"),
        ("quic", "quinn, CUBIC, in a deep queue for short messages"),
        ("a", "Cloudburst: coding, a random path for each message, deep queues"),
        ("b", "Cloudburst: coding, all paths, deep queues"),
        ("c", "Cloudburst: coding, a random path for each message, tiny queues"),
        ("d", "Cloudburst: coding, all paths, tiny queues"),
        ("none", "no short messages, only the background"),
    ];

    /// Whether its packets have the DSCP of short messages.
    pub(crate) const fn is_marked(&self) -> bool {
        match self {
            Self::Tcp { queue, .. } => !matches!(queue, TcpQueue::Default),
            Self::Mptcp | Self::Quic | Self::Cloudburst(_) => true,
            Self::BackgroundAlone => false,
        }
    }

    /// The number of classes of its symbols. Each has a tiny queue.
    pub(crate) fn classes(&self) -> usize {
        match self {
            Self::Cloudburst(CloudburstSettings { classes, .. }) => classes.count(),
            _ => 1,
        }
    }

    /// Whether it needs an address for each path.
    pub(crate) fn is_explicit(&self) -> bool {
        matches!(self, Self::Cloudburst(CloudburstSettings { paths: Paths::Explicit, .. }))
    }

    /// The queues for this scheme, where `base` has the lengths for Cloudburst.
    pub(crate) fn queues(&self, base: Queues) -> Queues {
        let weights = Weights { tiny: WEIGHT, default: 1 };
        let deep = Queues { tiny_packets: base.default_packets, weights, ..base };
        match self {
            Self::Tcp { queue: TcpQueue::First, .. } => Queues { weights: FIRST, ..deep },
            Self::BackgroundAlone | Self::Tcp { .. } | Self::Mptcp | Self::Quic => deep,
            Self::Cloudburst(cloudburst) => {
                let weights = Weights { tiny: cloudburst.weight, default: 1 };
                match cloudburst.design {
                    Design::A | Design::B => Queues { weights, ..deep },
                    Design::C | Design::D => Queues { weights, ..base },
                }
            }
        }
    }
}

impl Default for CloudburstSettings {
    fn default() -> Self {
        let Config { code, policy, order, rate, fabric, tuning, .. } = Config::default();
        Self {
            design: Design::D,
            code,
            policy,
            pull_above: fabric.pull_above,
            order,
            train: tuning.train,
            rate: rate.share(),
            adaptive_rate: rate.is_adaptive(),
            paths: Paths::Map(PathMap::default()),
            classes: fabric.classes,
            weight: WEIGHT,
        }
    }
}

impl CloudburstSettings {
    /// The configuration of an endpoint with these settings.
    pub(crate) fn config(&self) -> Config {
        let Self { code, policy, pull_above, order, train, rate, adaptive_rate, classes, .. } =
            *self;
        Config {
            code,
            policy,
            order,
            rate: if adaptive_rate { Rate::Adaptive(rate) } else { Rate::Fixed(rate) },
            fabric: Fabric { classes, pull_above, ..Fabric::default() },
            tuning: Tuning { train, ..Tuning::default() },
            ..Config::default()
        }
    }

    /// Whether a message is spread over several paths.
    pub(crate) const fn is_spread(&self) -> bool {
        matches!(self.design, Design::B | Design::D)
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tcp = |congestion, copies, queue| Self::Tcp { congestion, copies, queue };
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let design = match name {
            "a" => Design::A,
            "b" => Design::B,
            "c" => Design::C,
            "d" => Design::D,
            _ => {
                return match text {
                    "none" => Ok(Self::BackgroundAlone),
                    "tcp-cubic" => Ok(tcp(Congestion::Cubic, 1, TcpQueue::Default)),
                    "tcp-short" => Ok(tcp(Congestion::Cubic, 1, TcpQueue::Short)),
                    "tcp-bbr" => Ok(tcp(Congestion::Bbr, 1, TcpQueue::Default)),
                    "pias" => Ok(tcp(Congestion::Cubic, 1, TcpQueue::First)),
                    "replicated-2" => Ok(tcp(Congestion::Cubic, 2, TcpQueue::Default)),
                    "replicated-4" => Ok(tcp(Congestion::Cubic, 4, TcpQueue::Default)),
                    "mptcp" => Ok(Self::Mptcp),
                    "quic" => Ok(Self::Quic),
                    _ => Err(format!(
                        "no scheme is called {text:?}: `cbrst-eval schemes` lists them"
                    )),
                };
            }
        };
        let mut cloudburst = CloudburstSettings { design, ..CloudburstSettings::default() };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            cloudburst.set(setting).map_err(|why| format!("scheme {text:?}, {setting}: {why}"))?;
        }
        cloudburst.config().check().map_err(|why| format!("scheme {text:?}: {why}"))?;
        Ok(Self::Cloudburst(cloudburst))
    }
}

impl CloudburstSettings {
    fn set(&mut self, setting: &str) -> Result<(), String> {
        fn parse<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
            value.parse().map_err(|error: T::Err| error.to_string())
        }
        let (key, value) = setting.split_once('=').ok_or("expected KEY=VALUE")?;
        match key {
            "code" => self.code = parse(value)?,
            "policy" => self.policy = parse(value)?,
            "pull_above" => self.pull_above = parse(value)?,
            "order" => self.order = parse(value)?,
            // Records and command lines of earlier versions have `run`.
            "train" | "run" => self.train = parse(value)?,
            "rate" => self.rate = parse(value)?,
            "adaptive_rate" => self.adaptive_rate = parse(value)?,
            "paths" if value == "explicit" => self.paths = Paths::Explicit,
            "paths" if value.starts_with("ecmp:") => self.paths = Paths::Map(parse(value)?),
            "paths" => return Err("expected explicit or ecmp:N".into()),
            "classes" => self.classes = parse(value)?,
            "weight" => {
                self.weight = parse(value)?;
                if !(1..=100).contains(&self.weight) {
                    return Err("expected 1 to 100".into());
                }
            }
            _ => {
                return Err(
                    "no such setting: they are code, policy, pull_above, order, train, rate, \
                     adaptive_rate, paths, classes and weight"
                        .into(),
                );
            }
        }
        Ok(())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackgroundAlone => f.write_str("none"),
            Self::Tcp { queue: TcpQueue::First, .. } => f.write_str("pias"),
            Self::Tcp { queue: TcpQueue::Short, .. } => f.write_str("tcp-short"),
            Self::Tcp { copies: 1, congestion: Congestion::Cubic, .. } => f.write_str("tcp-cubic"),
            Self::Tcp { copies: 1, congestion: Congestion::Bbr, .. } => f.write_str("tcp-bbr"),
            Self::Tcp { copies, .. } => write!(f, "replicated-{copies}"),
            Self::Mptcp => f.write_str("mptcp"),
            Self::Quic => f.write_str("quic"),
            Self::Cloudburst(cloudburst) => cloudburst.fmt(f),
        }
    }
}

/// The design, and the settings that differ from the defaults.
impl fmt::Display for CloudburstSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self { design: self.design, ..Self::default() };
        f.write_str(match self.design {
            Design::A => "a",
            Design::B => "b",
            Design::C => "c",
            Design::D => "d",
        })?;
        let mut settings = Vec::new();
        if self.code == PAPER {
            settings.push("code=lt".into());
        } else if self.code != usual.code {
            settings.push(format!("code={}", self.code));
        }
        if self.policy != usual.policy {
            settings.push(format!("policy={}", self.policy));
        }
        if self.pull_above != usual.pull_above {
            settings.push(format!("pull_above={}", self.pull_above));
        }
        if self.order != usual.order {
            settings.push(format!("order={}", self.order));
        }
        if self.train != usual.train {
            settings.push(format!("train={}", self.train));
        }
        if self.rate != usual.rate {
            settings.push(format!("rate={}", self.rate));
        }
        if self.adaptive_rate != usual.adaptive_rate {
            settings.push(format!("adaptive_rate={}", self.adaptive_rate));
        }
        match &self.paths {
            paths if *paths == usual.paths => {}
            Paths::Explicit => settings.push("paths=explicit".into()),
            Paths::Map(map) => settings.push(format!("paths={map}")),
        }
        if self.classes != usual.classes {
            settings.push(format!("classes={}", self.classes));
        }
        if self.weight != usual.weight {
            settings.push(format!("weight={}", self.weight));
        }
        if settings.is_empty() { Ok(()) } else { write!(f, ":{}", settings.join(",")) }
    }
}

impl Serialize for Scheme {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_round_trips_through_its_text() {
        let all = Scheme::LIST.map(|(name, _)| name);
        let set = [
            "d:code=lt,policy=until-stop",
            "d:policy=pulled",
            "d:policy=pulled:window=24",
            "d:pull_above=50000",
            "c:policy=budgeted:margin=0.25,order=rb,train=1,rate=0.5,adaptive_rate=true,paths=explicit,weight=4",
            "b:paths=ecmp:4x4",
            "d:classes=left:20000/50000,weight=1",
        ];
        for text in all.into_iter().chain(set) {
            assert_eq!(text.parse::<Scheme>().unwrap().to_string(), text);
        }
        let usual: Scheme = "d:policy=budgeted,train=64".parse().unwrap();
        assert_eq!(usual.to_string(), "d", "defaults are left out");
        let earlier: Scheme = "d:run=8".parse().unwrap();
        assert_eq!(earlier.to_string(), "d:train=8", "the name in earlier versions");
    }

    #[test]
    fn the_error_names_the_invalid_part_of_a_scheme() {
        let wrong = |text: &str| text.parse::<Scheme>().unwrap_err();
        assert!(wrong("tcp").contains("cbrst-eval schemes"));
        assert!(wrong("pias:train=3").contains("no scheme is called \"pias:train=3\""));
        assert!(wrong("d:colour=red").ends_with("classes and weight"));
        assert!(wrong("d:train=x").contains("scheme \"d:train=x\", train=x: invalid digit"));
        assert!(wrong("d:weight=0").contains("1 to 100"));
    }

    #[test]
    fn only_designs_c_and_d_have_tiny_queues() {
        let weights = Weights { tiny: 1, default: 1 };
        let base = Queues { tiny_packets: 8, default_packets: 256, weights };
        let of = |text: &str| text.parse::<Scheme>().unwrap().queues(base);
        let depths = ["a", "b", "c", "d", "pias", "mptcp"].map(|name| of(name).tiny_packets);
        assert_eq!(depths, [256, 256, 8, 8, 256, 256]);
        assert_eq!(of("pias").weights, FIRST);
        assert_eq!(of("d:weight=4").weights, Weights { tiny: 4, default: 1 });
    }
}
