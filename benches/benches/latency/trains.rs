//! The savings of packet trains on one path, without loss and with offloads on.

use cloudburst_benches::Result;
use cloudburst_benches::ends::Ends;
use cloudburst_benches::stats::{Median, digits, micros, order, percentile};
use cloudburst_benches::transport::{Calls, Flood, LONGEST, Transport, config};
use cloudburst_net::{Config, Tuning};
use std::time::Duration;

/// The maximum train lengths: on this wire, trains reach them.
const TRAINS: [usize; 6] = [1, 2, 4, 8, 16, 64];
/// The index of the length that the others are compared with.
const FOUR: usize = 2;
const IN_FLIGHT: usize = 32;
/// Trials of each length, the length of the flood in each, and the number of round trips after it.
const TRIALS: usize = 8;
const FLOOD: Duration = Duration::from_millis(150);
const ROUND_TRIPS: usize = 100;
const LONGEST_TRIAL: Duration = Duration::from_millis(200);

/// Returns a Markdown table: for each figure the median over trials, and the median of its ratio to
/// trains of four in the same trial.
pub(crate) fn table(ends: &Ends) -> Result<String> {
    let mut transports = Vec::new();
    for train in TRAINS {
        let tuning = Tuning { train, ..Tuning::default() };
        transports.push(Calls::open(ends, &Config { tuning, ..config(Duration::ZERO) })?);
    }
    let mut goodputs = TRAINS.map(|_| Vec::new());
    let mut latencies = TRAINS.map(|_| Vec::new());
    // The first trials warm up caches and estimates.
    for trial in 0..=TRIALS {
        for at in order(trial, TRAINS.len()) {
            let (messages, took) = transports[at].flood(LONGEST, IN_FLIGHT, FLOOD)?;
            let mut times = transports[at].round_trips(LONGEST, ROUND_TRIPS, LONGEST_TRIAL)?;
            times.sort_unstable();
            if trial > 0 {
                let gigabits = messages as f64 * LONGEST as f64 * 8.0 / 1e9;
                goodputs[at].push(gigabits / took.as_secs_f64());
                latencies[at].push(micros(percentile(&times, 50)));
            }
        }
    }
    let mut text = String::from(
        "\n| train | 93 KB, 32 in flight, Gb/s | x train 4 | a call of 93 KB, p50, us | x train 4 |\n\
         |---:|---:|---:|---:|---:|\n",
    );
    for (at, train) in TRAINS.iter().enumerate() {
        let cells = [&goodputs, &latencies].map(|figures| {
            let ratios = figures[at].iter().zip(&figures[FOUR]).map(|(own, that)| own / that);
            let figure = Median::of(figures[at].iter().copied()).value;
            format!("{} | {}", digits(figure), digits(Median::of(ratios).value))
        });
        text += &format!("| {train} | {} |\n", cells.join(" | "));
    }
    Ok(text)
}
