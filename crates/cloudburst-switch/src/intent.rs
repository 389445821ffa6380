//! The intended configuration of one switch: the parameters, checked, rounded and complete. Templates are filled
//! from it, and configurations are judged by it.

use super::chip::Chip;
use super::error::Refusal;
use super::params::{Parameters, Role, Route, Trim, Weights};
use super::platform::{Order, Platform, Shares, Step};
use super::size::{Buffer, Limit, RequestedLimit};
use super::{dscp, ports};
use cloudburst_program::{Bits, Bytes};
use core::fmt::Display;
use core::str::FromStr;
use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;

/// A class of Cloudburst's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiny {
    pub(crate) dscp: u8,
    pub(crate) queue: u8,
    /// The share of the link, in the platform's terms: that of the class where queues are weighted, or that of all
    /// classes together.
    pub(crate) share: u64,
}

/// The most DSCPs: switches have eight queues, and other traffic needs some.
const MAX_DSCPS: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) platform: Platform,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) ports: Vec<String>,
    /// All classes, the most urgent first.
    pub(crate) tiny: Vec<Tiny>,
    /// Those of the first class, or of the current one: see `per_class`.
    pub(crate) dscp: u8,
    pub(crate) queue: u8,
    pub(crate) requested: RequestedLimit,
    pub(crate) limit: Limit,
    pub(crate) chip: Option<&'static Chip>,
    pub(crate) buffer: Buffer,
    /// Bits per second.
    pub(crate) rate: u64,
    pub(crate) weights: Weights,
    /// The same in the platform's terms: weights, or percent. The first is that of all classes together, or of the
    /// current one.
    pub(crate) shares: (u64, u64),
    /// The number of other classes, each of which takes one percent from the default queue.
    pub(crate) others: u64,
    /// `None` if the configuration cannot set it.
    pub(crate) seed: Option<u32>,
    /// The class of each DSCP that has one.
    pub(crate) classes: BTreeMap<u8, u8>,
    /// The threshold in bytes, in whole cells.
    pub(crate) aeolus: Option<u64>,
    pub(crate) trim: Option<Trim>,
    pub(crate) decapsulate: Option<Ipv4Addr>,
    /// Prefixes that such packets may come from; empty: any.
    pub(crate) decapsulate_from: Vec<String>,
    pub(crate) routes: Vec<Route>,
}

impl Intent {
    /// Checks and completes the parameters.
    ///
    /// # Errors
    ///
    /// The first error in the parameters.
    pub(crate) fn new(parameters: Parameters) -> Result<Self, Refusal> {
        let got = parameters.platform.ok_or(Refusal::Missing("platform"))?;
        let platform = Platform::find(&got).ok_or(Refusal::Platform { got })?;
        let name = parameters.name.unwrap_or_else(|| "switch".into());
        // It becomes part of comments, which Ansible renders with Jinja again.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let expected = "letters, digits, dots, dashes and underscores".into();
            return Err(Refusal::Value { field: "name", got: format!("{name:?}"), expected });
        }
        let ports = ports::expand(&parameters.ports, platform)?;
        let mut classes = classes(&parameters.classes)?;
        let dscps = dscps(parameters.dscp, parameters.dscps)?;
        dscps.iter().try_for_each(|&dscp| check_dscp(dscp, platform, &classes))?;
        let queue = parameters.queue.unwrap_or(5);
        let queues = queues(queue, dscps.len(), platform);
        let check = |&queue| check_queue(queue, platform, &classes, &parameters.pfc);
        queues.iter().try_for_each(check)?;
        if let Some(trim) = &parameters.trim {
            check_trim(trim, platform, &dscps, &queues)?;
            check_dscp(trim.dscp, platform, &classes)?;
            check_queue(trim.queue, platform, &classes, &parameters.pfc)?;
            classes.insert(trim.dscp, trim.queue);
        }
        check_classes(platform, &classes, &parameters.pfc)?;
        let chip = parameters.chip.as_deref().map(Chip::find).transpose()?;
        if let (Some(chip), false) = (chip, platform.has_chip()) {
            let got = chip.name.into();
            let expected = format!("none: {platform} has queues in software");
            return Err(Refusal::Value { field: "chip", got, expected });
        }
        let cell = chip.and_then(|chip| chip.cell).unwrap_or_else(|| platform.cell());
        let mmus = chip.map_or(1, |chip| chip.mmus);
        let buffer = Buffer {
            mtu: within("mtu", parameters.mtu.unwrap_or(1500).into(), 576, 16_000)?,
            cell: within("cell", parameters.cell.map_or(cell, u64::from), 1, 4096)?,
            total: (parsed::<Bytes>("buffer", parameters.buffer)?.map(|bytes| bytes.0))
                .or(chip.map(|chip| chip.buffer)),
            mmus: within("mmus", parameters.mmus.map_or(mmus, u64::from), 1, 64)?,
        };
        let requested = parsed("limit", parameters.limit)?.ok_or(Refusal::Missing("limit"))?;
        let mut limit = Limit::new(requested, platform, buffer)?;
        // Thresholds of early dropping must have the unit of the limit, and are bytes.
        limit.in_packets &= platform != Platform::IosXe || parameters.aeolus.is_none();
        let rate: Option<Bits> = parsed("rate", parameters.rate)?;
        let rate = within("rate", rate.ok_or(Refusal::Missing("rate"))?.0, 8_000, MAX_RATE)?;
        let weights = parameters.weights.unwrap_or(Weights { tiny: 1, default: 1 });
        let others = others(platform, &classes);
        let (parts, default) = shares(weights, platform, buffer, others, dscps.len())?;
        let together = match platform.order() {
            Order::Weighted => parts.iter().sum(),
            Order::Strict | Order::OneQueue => parts[0],
        };
        let of_all = dscps.iter().zip(queues).zip(parts);
        let tiny = of_all.map(|((&dscp, queue), share)| Tiny { dscp, queue, share });
        let seed = match platform.largest_seed() {
            None => None,
            Some(largest) => {
                let seed = parameters.seed.ok_or(Refusal::Missing("seed"))?;
                let is_fine = (1..=largest).contains(&seed);
                Some(is_fine.then_some(seed).ok_or(Refusal::Seed { seed, platform, largest })?)
            }
        };
        let aeolus = aeolus(parameters.aeolus, platform, buffer, limit)?;
        if parameters.decapsulate.is_some() && !platform.decapsulates() {
            let what = "decapsulating IP-in-IP packets";
            let field = "decapsulate";
            return Err(Refusal::Cannot { platform, what, field });
        }
        check_senders(&parameters.decapsulate_from, parameters.decapsulate, platform)?;
        check_routes(&parameters.routes, &ports)?;
        Ok(Self {
            platform,
            name,
            role: parameters.role.unwrap_or_default(),
            ports,
            tiny: tiny.collect(),
            dscp: dscps[0],
            queue,
            requested,
            limit,
            chip,
            buffer,
            rate,
            weights,
            shares: (together, default),
            others,
            seed,
            classes,
            aeolus,
            trim: parameters.trim,
            decapsulate: parameters.decapsulate,
            decapsulate_from: parameters.decapsulate_from,
            routes: parameters.routes,
        })
    }

    /// Returns one intent for each class, with that class as the current one: each queue is judged as if it were the
    /// only one.
    pub(crate) fn per_class(&self) -> impl Iterator<Item = Self> {
        self.tiny.iter().map(|&Tiny { dscp, queue, share }| Self {
            dscp,
            queue,
            shares: (share, self.shares.1),
            ..self.clone()
        })
    }

    /// Whether one of Cloudburst's queues has this number.
    pub(crate) fn is_tiny(&self, queue: u8) -> bool {
        self.tiny.iter().any(|tiny| tiny.queue == queue)
    }

    /// Returns the seconds that a class's full queue takes to drain: with the link to itself, and beside other queues
    /// that are never empty. The second is the longest that a packet can wait, unless strict classes before it have
    /// packets.
    pub(crate) fn delays(&self, tiny: &Tiny) -> (f64, f64) {
        let bytes = if self.limit.in_packets {
            self.limit.packets * self.buffer.frame()
        } else {
            self.limit.bytes
        };
        let alone = bytes as f64 * 8.0 / self.rate as f64;
        let (together, default) = self.shares;
        (alone, alone * (together + default + self.others) as f64 / tiny.share as f64)
    }

    /// Returns the intended class of a DSCP.
    pub(crate) fn class_of(&self, dscp: u8) -> u8 {
        let tiny = self.tiny.iter().find(|tiny| tiny.dscp == dscp).map(|tiny| tiny.queue);
        match tiny.or(self.classes.get(&dscp).copied()) {
            Some(class) => class,
            // Platforms that map eight DSCPs to each class by default have others in the tiny queue's class:
            // these must leave it.
            None if self.is_tiny(self.default_class(dscp)) => self.platform.default_queue(),
            None => self.default_class(dscp),
        }
    }

    /// Returns the default class of a DSCP.
    pub(crate) fn default_class(&self, dscp: u8) -> u8 {
        self.platform.default_class(dscp)
    }

    /// Returns the limit in the platform's terms: a number and its unit.
    pub(crate) fn limit_with_unit(&self) -> (u64, &'static str) {
        if self.limit.in_packets {
            (self.limit.packets, "packets")
        } else {
            (self.limit.bytes, "bytes")
        }
    }

    /// Returns the guaranteed bits per second of the tiny queue and the default one.
    pub(crate) fn rates(&self) -> (u64, u64) {
        let (tiny, default) = self.shares;
        (self.rate * tiny / (tiny + default), self.rate * default / (tiny + default))
    }

    /// Summarizes the intent in a line.
    pub(crate) fn summary(&self) -> String {
        let limit = self.limit;
        let list = |of: fn(&Tiny) -> u8| {
            let mut all: Vec<String> = self.tiny.iter().map(|tiny| of(tiny).to_string()).collect();
            all.dedup();
            let plural = if all.len() > 1 { "s" } else { "" };
            (plural, all.join(", "))
        };
        let (s, dscps) = list(|tiny| tiny.dscp);
        let (more, queues) = list(|tiny| tiny.queue);
        let each = if more.is_empty() { "" } else { " each" };
        let role = match self.role {
            Role::Leaf => "leaf",
            Role::Spine => "spine",
        };
        let tiny = self.weights.tiny;
        let default = self.weights.default;
        format!(
            "{}, {role}: DSCP{s} {dscps} to queue{more} {queues} of {} bytes ({} packets){each}, \
             weights {tiny}:{default}",
            self.name, limit.bytes, limit.packets
        )
    }
}

fn within(field: &'static str, value: u64, low: u64, high: u64) -> Result<u64, Refusal> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(Refusal::Value { field, got: value.to_string(), expected: format!("{low} to {high}") })
}

fn parsed<T: FromStr<Err: Display>>(
    field: &'static str,
    text: Option<String>,
) -> Result<Option<T>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let expected = error.to_string();
            let expected = expected.strip_prefix("expected ").unwrap_or(&expected).to_owned();
            Err(Refusal::Value { field, got: text, expected })
        }
    }
}

fn classes(given: &BTreeMap<String, u8>) -> Result<BTreeMap<u8, u8>, Refusal> {
    let class = |(text, &class): (&String, &u8)| {
        let dscp = text.parse::<u8>().ok().filter(|&dscp| dscp < 64 && class < 8);
        let expected = || "a DSCP, 0 to 63, and its class, 0 to 7".into();
        let got = || format!("{{ {text} = {class} }}");
        let wrong = || Refusal::Value { field: "classes", got: got(), expected: expected() };
        dscp.map(|dscp| (dscp, class)).ok_or_else(wrong)
    };
    given.iter().map(class).collect()
}

fn check_classes(
    platform: Platform,
    classes: &BTreeMap<u8, u8>,
    pfc: &[u8],
) -> Result<(), Refusal> {
    if !classes.is_empty() && !platform.has_classes() {
        let what = "the classes of other DSCPs";
        let field = "classes";
        return Err(Refusal::Cannot { platform, what, field });
    }
    let is_lost = |class: &&u8| **class != 0 && !classes.values().any(|each| each == *class);
    match pfc.iter().find(is_lost) {
        // Refused and not dropped silently: the template would replace a mapping that somebody else
        // relies on.
        Some(&class) if platform.maps_all() => Err(Refusal::PfcLost { class, platform }),
        _ => Ok(()),
    }
}

/// Returns the DSCP of each class.
fn dscps(one: Option<u8>, several: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let wrong = |expected: &str| {
        let got = format!("{several:?}");
        let expected = expected.into();
        Err(Refusal::Value { field: "dscps", got, expected })
    };
    match (one, several.len()) {
        (one, 0) => Ok(vec![one.unwrap_or(dscp::DEFAULT)]),
        (Some(_), _) => wrong("it or `dscp`, and not both"),
        (None, count) if count > MAX_DSCPS => wrong("at most four"),
        (None, _) if several.iter().collect::<HashSet<_>>().len() < several.len() => {
            wrong("each once")
        }
        (None, _) => Ok(several),
    }
}

/// Returns the queue of each class. A switch with strict priority serves higher numbers first.
fn queues(first: u8, count: usize, platform: Platform) -> Vec<u8> {
    let below = (0..=first).rev().chain(core::iter::repeat(0)).take(count);
    match platform.order() {
        Order::OneQueue => vec![first; count],
        Order::Strict | Order::Weighted => below.collect(),
    }
}

fn check_dscp(value: u8, platform: Platform, classes: &BTreeMap<u8, u8>) -> Result<(), Refusal> {
    within("dscp", value.into(), 0, 63)?;
    if let Some(&class) = classes.get(&value) {
        return Err(Refusal::DscpInUse { dscp: value, class });
    }
    if value == 0 {
        return Err(Refusal::DscpOfAll);
    }
    match dscp::name(value) {
        Some(name) if platform.renames_dscps() => {
            Err(Refusal::DscpName { dscp: value, name, platform })
        }
        _ => Ok(()),
    }
}

fn check_queue(
    queue: u8,
    platform: Platform,
    classes: &BTreeMap<u8, u8>,
    pfc: &[u8],
) -> Result<(), Refusal> {
    if let Some(whose) = platform.reserves(queue) {
        return Err(Refusal::Queue { queue, whose });
    }
    within("queue", queue.into(), 1, 7)?;
    if let Some((&dscp, _)) = classes.iter().find(|(_, class)| **class == queue) {
        return Err(Refusal::QueueShared { queue, dscp });
    }
    if pfc.contains(&queue) { Err(Refusal::Pfc { queue }) } else { Ok(()) }
}

/// The largest rate in bits per second: faster than any port, and small enough to multiply.
const MAX_RATE: u64 = 10_000_000_000_000;

/// Returns the number of other classes that need a percent of their own: NX-OS names all eight queues, whose shares
/// add up to the whole link.
fn others(platform: Platform, classes: &BTreeMap<u8, u8>) -> u64 {
    if platform != Platform::Nxos {
        return 0;
    }
    classes.values().filter(|class| **class != 0).collect::<HashSet<_>>().len() as u64
}

/// The largest quantum of a class in bytes. Linux warns above this.
const MAX_QUANTUM: u64 = 200_000;

/// Returns the share of each class, and that of the default queue.
fn shares(
    weights: Weights,
    platform: Platform,
    buffer: Buffer,
    others: u64,
    count: usize,
) -> Result<(Vec<u64>, u64), Refusal> {
    let Weights { tiny, default } = weights;
    let wrong = |expected| Err(Refusal::Weights { tiny, default, platform, expected });
    let larger = tiny.max(default);
    let smaller = tiny.min(default);
    // Parts of the share: all of it where order is strict, or else each twice the next.
    let parts: Vec<u64> = match platform.order() {
        // Twice the next: a step of four would need weights beyond PicOS' 15 for three queues, and
        // leave the last of four 1/85 of the share.
        Order::Weighted => (0..count).rev().map(|power| 1 << power).collect(),
        Order::Strict | Order::OneQueue => vec![1; count],
    };
    let sum = if platform.order() == Order::Weighted { parts.iter().sum() } else { 1 };
    match platform.shares() {
        _ if smaller == 0 => wrong("1 and more; 0 would be strict priority, or nothing".into()),
        Shares::Weights(most) if larger > most => wrong(format!("1 to {most}")),
        Shares::Weights(most) => {
            if platform == Platform::Linux && u64::from(larger) * buffer.frame() > MAX_QUANTUM {
                let most = MAX_QUANTUM / buffer.frame();
                return wrong(format!("1 to {most} with frames of {} bytes", buffer.frame()));
            }
            let divisor = if sum == 1 { 1 } else { common(tiny.into(), u64::from(default) * sum) };
            let default = u64::from(default) * sum / divisor;
            let parts: Vec<u64> =
                parts.iter().map(|part| part * u64::from(tiny) / divisor).collect();
            if parts[0].max(default) > most.into() {
                return wrong(format!(
                    "1 to {most}, and {count} DSCPs need {parts:?} to {default}"
                ));
            }
            Ok((parts, default))
        }
        Shares::Percent => {
            let both = u64::from(tiny) + u64::from(default);
            let percent = (u64::from(tiny) * 100 + both / 2) / both;
            if !(count as u64..100 - others).contains(&percent) {
                return Err(Refusal::Percent { tiny, default, platform, percent });
            }
            let mut parts: Vec<u64> =
                parts.iter().map(|part| (percent * part / sum).max(1)).collect();
            // The rest from rounding goes to the first, which has most.
            parts[0] = percent - parts[1..].iter().sum::<u64>();
            Ok((parts, 100 - percent - others))
        }
    }
}

/// Returns the greatest common divisor.
fn common(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common(other, one % other) }
}

fn aeolus(
    given: Option<String>,
    platform: Platform,
    buffer: Buffer,
    limit: Limit,
) -> Result<Option<u64>, Refusal> {
    let requested: Option<RequestedLimit> = parsed("aeolus", given)?;
    let Some(requested) = requested else { return Ok(None) };
    if !platform.has_aeolus() {
        let what = "selective dropping";
        let field = "aeolus";
        return Err(Refusal::Cannot { platform, what, field });
    }
    let bytes = match requested {
        RequestedLimit::Packets(n) => n.saturating_mul(buffer.frame_in_cells()),
        RequestedLimit::Bytes(n) => n - n % buffer.cell,
        RequestedLimit::Percent(_) => {
            let got = requested.to_string();
            let expected = "packets or bytes".into();
            return Err(Refusal::Value { field: "aeolus", got, expected });
        }
    };
    let step = match platform.step() {
        Step::Bytes(step) => step,
        Step::Permille => 1,
    };
    let bytes = bytes - bytes % step;
    let least = buffer.frame_in_cells();
    if (least..limit.bytes).contains(&bytes) {
        return Ok(Some(bytes));
    }
    Err(Refusal::Aeolus { got: requested.to_string(), bytes, least, limit: limit.bytes })
}

/// Checks the parameters of trimmed packets.
fn check_trim(trim: &Trim, platform: Platform, dscps: &[u8], queues: &[u8]) -> Result<(), Refusal> {
    let Some((least, most)) = platform.trims() else {
        let what = "packet trimming";
        let field = "trim";
        return Err(Refusal::Cannot { platform, what, field });
    };
    let bytes = within("trim.bytes", trim.bytes.into(), least, most)?;
    let refuse = |field, got: u64, expected: &str| {
        Err(Refusal::Value { field, got: got.to_string(), expected: expected.into() })
    };
    if bytes % 4 != 0 {
        return refuse("trim.bytes", bytes, "a multiple of 4");
    }
    if dscps.contains(&trim.dscp) {
        return refuse("trim.dscp", trim.dscp.into(), "one that whole packets do not use");
    }
    if queues.contains(&trim.queue) {
        return refuse("trim.queue", trim.queue.into(), "one that whole packets do not use");
    }
    Ok(())
}

fn check_senders(
    from: &[String],
    decapsulate: Option<Ipv4Addr>,
    platform: Platform,
) -> Result<(), Refusal> {
    let field = "decapsulate_from";
    if !from.is_empty() && platform != Platform::Linux {
        let what = "decapsulating IP-in-IP packets of only some senders";
        return Err(Refusal::Cannot { platform, what, field });
    }
    if !from.is_empty() && decapsulate.is_none() {
        return Err(Refusal::Missing("decapsulate"));
    }
    let is_prefix = |prefix: &&String| {
        let parts = prefix.split_once('/').map(|(ip, len)| (ip.parse(), len.parse()));
        let Some((Ok::<Ipv4Addr, _>(ip), Ok::<u32, _>(len))) = parts else { return false };
        len <= 32 && ip.to_bits().trailing_zeros() >= 32 - len
    };
    match from.iter().find(|prefix| !is_prefix(prefix)) {
        None => Ok(()),
        Some(prefix) => {
            let expected =
                "IPv4 prefixes without bits beyond their length, such as 10.1.0.0/16".into();
            Err(Refusal::Value { field, got: prefix.clone(), expected })
        }
    }
}

fn check_routes(routes: &[Route], ports: &[String]) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for Route { to, port, .. } in routes {
        let address = to.strip_suffix("/32").and_then(|address| address.parse::<Ipv4Addr>().ok());
        if address.is_none() {
            return Err(Refusal::RouteTo { to: to.clone() });
        }
        if !ports.contains(port) {
            return Err(Refusal::RoutePort { to: to.clone(), port: port.clone() });
        }
        if !seen.insert(to) {
            return Err(Refusal::RouteTwice { to: to.clone() });
        }
    }
    Ok(())
}
