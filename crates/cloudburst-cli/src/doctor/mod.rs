//! `cbrst-doctor`: examines the network between this host and a `cbrst-recv`.
//!
//! 1. TTL-limited probes from each source port find the routers that its packets pass ([`trace`]).
//! 2. An endpoint with one source port asks the receiver for its state, and to answer once to another
//!    port: whether it answers, which addresses it sees, and whether unsolicited packets arrive ([`addresses`]).
//!    These packets are short, so that they arrive where full ones do not.
//! 3. One endpoint with all source ports asks, too, and sends one burst: the sizes of buffers, and whether
//!    batches are segmented and coalesced.
//! 4. For each of the same source ports, an endpoint asks with one packet at a time: the loss each way, the
//!    round trip, and the DSCP with which packets arrive ([`exam`]). Its packets take one path there and one
//!    path back, so the findings are those of these paths. Its packets have all bytes of the MTU, so by then the
//!    system has learned that of the path, if routers report it.
//! 5. [`report`] prints the findings, the problems and their remedies; [`mesh`] prints one line for each of
//!    several receivers.

mod addresses;
mod error;
mod exam;
mod measured;
mod mesh;
mod problems;
mod report;
mod trace;

use self::addresses::Addresses;
use self::error::ExamError;
use self::exam::{Examiner, Findings};
use self::measured::{Buffers, End, Measured, Path, Port, Sizes};
use self::mesh::Mesh;
use self::report::Report;
pub(crate) use self::report::no_report;
use crate::Exit;
use crate::plan::{DoctorPlan, Target};
use crate::protocol::{MAX_CHUNK, Vitals};
use crate::sender::Failure;
use crate::sender::address::{self, Probe};
use crate::signals;
use crate::ui::{self, JsonTo};
use cloudburst_program::complain;
use core::time::Duration;
use std::net::SocketAddr;

/// Bytes of padding in the request that is a burst.
const BURST: usize = 60_000;
const _: () = assert!(BURST < MAX_CHUNK);

/// Runs the examinations of the plan.
pub(crate) fn run(plan: &DoctorPlan) -> Exit {
    if let Err(error) = signals::exit_at_once() {
        complain(&format!("cbrst-doctor: cannot wait for signals: {error}"));
        return Exit::Failed;
    }
    match &plan.target {
        Target::One(host) => examine_one(plan, host),
        // One row of the matrix: a receiver that sent probes to addresses that a peer names could
        // be aimed at others.
        Target::Mesh(hosts) => {
            let examine = |host: &String| {
                (host.clone(), examine(plan, host).map_err(|error| error.to_string()))
            };
            let mesh = Mesh(hosts.iter().map(examine).collect());
            let text = if plan.json { mesh.to_json() } else { mesh.to_string() };
            print(&text, mesh.is_healthy())
        }
    }
}

fn examine_one(plan: &DoctorPlan, host: &str) -> Exit {
    match examine(plan, host) {
        Ok(report) => {
            let text = if plan.json { report.to_json() } else { report.to_string() };
            print(&text, report.problems.is_empty())
        }
        Err(error) => {
            complain(&format!("cbrst-doctor: {error}"));
            let text = plan.json.then(|| no_report(Some(host), &error.to_string()));
            text.map_or(Exit::Failed, |text| print(&text, false))
        }
    }
}

/// Prints a report.
fn print(text: &str, is_healthy: bool) -> Exit {
    match ui::print(JsonTo::StandardOutput, text) {
        Ok(()) if is_healthy => Exit::Done,
        Ok(()) => Exit::Failed,
        Err(error) => {
            complain(&format!("cbrst-doctor: {}", ui::unwritable(&error)));
            Exit::Failed
        }
    }
}

fn examine(plan: &DoctorPlan, host: &str) -> Result<Report, ExamError> {
    let peer = address::resolve(host, plan.deadline)?;
    let no_route = |source| ExamError::NoRoute { peer, source };
    let local = address::local_for(peer).map_err(no_route)?;
    // Before the probes with a short TTL: a host that refuses those, too, soon no longer does.
    let probe = Probe::send(peer).map_err(no_route)?;
    if let Some(failure) = probe.refusal(Duration::ZERO) {
        return Err(ExamError::Unanswered(failure));
    }
    let traced = trace::trace(local, peer, plan.ports, plan.dscp);
    let (routes, sockets) = traced.map_err(ExamError::Trace)?;

    // Contact is made with short packets, so that a path that carries only these is distinguished from
    // no path.
    let (mut one, addresses, vitals) = first_answer(plan, local, &probe, peer)?;
    let mut all = Examiner::new(plan, local, peer, plan.ports)?;
    let by_all = all.try_request(0)?.map(|(_, vitals)| vitals);
    let requester = if by_all.is_some() { &mut all } else { &mut one };
    let before = by_all.unwrap_or(vitals);
    let after = requester.request(BURST)?.map(|(_, vitals)| vitals);
    let here = here(plan, requester);
    let there = there(&before, after.as_ref());
    drop((one, all));

    let mut ports = Vec::new();
    for (route, socket) in routes.iter().zip(sockets) {
        // Only now, so that no other program has the port.
        drop(socket);
        let bind = SocketAddr::new(local.ip(), route.port);
        let found = Examiner::new(plan, bind, peer, 1)?.examine(plan.packets)?;
        ports.push(Port { port: route.port, hops: route.hops.clone(), found });
    }
    // A port is of no use if each of its packets was lost at first.
    let arrived = |found: &Findings| found.lost_there < plan.packets.into();
    let sizes = Sizes {
        mtu: plan.mtu,
        path_mtu: address::path_mtu(peer),
        full_packets_arrive: ports.iter().filter_map(|port| port.found.as_ref()).any(arrived),
        burst_arrived: after.is_some(),
    };
    Ok(Report::new(Measured {
        peer: addresses.peer,
        local: addresses.local.ip(),
        addresses,
        here,
        there,
        all_ports_answered: by_all.is_some(),
        sizes,
        paths: Path::of_working(&routes, &ports),
        ports,
    }))
}

/// Sends requests from one source port after the other until one gets an answer: a port may lead into a black
/// hole. The receiver counts as absent only if all ports together cannot deliver a request.
fn first_answer(
    plan: &DoctorPlan,
    local: SocketAddr,
    probe: &Probe,
    peer: SocketAddr,
) -> Result<(Examiner, Addresses, Vitals), ExamError> {
    for tries in 0..=plan.ports {
        let mut one = Examiner::new(plan, local, peer, 1)?;
        if let Some((addresses, vitals)) = Addresses::find_out(plan, local, peer, &mut one)? {
            return Ok((one, addresses, vitals));
        }
        if tries == 0 {
            let mut all = Examiner::new(plan, local, peer, plan.ports)?;
            match all.request(0) {
                Ok(Some(_)) | Err(ExamError::NoVitals) => {}
                Ok(None) => return Err(ExamError::Unanswered(all.explain_no_answer(probe))),
                Err(error) => return Err(error),
            }
        }
    }
    let silent = Failure::NoAnswer { peer, waited: plan.deadline };
    Err(ExamError::Unanswered(silent.explained(|| probe.refusal(address::PROBE_FOR))))
}

/// Returns the state of this end.
fn here(plan: &DoctorPlan, examiner: &Examiner) -> End {
    let io = examiner.endpoint.counters().io;
    let granted = examiner.endpoint.granted_buffers();
    End {
        dscp: plan.dscp,
        buffers: Buffers {
            wanted: granted.wanted as u64,
            receive: granted.receive as u64,
            send: granted.send as u64,
        },
        gso: io.gso_fallbacks == 0,
        gro: None,
        kernel_drops: io.kernel_drops,
        first_foreign_dscp: io.first_foreign_dscp,
    }
}

/// Returns the state of the receiver's end, from its answers before and after the burst.
fn there(before: &Vitals, after: Option<&Vitals>) -> End {
    let vitals = after.unwrap_or(before);
    let joined = |after: &Vitals| {
        after.datagrams.saturating_sub(before.datagrams)
            > after.batches.saturating_sub(before.batches)
    };
    End {
        dscp: vitals.dscp,
        buffers: Buffers {
            wanted: vitals.buffers_wanted,
            receive: vitals.receive_buffer,
            send: vitals.send_buffer,
        },
        gso: vitals.gso_fallbacks == 0,
        gro: after.map(joined),
        kernel_drops: vitals.kernel_drops,
        first_foreign_dscp: vitals.first_foreign_dscp,
    }
}
