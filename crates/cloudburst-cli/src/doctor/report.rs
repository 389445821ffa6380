//! The report, as text and as JSON.

use super::measured::{Buffers, Measured, Path, Port, routers};
use super::problems::{self, Problem};
use core::fmt;
use serde::Serialize;

/// A report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) measured: Measured,
    /// Findings that are not problems in themselves.
    pub(super) notes: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// Returns the JSON of an examination that failed; `peer` is `None` if the command line names none.
pub(crate) fn no_report(peer: Option<&str>, error: &str) -> String {
    format!("{}\n", serde_json::json!({ "peer": peer, "error": error }))
}

impl Report {
    pub(super) fn new(measured: Measured) -> Self {
        let notes = measured.addresses.notes();
        let problems = problems::of(&measured);
        Self { measured, notes, problems }
    }

    /// Formats one object, on one line.
    pub(super) fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            // Unreachable: JSON can express all its values.
            Err(error) => no_report(Some(&self.measured.peer.to_string()), &error.to_string()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { peer, local, here, there, ports, paths, sizes, .. } = &self.measured;
        writeln!(f, "from {local} to {peer}, by {} source ports, DSCP {}", ports.len(), here.dscp)?;
        writeln!(f, "\n port  lost there   lost back  round trip  DSCP there and back  routers")?;
        for port in ports {
            write_port(f, port, here.dscp == there.dscp)?;
        }
        writeln!(f)?;
        match paths {
            None => writeln!(f, "paths    not known: no router answers probes whose TTL expires")?,
            Some(paths) => {
                writeln!(f, "paths    at least {}, by the routers that answer", paths.len())?;
                for Path { hops, ports } in paths {
                    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                    writeln!(f, "         {}: ports {}", routers(hops), ports.join(" "))?;
                }
            }
        }
        let carries = match sizes.path_mtu {
            Some(mtu) => format!("the path there has an MTU of {mtu}"),
            None => "the MTU of the path is not known".into(),
        };
        writeln!(f, "packets  have up to {} bytes; {carries}", sizes.mtu)?;
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

/// Writes the line of a port. `same_dscps`: both ends have the same DSCP, so that a change on the way shows.
fn write_port(f: &mut fmt::Formatter<'_>, port: &Port, same_dscps: bool) -> fmt::Result {
    write!(f, "{:>5}  ", port.port)?;
    match &port.found {
        None => write!(f, "{:<57}", "no answer")?,
        Some(found) => {
            let there = format!("{} of {}", found.lost_there, found.sent);
            let back = format!("{} of {}", found.lost_back, found.answers);
            let time = found.round_trip_seconds.map(|time| format!("{:.2} ms", time * 1e3));
            let mark = |rewritten: bool| match (same_dscps, rewritten) {
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
