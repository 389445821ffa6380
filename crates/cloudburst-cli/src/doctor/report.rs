//! The report, as text and as JSON.

use super::addresses::Addresses;
use super::exam::Findings;
use super::problems;
use super::trace::{Way, distinct};
use core::fmt;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};

/// All findings of an examination.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) peer: SocketAddr,
    pub(super) local: IpAddr,
    pub(super) addresses: Addresses,
    pub(super) here: End,
    pub(super) there: End,
    /// Whether the receiver's answer reached an endpoint with all these source ports.
    pub(super) all_ports_answered: bool,
    #[serde(flatten)]
    pub(super) sizes: Sizes,
    pub(super) ports: Vec<Port>,
    /// Distinct paths of the ports that work; `None` if no router answers.
    pub(super) paths: Option<Vec<Path>>,
    /// Findings that are not problems in themselves.
    pub(super) notes: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// One end.
#[derive(Debug, Serialize)]
pub(super) struct End {
    pub(super) dscp: u8,
    /// The first other DSCP that was received.
    pub(super) first_foreign_dscp: Option<u8>,
    pub(super) buffers: Buffers,
    /// Whether the system segments batches, as far as was tried.
    pub(super) gso: bool,
    /// Whether received datagrams were coalesced; `None`: not known.
    pub(super) gro: Option<bool>,
    pub(super) kernel_drops: u64,
}

/// The sizes of packets, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    /// The longest packets that were sent.
    pub(super) mtu: usize,
    /// The longest that the path to the receiver carries, as far as this system knows.
    pub(super) path_mtu: Option<usize>,
    /// Whether any packets of `mtu` bytes arrived that were sent one at a time. Routers may fragment others.
    pub(super) full_packets_arrive: bool,
    /// Whether a message of many packets arrived.
    pub(super) burst_arrived: bool,
}

/// The sizes of each socket's buffers, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Buffers {
    pub(super) wanted: u64,
    pub(super) receive: u64,
    pub(super) send: u64,
}

/// One source port.
#[derive(Debug, Serialize)]
pub(super) struct Port {
    pub(super) port: u16,
    /// Routers on the way there, in order; null where none answered.
    pub(super) hops: Vec<Option<IpAddr>>,
    /// `None`: no answer, or no longer any.
    pub(super) found: Option<Findings>,
}

/// A path, and the ports that take it.
#[derive(Debug, Serialize)]
pub(super) struct Path {
    pub(super) hops: Vec<Option<IpAddr>>,
    pub(super) ports: Vec<u16>,
}

/// A problem and its remedy.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    pub(super) what: String,
    pub(super) remedy: String,
}

/// Returns the JSON of an examination that failed; `peer` is `None` if the command line names none.
pub(crate) fn no_report(peer: Option<&str>, error: &str) -> String {
    format!("{}\n", serde_json::json!({ "peer": peer, "error": error }))
}

impl Report {
    pub(super) fn new(
        addresses: Addresses,
        here: End,
        there: End,
        ways: &[Way],
        ports: Vec<Port>,
        all_ports_answered: bool,
        sizes: Sizes,
    ) -> Self {
        let works =
            |way: &&Way| ports.iter().any(|port| port.port == way.port && port.found.is_some());
        let working: Vec<Way> = ways.iter().filter(works).cloned().collect();
        let told = ways.iter().any(|way| way.hops.iter().any(Option::is_some));
        let path = |(way, ports): (Way, Vec<u16>)| Path { hops: way.hops, ports };
        let paths = told.then(|| distinct(&working).into_iter().map(path).collect());
        let mut report = Self {
            peer: addresses.peer,
            local: addresses.local.ip(),
            notes: addresses.notes(),
            addresses,
            here,
            there,
            all_ports_answered,
            sizes,
            ports,
            paths,
            problems: Vec::new(),
        };
        report.problems = problems::of(&report);
        report
    }

    /// Formats one object, on one line.
    pub(super) fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            // Unreachable: JSON can express all its values.
            Err(error) => no_report(Some(&self.peer.to_string()), &error.to_string()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, local, here, there, ports, .. } = self;
        writeln!(f, "from {local} to {peer}, by {} source ports, DSCP {}", ports.len(), here.dscp)?;
        writeln!(f, "\n port  lost there   lost back  round trip  DSCP there and back  routers")?;
        for port in ports {
            self.line_of(port, f)?;
        }
        writeln!(f)?;
        match &self.paths {
            None => writeln!(f, "paths    not known: no router answers probes whose TTL expires")?,
            Some(paths) => {
                writeln!(f, "paths    at least {}, by the routers that answer", paths.len())?;
                for Path { hops, ports } in paths {
                    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                    writeln!(f, "         {}: ports {}", routers(hops), ports.join(" "))?;
                }
            }
        }
        let carries = match self.sizes.path_mtu {
            Some(mtu) => format!("the path there has an MTU of {mtu}"),
            None => "the MTU of the path is not known".into(),
        };
        writeln!(f, "packets  have up to {} bytes; {carries}", self.sizes.mtu)?;
        for (name, end) in [("here", here), ("there", there)] {
            let Buffers { wanted, receive, send } = end.buffers;
            writeln!(
                f,
                "{name:<8} buffers: {receive} bytes to receive, {send} to send, of {wanted} requested"
            )?;
            let gso = if end.gso { "works" } else { "does not work" };
            let gro = match end.gro {
                Some(true) => "; GRO coalesces datagrams",
                Some(false) => "; GRO coalesced no datagrams of a burst",
                None => "",
            };
            let drops = end.kernel_drops;
            writeln!(f, "         GSO {gso}{gro}; {drops} datagrams dropped: buffers were full")?;
        }
        for note in &self.notes {
            writeln!(f, "note     {note}")?;
        }
        if self.problems.is_empty() {
            return writeln!(f, "\nnothing is wrong");
        }
        writeln!(f)?;
        for (number, Problem { what, remedy }) in (1..).zip(&self.problems) {
            writeln!(f, "{number}. {what}\n   -> {remedy}")?;
        }
        Ok(())
    }
}

impl Report {
    fn line_of(&self, port: &Port, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5}  ", port.port)?;
        match &port.found {
            None => write!(f, "{:<57}", "no answer")?,
            Some(found) => {
                let there = format!("{} of {}", found.lost_there, found.sent);
                let back = format!("{} of {}", found.lost_back, found.answers);
                let time = found.round_trip_seconds.map(|time| format!("{:.2} ms", time * 1e3));
                let same = self.here.dscp == self.there.dscp;
                let mark = |rewritten: bool| match (same, rewritten) {
                    (false, _) => "?",
                    (true, true) => "changed",
                    (true, false) => "kept",
                };
                let there_dscp = mark(found.is_rewritten_there());
                let back_dscp = mark(found.is_rewritten_back());
                let time = time.unwrap_or_default();
                write!(f, "{there:>10}  {back:>10}  {time:>10}  {there_dscp:<10} {back_dscp:<10}")?;
            }
        }
        writeln!(f, "{}", routers(&port.hops))
    }
}

/// Lists routers in order, with a star for each that is silent.
pub(super) fn routers(hops: &[Option<IpAddr>]) -> String {
    if hops.is_empty() {
        return "no router".into();
    }
    let names = hops.iter().map(|hop| hop.map_or("*".into(), |hop| hop.to_string()));
    names.collect::<Vec<String>>().join(" ")
}
