//! What an evaluation leaves: everything that was measured, and of what.

use serde::{Deserialize, Serialize};

/// A whole evaluation, as `run.json` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where, when and how.
    pub about: About,
    /// In the order in which they ran.
    pub turns: Vec<Trial>,
}

/// Where, when and how an evaluation ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The day that it began, UTC: `2026-01-31`.
    pub date: String,
    /// How long all of it took, in seconds.
    pub took_s: f64,
    /// The arguments that it was started with.
    pub command: String,
    /// Version of this crate.
    pub version: String,
    /// Processor, number of cores, memory.
    pub machine: String,
    /// Kernel release.
    pub kernel: String,
    /// The network, in a line: hosts, leaves, spines, rates, queues; or the addresses of agents.
    pub network: String,
    /// Bits a second of a host's link.
    pub link_rate: u64,
    /// The paper's link rate (1 Gb/s) over this one: request rates are the paper's, divided by it.
    pub scale: f64,
    /// Where all random choices come from.
    pub seed: u64,
    /// Repetitions of each point.
    pub repetitions: u32,
    /// Seconds of each trial that count, and of the warm-up before them.
    pub seconds: f64,
    /// Of the warm-up.
    pub warm_up_seconds: f64,
    /// Turns that were taken again, as others had more than 1 % of the processors meanwhile. Of up
    /// to three, the one with the least of it is kept. Short runs take none again.
    pub retaken: u32,
    /// What could not be set or measured here, a sentence each.
    pub lacks: Vec<String>,
}

/// One scheme at one point of one experiment, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// `design-choices`, `schemes`, `incast`, `failures`, `rate`, `loss`, `friendly` or `compare`.
    pub experiment: String,
    /// The scheme's name, as `cbrst-eval schemes` lists them.
    pub scheme: String,
    /// Requests a second in all, as the paper says it (800, 1600, 2000): here divided by
    /// [`About::scale`]. 0 where the experiment has no such thing (`incast`).
    pub load: f64,
    /// The experiment's other variable: flows of an incast, dead paths, r, percent lost. 0 where it
    /// has none.
    pub x: f64,
    /// From 1.
    pub repetition: u32,
    /// Seconds over which the background was measured.
    pub seconds: f64,
    /// Bytes that background flows brought to their receivers in these seconds, all together.
    pub background_bytes: u64,
    /// How many background senders there were.
    pub background_flows: u32,
    /// Share of the processors that was busy meanwhile, of the whole machine or of the busiest
    /// agent's: 0.0 to 1.0.
    pub busy: f64,
    /// Share that was not to be had, as the host of a virtual machine gave it to others.
    pub stolen: f64,
    /// Packets that the switches' tiny queues sent, and dropped as they were full. 0 where unknown.
    pub tiny_sent: u64,
    /// Dropped there.
    pub tiny_dropped: u64,
    /// Packets that the switches' default queues sent.
    pub default_sent: u64,
    /// Dropped there.
    pub default_dropped: u64,
    /// Every message after the warm-up.
    pub messages: Vec<Message>,
}

/// One request and its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Unique in its trial; the same message has the same id in the trials of all schemes at this
    /// point and repetition.
    pub id: u32,
    /// The host that asks, from 1.
    pub from: u16,
    /// The host that responds with the message.
    pub to: u16,
    /// Bytes of the response.
    pub bytes: u32,
    /// When the request was due, in microseconds from the beginning of the trial.
    pub at_us: u64,
    /// From then until the whole response was there, in microseconds: the message completion time.
    /// `None`: it did not come within the deadline.
    pub took_us: Option<u64>,
    /// Packets that were sent for the response until its sender knew it received; of Cloudburst.
    pub packets: Option<u32>,
    /// Source symbols of the response: packets of the message itself; of Cloudburst.
    pub source_packets: Option<u32>,
}
