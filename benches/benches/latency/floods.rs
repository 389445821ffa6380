//! Transports under load, and the cost of a message in them.

use cloudburst_benches::Result;
use cloudburst_benches::ends::Ends;
use cloudburst_benches::stats::{Median, digits, micros, order};
use cloudburst_benches::transport::{Calls, Flood, Quic, Tcp, config};
use cloudburst_benches::usage::Usage;
use cloudburst_net::Config;
use std::time::Duration;

/// The length of a trial.
const TRIAL: Duration = Duration::from_millis(400);

const LOADS: [Load; 2] = [
    Load { name: "5 KB, 64 in flight", len: 5_000, in_flight: 64 },
    Load { name: "93 KB, 32 in flight", len: 93_000, in_flight: 32 },
];
/// The index of the small load, and those of quinn and of an endpoint that sleeps like it.
pub(crate) const SMALL: usize = 0;
pub(crate) const QUINN: usize = 1;
pub(crate) const ASLEEP: usize = 2;

struct Load {
    name: &'static str,
    len: usize,
    in_flight: usize,
}

/// A transport, and its trials of each load.
pub(crate) struct Flooding {
    name: &'static str,
    ours: bool,
    transport: Box<dyn Flood>,
    trials: [Vec<Trial>; LOADS.len()],
}

struct Trial {
    messages: f64,
    took: Duration,
    usage: Usage,
    /// Packets that the receiver sent, if the transport reports them.
    answers: Option<u64>,
}

impl Flooding {
    fn new(name: &'static str, transport: impl Flood + 'static) -> Self {
        Self { name, ours: false, transport: Box::new(transport), trials: Default::default() }
    }

    fn ours(name: &'static str, transport: impl Flood + 'static) -> Self {
        Self { ours: true, ..Self::new(name, transport) }
    }

    fn trial(&mut self, load: &Load) -> Result<Trial> {
        let answers = self.transport.answers();
        let before = Usage::now()?;
        let (messages, took) = self.transport.flood(load.len, load.in_flight, TRIAL)?;
        Ok(Trial {
            messages: messages as f64,
            took,
            usage: Usage::since(before)?,
            answers: self.transport.answers().zip(answers).map(|(after, before)| after - before),
        })
    }

    /// Returns the ratio of messages a second to those of another transport.
    pub(crate) fn ratio(&self, other: &Self, load: usize) -> Median {
        let rounds = self.trials[load].iter().zip(&other.trials[load]);
        Median::of(rounds.map(|(own, other)| own.rate() / other.rate()))
    }
}

impl Trial {
    fn rate(&self) -> f64 {
        self.messages / self.took.as_secs_f64()
    }
}

pub(crate) fn measure(ends: &Ends, rounds: usize) -> Result<Vec<Flooding>> {
    let mut rivals = vec![
        Flooding::new("TCP", Tcp::asleep(ends)?),
        Flooding::new("quinn", Quic::open(ends)?),
        Flooding::ours("Cloudburst", Calls::open(ends, &config(Duration::ZERO))?),
        Flooding::ours("busy-polling", Calls::open(ends, &config(Config::default().busy_poll))?),
    ];
    for (at, load) in LOADS.iter().enumerate() {
        // The first round warms up caches, windows and estimates.
        for round in 0..=rounds {
            for rival in order(round, rivals.len()) {
                let rival = &mut rivals[rival];
                let trial = rival.trial(load);
                let trial =
                    trial.map_err(|error| format!("{}, {}: {error}", load.name, rival.name))?;
                if round > 0 {
                    rival.trials[at].push(trial);
                }
            }
        }
        eprintln!("floods of {}: done", load.name);
    }
    Ok(rivals)
}

/// Returns a Markdown table.
pub(crate) fn table(rivals: &[Flooding]) -> String {
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    let mut text = format!(
        "\n**Messages in flight: those a second, and what each costs**\n\n| | {} |\n|---|{}\n",
        names.join(" | "),
        "---:|".repeat(names.len())
    );
    for (at, load) in LOADS.iter().enumerate() {
        let mut row = |what: &str, cell: &dyn Fn(&Flooding) -> String| {
            let cells: Vec<_> = rivals.iter().map(cell).collect();
            text += &format!("| {}: {what} | {} |\n", load.name, cells.join(" | "));
        };
        let median = |rival: &Flooding, figure: &dyn Fn(&Trial) -> f64| {
            digits(Median::of(rival.trials[at].iter().map(figure)).value)
        };
        row("thousands a second", &|rival| median(rival, &|trial| trial.rate() / 1e3));
        row("Gb/s", &|rival| median(rival, &|trial| trial.rate() * load.len as f64 * 8e-9));
        for other in rivals.iter().filter(|rival| !rival.ours) {
            row(&format!("x {}", other.name), &|rival| {
                if rival.ours { rival.ratio(other, at).to_string() } else { "-".into() }
            });
        }
        row("CPU of both ends, us", &|rival| {
            median(rival, &|trial| micros(trial.usage.cpu) / trial.messages)
        });
        row("page faults", &|rival| {
            median(rival, &|trial| trial.usage.faults as f64 / trial.messages)
        });
        row("packets of the receiver", &|rival| {
            let reported = rival.trials[at].iter().all(|trial| trial.answers.is_some());
            let each = |trial: &Trial| trial.answers.unwrap_or(0) as f64 / trial.messages;
            if reported { median(rival, &each) } else { "-".into() }
        });
    }
    text
}
