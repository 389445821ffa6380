//! Why parameters or files are refused.

use super::platform::Platform;
use std::io;
use std::path::PathBuf;

/// Why nothing was rendered or checked. The user is to blame, except for files that cannot be read or
/// written. Each text names the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {reason}", path.display())]
    Toml { path: PathBuf, reason: String },
    #[error(
        "{} exists and is not what would be rendered: it was edited, or belongs to other parameters; give \
         another directory, or --force to replace all such files there",
        path.display()
    )]
    Edited { path: PathBuf },
    #[error("{got}: expected a platform that `cbrst-switch platforms` lists")]
    Platform { got: String },
    #[error(
        "chip = {got}: expected one of {known}; or omit it, and give `buffer`, `mmus` and `cell`"
    )]
    Chip { got: String, known: String },
    #[error("{0} is not given: write it into the parameters, or give it as a flag")]
    Missing(&'static str),
    #[error("{field} = {got}: expected {expected}")]
    Value { field: &'static str, got: String, expected: String },
    #[error(
        "limit = {requested} is {bytes} bytes after rounding down to whole {unit}, but a packet of MTU \
         {mtu} takes {least}: the queue would drop everything; give at least {least} bytes"
    )]
    BelowMtu { requested: String, bytes: u64, unit: String, mtu: u64, least: u64 },
    #[error(
        "limit = {requested}: SONiC takes a static threshold of 0 as no limit at all; give at least one \
         packet"
    )]
    SonicZero { requested: String },
    #[error(
        "limit = {0} is a share of the switch's buffer, whose size is not given: add `buffer`, such \
         as buffer = \"4M\", or `chip`"
    )]
    NoBuffer(String),
    #[error(
        "cumulus4 takes limits as shares of the buffer: add its size as `buffer`, such as \
         buffer = \"4M\", or `chip`"
    )]
    BufferOfCumulus4,
    #[error("limit = {requested} is {bytes} bytes, more than the whole buffer of {buffer}")]
    AboveBuffer { requested: String, bytes: u64, buffer: u64 },
    #[error(
        "limit = {requested} is {bytes} bytes, which is no tiny queue: give at most {most} bytes, or a few packets"
    )]
    NotTiny { requested: String, bytes: u64, most: u64 },
    #[error(
        "dscp = {dscp} is in use already: `classes` puts it into traffic class {class}; choose one \
         that no other traffic uses"
    )]
    DscpInUse { dscp: u8, class: u8 },
    #[error("dscp = 0 is the DSCP of all unmarked packets: choose another, such as 43")]
    DscpOfAll,
    #[error(
        "dscp = {dscp} has a name, {name}, and {platform} prints the name: the configuration would \
         never compare equal, and other traffic may use it; choose one without a name, such as 43"
    )]
    DscpName { dscp: u8, name: &'static str, platform: Platform },
    #[error(
        "queue = {queue} is {whose}: choose another, 1 to 7; several DSCPs also use the queues below `queue`"
    )]
    Queue { queue: u8, whose: &'static str },
    #[error(
        "queue = {queue}, but `classes` puts DSCP {dscp} there too: the tiny queue must have no \
         other traffic; move that class or choose another queue"
    )]
    QueueShared { queue: u8, dscp: u8 },
    #[error(
        "queue = {queue} has PFC: a paused sender cannot burst, and a lossless queue cannot be tiny; \
         remove {queue} from PFC on the switch and from `pfc` here, or choose another queue"
    )]
    Pfc { queue: u8 },
    #[error(
        "class {class} has PFC, but no entry of `classes` is {class}: {platform} is given the class of \
         all 64 DSCPs, and that traffic would fall into class 0, which drops; add its DSCPs to \
         `classes`"
    )]
    PfcLost { class: u8, platform: Platform },
    #[error(
        "weights = {tiny}:{default}: {platform} takes {expected}; keep the ratio with smaller numbers"
    )]
    Weights { tiny: u32, default: u32, platform: Platform, expected: String },
    #[error(
        "weights = {tiny}:{default}: {platform} takes whole percent, and this is {percent} %; give \
         each queue at least 1 %"
    )]
    Percent { tiny: u32, default: u32, platform: Platform, percent: u64 },
    #[error("port {port} is listed twice: name it once")]
    PortTwice { port: String },
    #[error("port {got}: expected a name, or a range such as swp[1-32] or Ethernet[0-124/4]")]
    Port { got: String },
    #[error("there are no ports: list at least one, such as ports = [\"swp[1-32]\"]")]
    NoPorts,
    #[error(
        "seed = {seed}: {platform} takes 1 to {largest}; 0 may mean that each boot draws another"
    )]
    Seed { seed: u32, platform: Platform, largest: u32 },
    #[error("route to {to}: port {port} is not among `ports`")]
    RoutePort { to: String, port: String },
    #[error("route to {to} is listed twice: a path has one next hop")]
    RouteTwice { to: String },
    #[error("route to {to}: expected an IPv4 prefix of 32 bits, such as 10.101.2.5/32")]
    RouteTo { to: String },
    #[error(
        "{platform} has no template for {what}: omit {field} here, and set it up by hand or on \
         another switch"
    )]
    Cannot { platform: Platform, what: &'static str, field: &'static str },
    #[error(
        "aeolus = {got} is {bytes} bytes: expected at least a packet, {least} bytes, and less than \
         the queue's limit, {limit}"
    )]
    Aeolus { got: String, bytes: u64, least: u64, limit: u64 },
    #[error("the template {name} is broken: {reason}; this is a bug")]
    Template { name: &'static str, reason: String },
    #[error(
        "none of the files is a configuration: verify.* and rollback.* are for operators; give the others"
    )]
    NothingToCheck,
}
