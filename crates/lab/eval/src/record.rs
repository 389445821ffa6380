//! The record of an evaluation: all measurements, and where, when and how they were taken.

use serde::{Deserialize, Serialize};

/// A whole evaluation, as stored in `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where, when and how.
    pub about: About,
    /// The trials, in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// Where, when and how an evaluation ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The day on which it began, in UTC, such as `2026-01-31`.
    pub date: String,
    /// How long all of it took, in seconds.
    pub took_s: f64,
    /// The command line that started it.
    pub command: String,
    /// The version of this crate.
    pub version: String,
    /// The processor, number of cores and memory.
    pub machine: String,
    /// The kernel release.
    pub kernel: String,
    /// The network, in a line: hosts, leaves, spines, rates, queues; or the addresses of agents.
    pub network: String,
    /// The rate of a host's link, in bits per second.
    pub link_rate: u64,
    /// The paper's link rate (1 Gb/s) over this one: request rates are the paper's divided by it.
    pub scale: f64,
    /// The seed of all random choices.
    pub seed: u64,
    /// The number of repetitions of each point.
    pub repetitions: u32,
    /// The measured seconds of each trial, after the warm-up.
    pub seconds: f64,
    /// The seconds of the warm-up.
    pub warm_up_seconds: f64,
    /// How often a trial was repeated because other virtual machines had taken more than 1 % of the
    /// processors. Of up to three, the least disturbed one is kept. Short runs repeat none.
    pub retaken: u32,
    /// Settings and measurements that are missing or differ from the paper's, a sentence each.
    pub lacks: Vec<String>,
}

/// One measurement of one scheme at one point of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// `design-choices`, `schemes`, `incast`, `failures`, `rate`, `loss`, `friendly` or `compare`.
    pub experiment: String,
    /// The scheme's name, as listed by `cbrst-eval schemes`.
    pub scheme: String,
    /// The load as in the paper, in requests a second of all hosts together (800, 1600, 2000). The
    /// actual load is this divided by [`About::scale`]. 0 in experiments without a load (`incast`).
    pub load: f64,
    /// The experiment's other variable: flows of an incast, dead paths, r, or percent lost. 0 in
    /// experiments without one.
    pub x: f64,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    /// The seconds over which the background was measured.
    pub seconds: f64,
    /// The bytes of all background flows that arrived in these seconds.
    pub background_bytes: u64,
    /// The number of background senders.
    pub background_flows: u32,
    /// The share of the processors that was busy meanwhile, from 0.0 to 1.0: of this machine, or of the
    /// busiest host of a cluster.
    pub busy: f64,
    /// The share that the hypervisor gave to other virtual machines (steal time).
    pub stolen: f64,
    /// The number of packets that the switches' tiny queues sent; 0 if unknown, as are the next three.
    pub tiny_sent: u64,
    /// The number of packets that the switches' tiny queues dropped.
    pub tiny_dropped: u64,
    /// The number of packets that the switches' default queues sent.
    pub default_sent: u64,
    /// The number of packets that the switches' default queues dropped.
    pub default_dropped: u64,
    /// All messages that were due in the measured window.
    pub messages: Vec<Message>,
}

/// One request and its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The message's ID, which is unique in its trial. The same message has the same ID in the trials
    /// of all schemes at this point and repetition.
    pub id: u32,
    /// The host that requests the message, from 1.
    pub from: u16,
    /// The host that responds with the message.
    pub to: u16,
    /// The bytes of the response.
    pub bytes: u32,
    /// When the request was due, in microseconds from the beginning of the trial.
    pub at_us: u64,
    /// The message completion time: the microseconds from then until the whole response had arrived.
    /// `None` if it did not arrive within the deadline.
    pub took_us: Option<u64>,
    /// The number of packets sent for the response until its sender knew that it had arrived.
    /// Cloudburst only.
    pub packets: Option<u32>,
    /// The number of source symbols of the response, which are the packets of the message itself.
    /// Cloudburst only.
    pub source_packets: Option<u32>,
}
