//! `cbrst-sim trace`: every packet of a few flows, as text or as a pcapng file.

use super::names::unknown;
use super::topology;
use crate::engine::{Time, US};
use crate::experiment::Failure;
use crate::fabric::{Link, Shape};
use crate::scheme::{SCHEMES, Scheme};
use crate::trace::{Capture, Tap, Text, Written};
use crate::workload::List;
use crate::{NewFlow, Simulation};
use clap::Args;
use cloudburst_core::config::Config;
use cloudburst_program::print_line;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// SOURCE:DESTINATION:BYTES[@START], such as 0:143:87600@10us; hosts are numbered from 0
    #[arg(value_name = "FLOW", required = true, value_parser = flow)]
    flows: Vec<(Time, NewFlow)>,

    /// switch:HOSTS, leaf-spine:HOSTSxLEAVESxSPINES, fat-tree:PORTS[xOVERSUBSCRIPTION] or
    /// vl2:HOSTSxD0xD1xD2, where HOSTS is the number of hosts per leaf (or at the switch)
    #[arg(long, value_name = "TOPOLOGY", default_value = "leaf-spine:16x9x4",
        value_parser = topology::shape)]
    topology: Shape,

    /// Links between hosts and leaves; the delay includes the switching delay
    #[arg(long, value_name = "RATE,DELAY", default_value = "10G,2us", value_parser = topology::link)]
    edge: Link,

    /// Links between switches
    #[arg(long, value_name = "RATE,DELAY", default_value = "40G,2us", value_parser = topology::link)]
    core: Link,

    /// Queue limit of switch ports in packets [default: Cloudburst 27, TCP 250, pFabric 34, ExpressPass 100]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: Option<u32>,

    /// Transport: burst (a model of Cloudburst), cloudburst, cloudburst-paper, cloudburst-pull (SCDP),
    /// cloudburst-trim (SCDP with switches that trim), tcp, dctcp, mptcp, pfabric or expresspass
    #[arg(long, value_name = "NAME", default_value = "burst")]
    transport: String,

    /// Write a pcapng capture to FILE instead of printing text. Only packets of the transports whose
    /// names begin with cloudburst have contents to capture
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,

    /// Simulated time at which to stop, even if flows are unfinished
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = topology::time)]
    until: Time,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn flow(text: &str) -> Result<(Time, NewFlow), String> {
    let expected =
        || "expected SOURCE:DESTINATION:BYTES[@START], such as 0:143:87600@10us".to_owned();
    let (what, at) = text.split_once('@').unwrap_or((text, "0s"));
    let at = topology::time(at)?;
    let parts: Vec<&str> = what.split(':').collect();
    let [source, destination, bytes] = parts[..] else { return Err(expected()) };
    let host = |text: &str| text.parse::<u16>().map_err(|_| expected());
    let source = host(source)?;
    let destination = host(destination)?;
    let bytes = bytes.parse::<u64>().map_err(|_| expected())?;
    // Cloudburst's limit applies to all transports, so that they can be compared.
    let most = Config::default().max_message as u64;
    if bytes > most {
        return Err(format!("flow size: got {bytes} bytes, expected at most {most}"));
    }
    if source == destination {
        return Err("source and destination are the same host".to_owned());
    }
    Ok((at, NewFlow { source, destination, transport: 0, bytes, tag: 0 }))
}

/// Runs `trace`.
pub(super) fn trace(arguments: &Arguments) -> Result<(), Failure> {
    let Some(scheme) = Scheme::find(&arguments.transport) else {
        let names: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        return Err(Failure::Usage(unknown("transport", &arguments.transport, &names)));
    };
    let packets = arguments.queue.map(|packets| packets as usize);
    let fabric = scheme
        .fabric(arguments.topology, arguments.edge, arguments.core, packets)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let hosts = arguments.topology.hosts();
    for (_, flow) in &arguments.flows {
        let host = flow.source.max(flow.destination);
        if usize::from(host) >= hosts {
            let most = hosts - 1;
            let reason = format!("host {host} does not exist: the topology has hosts 0 to {most}");
            return Err(Failure::Usage(reason));
        }
    }
    if arguments.pcapng.is_some() && !scheme.name.starts_with("cloudburst") {
        let name = scheme.name;
        let reason =
            format!("packets of {name} have no contents to capture: use --transport cloudburst");
        return Err(Failure::Usage(reason));
    }
    let transport = (scheme.transport)(&arguments.topology, arguments.edge)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let tap: Box<dyn Tap> = match &arguments.pcapng {
        None => Box::new(Text::new(io::stdout(), &fabric)),
        Some(path) => {
            let file = File::create(path).map_err(Failure::file("create", path))?;
            Box::new(Capture::new(file, &fabric))
        }
    };
    let workload = Box::new(List::new(arguments.flows.clone()));
    let mut simulation = Simulation::new(fabric, vec![transport], workload, arguments.seed);
    simulation.network_mut().set_tap(Some(tap));

    simulation.run(arguments.until);
    let tap = simulation.network_mut().set_tap(None);
    let written =
        match (tap.map_or(Ok(Written::default()), |mut tap| tap.finish()), &arguments.pcapng) {
            (Ok(written), _) => written,
            (Err(error), Some(path)) => return Err(Failure::file("write", path)(error)),
            // A closed pipe is not an error.
            (Err(error), None) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            (Err(error), None) => return Err(Failure::Output(error)),
        };
    let mut text = String::new();
    for (number, flow) in simulation.network().flows().as_slice().iter().enumerate() {
        let time = |time: Option<Time>| {
            time.map_or("never".to_owned(), |at| format!("at {}", microseconds(at)))
        };
        let delivered = time(flow.delivered);
        let acknowledged = time(flow.acknowledged);
        text += &format!(
            "# flow {number}: {} bytes from host {} to host {}, started at {}, delivered {delivered}, \
             acknowledged {acknowledged}\n",
            flow.spec.bytes,
            flow.spec.source,
            flow.spec.destination,
            microseconds(flow.begun),
        );
    }
    let events = simulation.network().events();
    let hash = simulation.network().hash();
    text += &format!("# {events} events, trace hash {hash:016x}\n");
    if let Some(path) = &arguments.pcapng {
        let Written { packets, left_out } = written;
        text += &format!(
            "# {packets} frames written to {}; {left_out} skipped because their packets have no contents\n",
            path.display()
        );
    }
    print_line(text.trim_end()).map_err(Failure::Output)?;
    match simulation.network().refusal() {
        Some(refusal) => Err(Failure::Usage(refusal.to_string())),
        None => Ok(()),
    }
}

/// Formats a time in microseconds with six decimals, which is exact to the picosecond.
fn microseconds(time: Time) -> String {
    format!("{}.{:06} us", time / US, time % US)
}
