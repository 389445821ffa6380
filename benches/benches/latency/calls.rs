//! Calls, one at a time, by rivals that wait in the same way.

use cloudburst_benches::Result;
use cloudburst_benches::ends::Ends;
use cloudburst_benches::stats::{Median, digits, micros, order, percentile};
use cloudburst_benches::transport::{
    Calls, Http2, Messages, Quic, Tcp, TcpTasks, Transport, config,
};
use cloudburst_benches::usage::Usage;
use cloudburst_net::Config;
use std::thread;
use std::time::Duration;

/// The responses, in bytes and by name.
pub(crate) const RESPONSES: [(usize, &str); 3] =
    [(5_000, "5 KB"), (20_000, "20 KB"), (93_000, "93 KB")];
/// Calls of a trial.
pub(crate) const IDLE: usize = 300;
pub(crate) const LOSSY: usize = 100;
/// The maximum length of a trial.
const LONGEST_TRIAL: Duration = Duration::from_millis(700);
/// The time before a trial, in which the transport before it becomes quiet.
const PAUSE: Duration = Duration::from_millis(3);

/// What is said of the calls of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    P50,
    P99,
    /// Processor time of a call, both ends together.
    Cpu,
}

impl Figure {
    pub(crate) const ALL: [Self; 3] = [Self::P50, Self::P99, Self::Cpu];
}

/// Rivals that wait in the same way.
pub(crate) struct Group {
    pub(crate) waits: &'static str,
    rivals: Vec<Rival>,
}

/// A transport, and its trials with each of the responses.
pub(crate) struct Rival {
    pub(crate) name: &'static str,
    ours: bool,
    transport: Box<dyn Transport>,
    trials: [Vec<Trial>; RESPONSES.len()],
}

struct Trial {
    /// Sorted.
    times: Vec<Duration>,
    cpu: Duration,
}

impl Group {
    pub(crate) fn all(ends: &Ends) -> Result<Vec<Self>> {
        let default = config(Config::default().busy_poll);
        let asleep = vec![
            Rival::new("TCP", Tcp::asleep(ends)?),
            Rival::ours("send, recv", Messages::open(ends, &config(Duration::ZERO))?),
        ];
        let spinning = vec![
            Rival::new("TCP", Tcp::spinning(ends)?),
            Rival::ours("send, recv", Messages::open(ends, &default)?),
        ];
        let mut tasks = Self::tasks(ends)?;
        tasks.rivals.push(Rival::ours("call, busy-polling", Calls::open(ends, &default)?));
        Ok(vec![
            Self { waits: "asleep", rivals: asleep },
            Self { waits: "spinning", rivals: spinning },
            tasks,
        ])
    }

    /// Tasks on tokio, which sleeps in epoll.
    pub(crate) fn tasks(ends: &Ends) -> Result<Self> {
        let rivals = vec![
            Rival::new("TCP", TcpTasks::open(ends)?),
            Rival::new("HTTP/2", Http2::open(ends)?),
            Rival::new("quinn", Quic::open(ends)?),
            Rival::ours("call", Calls::open(ends, &config(Duration::ZERO))?),
        ];
        Ok(Self { waits: "tasks on tokio", rivals })
    }

    /// Returns the rival of this name.
    pub(crate) fn rival(&self, name: &str) -> &Rival {
        self.rivals.iter().find(|rival| rival.name == name).expect("groups are made above")
    }
}

impl Rival {
    fn new(name: &'static str, transport: impl Transport + 'static) -> Self {
        Self { name, ours: false, transport: Box::new(transport), trials: Default::default() }
    }

    fn ours(name: &'static str, transport: impl Transport + 'static) -> Self {
        Self { ours: true, ..Self::new(name, transport) }
    }

    fn trial(&mut self, response: usize, calls: usize) -> Result<Trial> {
        thread::sleep(PAUSE);
        let before = Usage::now()?;
        let mut times = self.transport.round_trips(response, calls, LONGEST_TRIAL)?;
        let cpu = Usage::since(before)?.cpu;
        times.sort_unstable();
        Ok(Trial { times, cpu })
    }

    /// Returns a figure of all trials with a response together, in microseconds.
    fn figure(&self, response: usize, figure: Figure) -> f64 {
        let trials = &self.trials[response];
        let mut times: Vec<_> = trials.iter().flat_map(|trial| &trial.times).copied().collect();
        times.sort_unstable();
        Trial { times, cpu: trials.iter().map(|trial| trial.cpu).sum() }.figure(figure)
    }

    /// Returns the ratio of a figure to that of another rival.
    pub(crate) fn ratio(&self, other: &Self, response: usize, figure: Figure) -> Median {
        if figure == Figure::P99 {
            // A trial is too short for a percentile of its own.
            return Median::of([self.figure(response, figure) / other.figure(response, figure)]);
        }
        let rounds = self.trials[response].iter().zip(&other.trials[response]);
        Median::of(rounds.map(|(own, other)| own.figure(figure) / other.figure(figure)))
    }
}

impl Trial {
    fn figure(&self, figure: Figure) -> f64 {
        match figure {
            Figure::P50 => micros(percentile(&self.times, 50)),
            Figure::P99 => micros(percentile(&self.times, 99)),
            Figure::Cpu => micros(self.cpu) / self.times.len() as f64,
        }
    }
}

/// Measures rounds of trials of `calls` calls with each response.
pub(crate) fn measure(mut groups: Vec<Group>, rounds: usize, calls: usize) -> Result<Vec<Group>> {
    let mut rivals: Vec<&mut Rival> =
        groups.iter_mut().flat_map(|group| &mut group.rivals).collect();
    for (at, (response, size)) in RESPONSES.into_iter().enumerate() {
        // The first round warms up caches, windows and estimates.
        for round in 0..=rounds {
            for rival in order(round, rivals.len()) {
                let rival = &mut rivals[rival];
                let trial = rival.trial(response, calls);
                let trial = trial.map_err(|error| format!("{size}, {}: {error}", rival.name))?;
                if round > 0 {
                    rival.trials[at].push(trial);
                }
            }
        }
        eprintln!("calls of {size}: done");
    }
    Ok(groups)
}

/// Returns a Markdown table below its title.
pub(crate) fn table(title: &str, groups: &[Group]) -> String {
    let mut text = format!("\n**{title}: p50, p99, CPU of both ends, in us**\n\n| waits | |");
    for (_, size) in RESPONSES {
        text += &format!(" {size} |");
    }
    text += "\n|---|---|---:|---:|---:|\n";
    for group in groups {
        for rival in &group.rivals {
            let cell = |at| Figure::ALL.map(|figure| digits(rival.figure(at, figure))).join(", ");
            text += &row(group.waits, rival.name, cell);
        }
        for own in group.rivals.iter().filter(|rival| rival.ours) {
            for other in group.rivals.iter().filter(|rival| !rival.ours) {
                let cell = |at| {
                    let ratio = |figure| format!("{:.2}", own.ratio(other, at, figure).value);
                    Figure::ALL.map(ratio).join(", ")
                };
                text += &row(group.waits, &format!("{} x {}", own.name, other.name), cell);
            }
        }
    }
    text
}

fn row(waits: &str, name: &str, cell: impl Fn(usize) -> String) -> String {
    let cells: Vec<String> = (0..RESPONSES.len()).map(cell).collect();
    format!("| {waits} | {name} | {} |\n", cells.join(" | "))
}
