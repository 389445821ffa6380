//! The rows of transports under load, and the cost of a message in them.

use crate::Transports;
use crate::report::{Row, Unit};
use crate::transport::{Result, Transport};
use crate::usage::{SystemCalls, Usage};
use std::time::Duration;

/// Trials of each transport in a row, and the length of each.
const TRIALS: usize = 5;
const TRIAL: Duration = Duration::from_millis(400);

struct Flood {
    name: &'static str,
    len: usize,
    in_flight: usize,
    unit: Unit,
}

const FLOODS: [Flood; 2] = [
    Flood { name: "rate/5KB", len: 5_000, in_flight: 64, unit: Unit::Thousands },
    Flood { name: "goodput/93KB", len: 93_000, in_flight: 32, unit: Unit::Gigabits },
];

/// The sum of a transport's trials.
#[derive(Clone, Copy, Default)]
struct Sum {
    messages: usize,
    took: Duration,
    cpu: Duration,
    faults: u64,
    /// `None` if the transport does not report it.
    answers: Option<u64>,
}

pub(crate) fn rows(transports: &mut Transports, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for flood in FLOODS.iter().filter(|flood| wanted(flood.name)) {
        rows.extend(flood.rows(transports)?);
    }
    Ok(rows)
}

impl Flood {
    fn rows(&self, transports: &mut Transports) -> Result<[Row; 5]> {
        let blame = |who: &str, error: String| format!("{}, {who}: {error}", self.name);
        let mut sums = [Sum::default(); 3];
        // The first trials warm up caches, windows and estimates.
        for round in 0..=TRIALS {
            for ((who, transport), sum) in transports.iter_mut().zip(&mut sums) {
                let trial = self.trial(&mut **transport).map_err(|error| blame(who, error))?;
                if round > 0 {
                    sum.add(trial);
                }
            }
        }
        let mut calls = [None; 3];
        for ((who, transport), calls) in transports.iter_mut().zip(&mut calls) {
            *calls = self.calls(&mut **transport).map_err(|error| blame(who, error))?;
        }
        eprintln!(
            "{}: messages of TCP, quinn, Cloudburst: {:?}",
            self.name,
            sums.map(|sum| sum.messages)
        );
        let row = |what, unit, figures| Row { name: format!("{}{what}", self.name), figures, unit };
        let each = if self.unit == Unit::Gigabits { self.len as f64 * 8.0 / 1e9 } else { 1e-3 };
        let speed = |sum: Sum| Some(sum.messages as f64 * each / sum.took.as_secs_f64());
        let cpu = |sum: Sum| Some(sum.cpu.as_secs_f64() * 1e6 / sum.messages as f64);
        let faults = |sum: Sum| Some(sum.faults as f64 / sum.messages as f64);
        let answers = |sum: Sum| Some(sum.answers? as f64 / sum.messages as f64);
        Ok([
            row("", self.unit, sums.map(speed)),
            row(", CPU", Unit::Microseconds, sums.map(cpu)),
            row(", page faults", Unit::Each, sums.map(faults)),
            row(", system calls", Unit::Each, calls),
            row(", answers", Unit::Each, sums.map(answers)),
        ])
    }

    fn trial(&self, transport: &mut dyn Transport) -> Result<Sum> {
        let before = Usage::now()?;
        let answers = transport.answers();
        let (messages, took) = transport.flood(self.len, self.in_flight, TRIAL)?;
        let after = Usage::now()?;
        Ok(Sum {
            messages,
            took,
            cpu: after.cpu.saturating_sub(before.cpu),
            faults: after.faults - before.faults,
            answers: transport.answers().zip(answers).map(|(after, before)| after - before),
        })
    }

    /// Returns the system calls per message, in a separate trial, because counting them takes time.
    /// `None` if the system does not permit this process to count them.
    fn calls(&self, transport: &mut dyn Transport) -> Result<Option<f64>> {
        let counter = match SystemCalls::count() {
            Ok(counter) => counter,
            Err(error) => {
                eprintln!("{}: system calls are not counted: {error}", self.name);
                return Ok(None);
            }
        };
        let (messages, _) = transport.flood(self.len, self.in_flight, TRIAL)?;
        Ok(Some(counter.total()? as f64 / messages as f64))
    }
}

impl Sum {
    fn add(&mut self, trial: Self) {
        self.messages += trial.messages;
        self.took += trial.took;
        self.cpu += trial.cpu;
        self.faults += trial.faults;
        self.answers = trial.answers.map(|answers| answers + self.answers.unwrap_or(0));
    }
}
