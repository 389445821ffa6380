//! Synthetic runs for tests of the report, with times from a seeded generator that resemble the
//! paper's.

use crate::{About, Message, Run, Trial};
use cloudburst_core::rng::SplitMix64;
use cloudburst_workload::paper::RESPONSES;

pub(super) const EXPERIMENTS: [&str; 8] =
    ["design-choices", "schemes", "incast", "failures", "rate", "loss", "friendly", "compare"];

/// A run of these experiments, with this number of repetitions of each point.
pub(super) fn run(repetitions: u32, experiments: &[&str]) -> Run {
    let trials = experiments.iter().flat_map(|name| trials(name, repetitions)).collect();
    Run { about: about(repetitions), trials }
}

pub(super) fn trial(experiment: &str, scheme: &str) -> Trial {
    Trial {
        experiment: experiment.to_owned(),
        scheme: scheme.to_owned(),
        load: 0.0,
        x: 0.0,
        repetition: 1,
        seconds: 10.0,
        background_bytes: 250_000_000,
        background_flows: 4,
        busy: 0.4,
        stolen: 0.0,
        tiny_sent: 100_000,
        tiny_dropped: 1234,
        default_sent: 500_000,
        default_dropped: 321,
        messages: Vec::new(),
    }
}

pub(super) fn message() -> Message {
    Message {
        id: 1,
        from: 1,
        to: 2,
        bytes: 5000,
        at_us: 0,
        took_us: Some(1000),
        packets: None,
        source_packets: None,
    }
}

fn about(repetitions: u32) -> About {
    About {
        date: "2026-01-31".to_owned(),
        took_s: 4321.0,
        command: "cbrst-eval run --all <here> & \"there\"".to_owned(),
        version: "0.1.0".to_owned(),
        machine: "a machine, 2 cores, 8 GB".to_owned(),
        kernel: "6.1.0".to_owned(),
        network: "8 hosts, 2 leaves, 4 spines, 100 Mb/s".to_owned(),
        link_rate: 100_000_000,
        scale: 10.0,
        seed: 7,
        repetitions,
        seconds: 10.0,
        warm_up_seconds: 2.0,
        retaken: 0,
        lacks: vec!["The kernel has no <b>DCTCP</b>.".to_owned()],
    }
}

/// How many times slower than Cloudburst D a scheme is.
fn slowness(scheme: &str) -> f64 {
    match scheme.split(':').next().unwrap() {
        "tcp-cubic" => 4.0,
        "tcp-bbr" => 3.6,
        "pias" => 3.0,
        "replicated-2" => 2.9,
        "replicated-4" => 3.4,
        "mptcp" => 5.0,
        "quic" => 3.8,
        "a" => 6.4,
        "b" => 3.3,
        "c" => 2.2,
        _ => 1.0,
    }
}

fn trials(experiment: &str, repetitions: u32) -> Vec<Trial> {
    let lt = |choice: &str| format!("{choice}:code=lt,policy=until-stop");
    let tcp = ["tcp-cubic", "tcp-bbr", "pias", "replicated-2", "replicated-4", "mptcp", "quic"];
    let few = vec!["tcp-cubic".to_owned(), "d".to_owned(), lt("d")];
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (schemes, loads, xs) = match experiment {
        "design-choices" => {
            let mut schemes = of(&["tcp-cubic", "a", "b", "c", "d"]);
            schemes.extend(["a", "b", "c", "d"].map(lt));
            (schemes, vec![800.0, 1600.0, 2000.0], vec![0.0])
        }
        "schemes" => {
            let schemes = [of(&tcp), vec!["d".to_owned(), lt("d")]].concat();
            (schemes, vec![800.0, 1600.0, 2000.0], vec![0.0])
        }
        "incast" => {
            let schemes = of(&["tcp-cubic", "pias", "quic", "d"]);
            (schemes, vec![0.0], vec![4.0, 8.0, 16.0, 32.0, 48.0])
        }
        "failures" => (few, vec![800.0, 1600.0, 2000.0], vec![0.0, 1.0, 2.0, 3.0]),
        "rate" => (few, vec![2000.0], vec![0.1, 0.25, 0.5, 0.75, 1.0]),
        "loss" => (few, vec![2000.0], vec![0.0, 0.1, 1.0, 2.0, 5.0]),
        "friendly" => (of(&["none", "tcp-cubic", "pias", "d"]), vec![2000.0], vec![0.0]),
        _ => ([of(&tcp), vec!["d".to_owned(), lt("d")]].concat(), vec![2000.0], vec![0.0]),
    };
    let mut trials = Vec::new();
    for repetition in 1..=repetitions {
        for (k, scheme) in schemes.iter().enumerate() {
            for (&load, &x) in loads.iter().flat_map(|load| xs.iter().map(move |x| (load, x))) {
                if experiment == "rate" && scheme == "tcp-cubic" && x > 0.1 {
                    continue;
                }
                let seed = u64::from(repetition) << 32 | (k as u64) << 16 | (load + x * 8.0) as u64;
                let mut trial = Trial { load, x, repetition, ..trial(experiment, scheme) };
                fill(&mut trial, &mut SplitMix64::new(seed));
                trials.push(trial);
            }
        }
    }
    trials
}

fn fill(trial: &mut Trial, rng: &mut SplitMix64) {
    let slow = slowness(&trial.scheme);
    let is_cloudburst = trial.scheme.starts_with(['a', 'b', 'c', 'd']);
    let pace = match trial.experiment.as_str() {
        "failures" => 1.0 + trial.x * 0.09,
        "loss" => 1.0 + trial.x * 0.1 * slow,
        "rate" if is_cloudburst => 2.0 + 4.0 * (trial.x - 0.5).powi(2),
        _ => 1.0 + trial.load / 8000.0,
    };
    trial.background_bytes = (250e6 - slow * 2e6) as u64 + rng.below(3_000_000);
    if trial.scheme == "none" {
        return;
    }
    let instants = trial.experiment == "incast";
    for id in 0..if instants { 6 * trial.x as u32 } else { 500 } {
        let bytes = if instants { 90_000 } else { RESPONSES[id as usize % RESPONSES.len()] as u32 };
        let share = (rng.below(1 << 20) + 1) as f64 / f64::from(1 << 20);
        let crowd =
            if instants { trial.x * if is_cloudburst { 1.0 } else { trial.x / 10.0 } } else { 1.0 };
        let tail = (1.0 - slow / 5.0 * share.ln()) * pace * crowd;
        let took = (300.0 + f64::from(bytes) * 0.08) * tail;
        let is_lost = trial.scheme == "mptcp" && rng.below(60) == 0;
        let source = bytes.div_ceil(1400);
        let packets = source + rng.below(u64::from(source) / 2 + 2) as u32;
        trial.messages.push(Message {
            id,
            from: 1 + rng.below(8) as u16,
            to: 1 + rng.below(8) as u16,
            bytes,
            at_us: if instants {
                u64::from(id) / trial.x as u64 * 100_000
            } else {
                u64::from(id) * 5000
            },
            took_us: (!is_lost).then_some(took as u64),
            packets: is_cloudburst.then_some(packets),
            source_packets: is_cloudburst.then_some(source),
        });
    }
}
