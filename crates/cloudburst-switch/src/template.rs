//! The templates and their variables.

use super::error::Refusal;
use super::intent::{Intent, Tiny};
use super::params::{Role, Route, Trim, Weights};
use super::platform::Platform;
use super::size::Limit;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A template: the name of the file that is rendered from it, and its text.
pub(crate) struct Template {
    pub(crate) file: &'static str,
    text: &'static str,
}

macro_rules! templates {
    ($platform:literal: $($file:literal),*) => {
        &[$(Template {
            file: $file,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/switch-configs/", $platform, "/", $file, ".j2"
            )),
        }),*]
    };
}

/// Returns all templates of a platform.
pub(crate) const fn all(platform: Platform) -> &'static [Template] {
    match platform {
        Platform::Picos => templates!("picos":
            "qos.cli", "ecmp.cli", "paths.cli", "verify.txt", "rollback.cli"),
        Platform::Sonic => templates!("sonic":
            "qos.json", "qos.patch.json", "ecmp.json", "paths.json", "aeolus.json", "trim.json",
            "verify.txt", "rollback.txt", "rollback.patch.json"),
        Platform::Cumulus4 => templates!("cumulus4":
            "qos.traffic.conf", "qos.datapath.conf", "ecmp.traffic.conf", "paths.frr", "verify.txt",
            "rollback.txt"),
        Platform::Cumulus5 => templates!("cumulus5":
            "qos.nv", "ecmp.nv", "paths.nv", "aeolus.nv", "trim.nv", "verify.txt", "rollback.nv"),
        Platform::Os10 => templates!("os10":
            "qos.cfg", "ecmp.cfg", "paths.cfg", "aeolus.cfg", "verify.txt", "rollback.cfg"),
        Platform::Eos => templates!("eos":
            "qos.cfg", "ecmp.cfg", "paths.cfg", "aeolus.cfg", "verify.txt", "rollback.cfg"),
        Platform::Nxos => templates!("nxos":
            "qos.cfg", "ecmp.cfg", "paths.cfg", "aeolus.cfg", "verify.txt", "rollback.cfg"),
        Platform::IosXe => templates!("iosxe":
            "qos.cfg", "qos.native.json", "ecmp.cfg", "paths.cfg", "aeolus.cfg", "verify.txt",
            "rollback.cfg"),
        Platform::OpenConfig => templates!("openconfig":
            "qos.json", "ecmp.txt", "paths.json", "aeolus.json", "verify.txt", "rollback.txt"),
        Platform::Linux => templates!("linux":
            "qos.sh", "ecmp.sh", "paths.sh", "aeolus.sh", "verify.txt", "rollback.sh"),
    }
}

/// Renders all files for a switch. Returns their names and contents.
///
/// # Errors
///
/// If a template is broken, which is a bug.
pub(crate) fn render(intent: &Intent) -> Result<Vec<(&'static str, String)>, Refusal> {
    let filling = Filling::of(intent);
    let is_wanted = |template: &&Template| match template.file.split('.').next() {
        Some("paths") => !intent.routes.is_empty() || intent.decapsulate.is_some(),
        Some("aeolus") => intent.aeolus.is_some(),
        Some("trim") => intent.trim.is_some(),
        _ => true,
    };
    let fill = |template: &Template| {
        let rendered = fill(template, &filling);
        let reason = |error: minijinja::Error| format!("{error:#}");
        let name = template.file;
        let broken = |error| Refusal::Template { name, reason: reason(error) };
        Ok((name, rendered.map_err(broken)?))
    };
    all(intent.platform).iter().filter(is_wanted).map(fill).collect()
}

fn fill(template: &Template, filling: &Filling<'_>) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    // A mistyped name in a template must not become an empty word in a configuration.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    // Nothing here is HTML, and JSON is written as it is.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_template("template", template.text)?;
    environment.get_template("template")?.render(Serde(filling))
}

/// The variables of the templates. Sizes are in bytes, rates in bits per second.
#[derive(Serialize)]
struct Filling<'a> {
    summary: String,
    platform: &'static str,
    name: &'a str,
    role: Role,
    ports: &'a [String],
    port_kinds: Vec<Kind<'a>>,
    /// Cloudburst's classes, the most urgent first.
    tiny: Vec<TinyFilling>,
    /// Those of the first class.
    dscp: u8,
    queue: u8,
    default_queue: u8,
    limit: LimitFilling,
    cap: Cap,
    /// The buffer of one MMU.
    buffer: u64,
    /// The number of MMUs.
    mmus: u64,
    mtu: u64,
    frame: u64,
    frame_in_cells: u64,
    cell: u64,
    rate: u64,
    rates: Pair,
    burst: u64,
    quanta: Pair,
    weights: Weights,
    /// The weights in the platform's form: weights or percent.
    shares: Pair,
    seed: u32,
    seed_hex: String,
    /// Every DSCP and its class.
    dscps: Vec<Mapped>,
    /// The classes of DSCPs in use, except class 0.
    classes: Vec<Class>,
    /// DSCPs whose class is not the platform's default.
    moved: Vec<Mapped>,
    /// Those of `moved` that are not in `classes`, which a rollback may take back.
    freed: Vec<u8>,
    /// The DSCPs of `moved`, by class.
    moved_classes: Vec<Class>,
    aeolus: Option<Aeolus>,
    trim: Option<Trim>,
    routes: Vec<RouteFilling<'a>>,
    decapsulate: Option<Ipv4Addr>,
    /// Prefixes; empty for any sender.
    decapsulate_from: &'a [String],
}

#[derive(Serialize)]
struct TinyFilling {
    dscp: u8,
    /// The DSCP as the upper six bits of the TOS byte, in hexadecimal.
    tos: String,
    queue: u8,
    share: u64,
    /// The suffix of names: nothing for the first class, then `-2`, `-3`, ...
    suffix: String,
}

#[derive(Serialize)]
struct LimitFilling {
    #[serde(flatten)]
    limit: Limit,
    /// Percent of the buffer, with one decimal.
    percent: String,
}

/// The limit in the platform's terms.
#[derive(Serialize)]
struct Cap {
    value: u64,
    unit: &'static str,
}

#[derive(Serialize)]
struct Pair {
    tiny: u64,
    default: u64,
}

#[derive(Serialize)]
struct Mapped {
    dscp: u8,
    class: u8,
}

#[derive(Serialize)]
struct Class {
    class: u8,
    dscps: Vec<u8>,
}

/// Ports of one kind: `GigabitEthernet` and `1`, `2`, ...
#[derive(Serialize)]
struct Kind<'a> {
    kind: &'a str,
    numbers: Vec<&'a str>,
}

#[derive(Serialize)]
struct Aeolus {
    bytes: u64,
    kilobytes: u64,
    /// The burst of RED in packets, at least the minimum that RED requires.
    burst: u64,
}

#[derive(Serialize)]
struct RouteFilling<'a> {
    #[serde(flatten)]
    route: &'a Route,
    address: &'a str,
}

impl<'a> Filling<'a> {
    fn of(intent: &'a Intent) -> Self {
        let buffer = intent.buffer;
        let limit = intent.limit;
        let weights = intent.weights;
        let frame = buffer.frame();
        let (tiny, default) = intent.shares;
        let (rate_tiny, rate_default) = intent.rates();
        let class = |dscp| Mapped { dscp, class: intent.class_of(dscp) };
        let is_moved = |each: &Mapped| {
            each.class != intent.default_class(each.dscp) || intent.is_tiny(each.class)
        };
        let moved = || (0..64).map(class).filter(is_moved);
        let in_use = by_class(intent.classes.iter().map(|(&dscp, &class)| Mapped { dscp, class }));
        let moved_classes = by_class(moved());
        let (value, unit) = intent.limit_with_unit();
        Self {
            summary: intent.summary(),
            platform: intent.platform.name(),
            name: &intent.name,
            role: intent.role,
            ports: &intent.ports,
            port_kinds: kinds(&intent.ports),
            tiny: intent
                .tiny
                .iter()
                .zip(1..)
                .map(|(tiny, rank)| TinyFilling::of(tiny, rank))
                .collect(),
            dscp: intent.dscp,
            queue: intent.queue,
            default_queue: intent.platform.default_queue(),
            limit: LimitFilling {
                limit,
                percent: format!("{}.{}", limit.permille / 10, limit.permille % 10),
            },
            cap: Cap { value, unit },
            buffer: buffer.memory().unwrap_or(0),
            mmus: buffer.mmus,
            mtu: buffer.mtu,
            frame,
            frame_in_cells: buffer.frame_in_cells(),
            cell: buffer.cell,
            rate: intent.rate,
            rates: Pair { tiny: rate_tiny, default: rate_default },
            // Makes up for a timer that is late by 100 us.
            burst: 2 * frame + intent.rate / 8 / 10_000,
            quanta: Pair {
                tiny: u64::from(weights.tiny) * frame,
                default: u64::from(weights.default) * frame,
            },
            weights,
            shares: Pair { tiny, default },
            seed: intent.seed.unwrap_or(0),
            seed_hex: format!("{:08X}", intent.seed.unwrap_or(0)),
            dscps: (0..64).map(class).collect(),
            classes: in_use.into_iter().filter(|class| class.class != 0).collect(),
            moved: moved().collect(),
            freed: (moved().map(|each| each.dscp))
                .filter(|dscp| !intent.classes.contains_key(dscp))
                .collect(),
            moved_classes,
            aeolus: intent.aeolus.map(|bytes| Aeolus {
                bytes,
                kilobytes: bytes / 1024,
                burst: bytes.div_ceil(frame) + 1,
            }),
            trim: intent.trim,
            routes: (intent.routes.iter())
                .map(|route| RouteFilling { route, address: route.to.trim_end_matches("/32") })
                .collect(),
            decapsulate: intent.decapsulate,
            decapsulate_from: &intent.decapsulate_from,
        }
    }
}

impl TinyFilling {
    fn of(tiny: &Tiny, rank: u8) -> Self {
        let &Tiny { dscp, queue, share } = tiny;
        let suffix = if rank > 1 { format!("-{rank}") } else { String::new() };
        Self { dscp, tos: format!("{:#04x}", dscp << 2), queue, share, suffix }
    }
}

fn by_class(all: impl Iterator<Item = Mapped>) -> Vec<Class> {
    let mut classes: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for Mapped { dscp, class } in all {
        classes.entry(class).or_default().push(dscp);
    }
    classes.into_iter().map(|(class, dscps)| Class { class, dscps }).collect()
}

fn kinds(ports: &[String]) -> Vec<Kind<'_>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for port in ports {
        let at = port.find(|c: char| c.is_ascii_digit()).unwrap_or(port.len());
        let (kind, number) = port.split_at(at);
        match kinds.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.numbers.push(number),
            None => kinds.push(Kind { kind, numbers: vec![number] }),
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_template_is_part_of_the_program() {
        for platform in Platform::ALL {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("switch-configs");
            let files = std::fs::read_dir(root.join(platform.name())).unwrap();
            let files: BTreeSet<_> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            let known = all(platform).iter().map(|template| format!("{}.j2", template.file));
            assert_eq!(files, known.collect(), "{platform}");
        }
    }
}
