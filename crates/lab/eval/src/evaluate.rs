//! Runs experiments one after the other, and records their results.

use crate::Failure;
use crate::experiment::{Case, Choice, Experiment};
use crate::record::{About, Run};
use crate::scheme::{Congestion, Scheme};
use crate::site::{Cluster, Local, Site};
use crate::trial::{self, Measure, Taken};
use cloudburst_net::Security;
use cloudburst_report::statistics::{is_longest, quantile};
use cloudburst_testbed::{Error, Topology};
use core::time::Duration;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The paper's link rate, in bits per second.
const PAPER_RATE: f64 = 1e9;

/// The share of the processors that other virtual machines may take during a trial. A disturbed
/// trial runs up to [`CALM_TRIES`] times, because its results reflect the hypervisor.
// A host that gives 5 % of the processors to others doubles p50 and triples p99 of any scheme.
pub(crate) const MOST_STOLEN: f64 = 0.01;
const CALM_TRIES: u32 = 3;

/// What to run.
pub(crate) struct Plan {
    pub(crate) experiments: Vec<Experiment>,
    pub(crate) choice: Choice,
    pub(crate) seed: u64,
    pub(crate) repetitions: u32,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) background: Congestion,
    pub(crate) command: String,
    pub(crate) place: Place,
}

/// Where to run it.
pub(crate) enum Place {
    /// In namespaces of this machine, with a minimum retransmission timeout of TCP.
    Here(Topology, Duration),
    /// On the hosts in this file, which run agents.
    Cluster(PathBuf, Security),
}

impl Plan {
    /// The cases to run, by experiment, or what is wrong with the plan.
    fn cases(&self) -> Result<Vec<(Experiment, Vec<Case>)>, Failure> {
        if let Place::Here(topology, _) = &self.place {
            topology.validate()?;
        } else if let Some(experiment) =
            self.experiments.iter().find(|experiment| experiment.changes_the_network())
        {
            return Err(Failure::Usage(format!(
                "`{experiment}` changes the network, which is possible only in namespaces: name \
                 other experiments"
            )));
        }
        let cases = |&experiment: &Experiment| Ok((experiment, experiment.cases(&self.choice)?));
        self.experiments.iter().map(cases).collect()
    }
}

/// Runs the plan. Calls `keep` with the trials so far after each repetition of an experiment, and
/// when an error or an interruption ends the run early.
pub(crate) fn evaluate(
    plan: &Plan,
    interrupted: &Arc<AtomicBool>,
    mut keep: impl FnMut(&Run) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let experiments = plan.cases()?;
    raise_limit();
    let mut run = Run { about: about(plan)?, trials: Vec::new() };
    let begun = Instant::now();
    for (experiment, cases) in experiments {
        let (site, lacks) = raise(plan, experiment, interrupted)?;
        note(&mut run.about, experiment, &site, lacks);
        let mut running = Running { plan, site, cases, run: &mut run };
        for repetition in 1..=plan.repetitions {
            let done = running.repeat(repetition, interrupted);
            running.run.about.took_s = begun.elapsed().as_secs_f64();
            keep(running.run)?;
            done?;
        }
    }
    Ok(())
}

/// An experiment that is under way.
struct Running<'a> {
    plan: &'a Plan,
    site: Site,
    cases: Vec<Case>,
    run: &'a mut Run,
}

impl Running<'_> {
    /// Runs every case once.
    fn repeat(&mut self, repetition: u32, interrupted: &AtomicBool) -> Result<(), Failure> {
        // Drift over time affects all schemes alike.
        let mut cases = self.cases.clone();
        cases.shuffle(&mut StdRng::seed_from_u64(self.plan.seed ^ u64::from(repetition)));
        for (place, case) in (1..).zip(&cases) {
            if interrupted.load(Ordering::SeqCst) {
                return Err(Error::Interrupted.into());
            }
            if !self.cases.iter().any(|left| left.scheme == case.scheme) {
                continue;
            }
            let taken = self.take_calmly(case, repetition, interrupted);
            if interrupted.load(Ordering::SeqCst) {
                return Err(Error::Interrupted.into());
            }
            if let Some(taken) = taken? {
                print_progress(&taken, place, cases.len(), self.plan.repetitions);
                self.run.trials.push(taken.trial);
            }
        }
        Ok(())
    }

    /// Runs a trial, and again if it was disturbed. Returns the least disturbed one, whatever the
    /// results.
    fn take_calmly(
        &mut self,
        case: &Case,
        repetition: u32,
        interrupted: &AtomicBool,
    ) -> Result<Option<Taken>, Failure> {
        let Some(mut calmest) = self.take(case, repetition, interrupted)? else { return Ok(None) };
        let more = if self.plan.choice.is_short { 0 } else { CALM_TRIES - 1 };
        for _ in 0..more {
            if calmest.trial.stolen <= MOST_STOLEN || interrupted.load(Ordering::SeqCst) {
                break;
            }
            self.run.about.retaken += 1;
            let measure = measure(self.plan, &self.site);
            match trial::take(&mut self.site, case, repetition, &measure) {
                Ok(taken) if taken.trial.stolen < calmest.trial.stolen => calmest = taken,
                // There is a trial already.
                Ok(_) | Err(Failure::Trial { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Some(calmest))
    }

    /// Runs a trial. If it fails, notes that and runs it once more. If that fails too, leaves its
    /// scheme out of the experiment.
    fn take(
        &mut self,
        case: &Case,
        repetition: u32,
        interrupted: &AtomicBool,
    ) -> Result<Option<Taken>, Failure> {
        let measure = measure(self.plan, &self.site);
        for is_last in [false, true] {
            let failure = match trial::take(&mut self.site, case, repetition, &measure) {
                Err(Failure::Trial { .. }) if interrupted.load(Ordering::SeqCst) => {
                    return Err(Error::Interrupted.into());
                }
                Err(failure @ Failure::Trial { .. }) => failure,
                taken => return taken.map(Some),
            };
            let Case { experiment, name, .. } = case;
            let then =
                if is_last { "failed again; it was left out" } else { "failed; it was repeated" };
            let lack = format!("{experiment}: {name} {then}: {failure}.");
            eprintln!("{lack}");
            self.run.about.lacks.push(lack);
            if is_last {
                self.cases.retain(|other| other.scheme != case.scheme);
                // Nothing is left to measure.
                return if self.cases.is_empty() { Err(failure) } else { Ok(None) };
            }
        }
        Ok(None)
    }
}

/// Raises the limit of open files as far as permitted: all hosts in one process, with several
/// connections for each pair, exceed the usual limit. If it stays too low, later calls fail.
pub(crate) fn raise_limit() {
    let hard = getrlimit(Resource::RLIMIT_NOFILE).map(|(_, hard)| hard);
    let _ = hard.and_then(|hard| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
}

fn raise(
    plan: &Plan,
    experiment: Experiment,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Site, Vec<String>), Failure> {
    match &plan.place {
        Place::Here(topology, min_rto) => {
            let rate = topology.uplink_rate() / experiment.over_subscription();
            let topology = Topology { uplink_rate: Some(rate), ..topology.clone() };
            Local::up(&topology, *min_rto, interrupted)
        }
        Place::Cluster(path, security) => {
            let lacks = "Queues, routes and TCP settings are those that the network and its hosts \
                         have; the counters of switches were not read.";
            let site = Cluster::join(path, security.clone())?;
            if plan.choice.schemes.iter().any(Scheme::is_explicit)
                && site.hosts.iter().any(|host| host.path_addresses.is_empty())
            {
                return Err(Failure::Usage(format!(
                    "paths=explicit needs the `path_addresses` of all hosts: add them to {}",
                    path.display()
                )));
            }
            Ok((site, vec![lacks.into()]))
        }
    }
}

fn measure(plan: &Plan, site: &Site) -> Measure {
    let topology = match &plan.place {
        Place::Here(topology, _) => topology.clone(),
        Place::Cluster(..) => Topology::default(),
    };
    Measure {
        seed: plan.seed,
        seconds: plan.seconds,
        warm_up: plan.warm_up,
        scale: PAPER_RATE / site.link_rate as f64,
        queues: topology.queues(),
        background: plan.background,
    }
}

fn about(plan: &Plan) -> Result<About, Failure> {
    let first = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned()).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kibibytes: f64 =
        first("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut lacks = vec![
        "No scheme uses DCTCP, which many kernels lack: CUBIC stands in for it, for short messages \
         and, unless stated below, for background flows."
            .to_owned(),
    ];
    let sizes = ["tcp_rmem", "tcp_wmem"].map(|key| {
        let path = format!("/proc/sys/net/ipv4/{key}");
        std::fs::read_to_string(path)
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    lacks.push(format!(
        "TCP buffers have the kernel's sizes: tcp_rmem is {}, tcp_wmem {}.",
        sizes[0], sizes[1]
    ));
    if plan.background != Congestion::Cubic {
        lacks.push(format!("Background flows use TCP {}.", plan.background.name()));
    }
    Ok(About {
        date: cloudburst_report::today(),
        took_s: 0.0,
        command: plan.command.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        machine: format!(
            "{}, {cores} cores, {:.0} GiB",
            first("/proc/cpuinfo", "model name"),
            kibibytes / f64::from(1 << 20)
        ),
        kernel: kernel.trim().into(),
        network: String::new(),
        link_rate: 0,
        scale: 0.0,
        seed: plan.seed,
        repetitions: plan.repetitions,
        seconds: plan.seconds,
        warm_up_seconds: plan.warm_up,
        retaken: 0,
        lacks,
    })
}

/// Adds the description of the network, once it is up.
fn note(about: &mut About, experiment: Experiment, site: &Site, lacks: Vec<String>) {
    let network = site.to_string();
    if about.network.is_empty() {
        about.network = network;
        about.link_rate = site.link_rate;
        about.scale = PAPER_RATE / site.link_rate as f64;
    } else if !about.network.contains(&network) {
        about.network = format!("{}. For `{experiment}`: {network}", about.network);
    }
    for lack in lacks {
        if !about.lacks.contains(&lack) {
            about.lacks.push(lack);
        }
    }
}

/// Prints a progress line with the result of a trial.
fn print_progress(taken: &Taken, place: usize, places: usize, repetitions: u32) {
    let Taken { trial, failures } = taken;
    let arrived = trial.messages.iter().filter_map(|message| message.took_us);
    let mut took: Vec<f64> = arrived.map(|us| us as f64 / 1e3).collect();
    took.sort_unstable_by(f64::total_cmp);
    let times = match (quantile(&took, 0.5), quantile(&took, 0.99)) {
        (Some(p50), Some(p99)) => {
            let tail = if is_longest(took.len(), 0.99) { "longest" } else { "p99" };
            format!("p50 {p50:.1} ms, {tail} {p99:.1} ms")
        }
        _ => "no times".to_owned(),
    };
    eprintln!(
        "{} {place}/{places}, repetition {}/{repetitions}: {} load {} x {}: {} of {} messages, \
         {times}, background {:.0} Mb/s, processors {:.0} % busy, {:.1} % taken by other VMs",
        trial.experiment,
        trial.repetition,
        trial.scheme,
        trial.load,
        trial.x,
        took.len(),
        trial.messages.len(),
        trial.background_bytes as f64 * 8.0 / trial.seconds / 1e6,
        trial.busy * 100.0,
        trial.stolen * 100.0
    );
    for (why, count) in failures {
        eprintln!("  {count} failed: {why}");
    }
}
