//! The savings of packet trains on one path, without loss and with offloads on.

use crate::cloudburst::Cloudburst;
use crate::report::{Times, digits};
use crate::transport::{LONGEST, Result, Transport};
use cloudburst_net::{Config, Tuning};
use cloudburst_testbed::Wire;
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
pub(crate) fn table(wire: &Wire) -> Result<String> {
    let with = |train| {
        Cloudburst::open_with(
            wire,
            &Config { tuning: Tuning { train, ..Tuning::default() }, ..Config::default() },
        )
    };
    let mut transports = TRAINS.map(with).into_iter().collect::<Result<Vec<_>>>()?;
    let mut goodputs = TRAINS.map(|_| Vec::new());
    let mut latencies = TRAINS.map(|_| Vec::new());
    // The first trials warm up caches and estimates.
    for trial in 0..=TRIALS {
        for (at, transport) in transports.iter_mut().enumerate() {
            let (messages, took) = transport.flood(LONGEST, IN_FLIGHT, FLOOD)?;
            let mut times = Times::new();
            times.add(&transport.round_trips(LONGEST, ROUND_TRIPS, LONGEST_TRIAL)?);
            if trial > 0 {
                let gigabits = messages as f64 * LONGEST as f64 * 8.0 / 1e9;
                goodputs[at].push(gigabits / took.as_secs_f64());
                latencies[at].extend(times.percentile(50.0));
            }
        }
    }
    let mut text = String::from(
        "| train | goodput/93KB, Gb/s | x train 4 | idle/93KB, p50, us | x train 4 |\n\
         |---:|---:|---:|---:|---:|\n",
    );
    for (at, train) in TRAINS.iter().enumerate() {
        let cells = [&goodputs, &latencies].map(|figures| {
            let ratios = figures[at].iter().zip(&figures[FOUR]).map(|(own, that)| own / that);
            let figure = median(figures[at].clone());
            let ratio = median(ratios.collect());
            format!("{} | {}", digits(figure), digits(ratio))
        });
        text += &format!("| {train} | {} |\n", cells.join(" | "));
    }
    Ok(text)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
