//! The report of a run: tables, figures and a page.

mod claims;
mod csv;
mod figures;
mod names;
mod points;
#[cfg(test)]
mod synthetic;
mod tables;
#[cfg(test)]
mod tests;

use crate::evaluate::MOST_STOLEN;
use crate::{About, Failure, Run};
use cloudburst_report::numbers::figure;
use cloudburst_report::{Report, Section};
use points::ExperimentResults;
use std::path::Path;

/// Writes the report of `run` into `directory`: `tables.md`, `claims.md`, `figures/` with an SVG and
/// a PNG of each figure, `index.html`, `messages.csv` and `trials.csv`.
///
/// The same run gives the same bytes.
///
/// # Errors
///
/// If a file cannot be written.
pub fn report(run: &Run, directory: &Path) -> Result<(), Failure> {
    let experiments = ExperimentResults::of(run);
    let report = Report {
        title: "Cloudburst: the paper's evaluation",
        heading: "Cloudburst: the paper's evaluation with real transports",
        lead: "Section V of <cite>Cutting Tail Latency in Commodity Datacenters with \
               Cloudburst</cite> (INFOCOM\n2022), measured anew.",
        date: run.about.date.clone(),
        empty: "The run has no trials: nothing was measured.".to_owned(),
        facts: facts(&run.about),
        lacks: run.about.lacks.clone(),
        notes: notes(run),
        how: claims::HOW.to_owned(),
        claims: claims::of(&experiments),
        sections: experiments.iter().map(section).collect(),
    };
    report.write(directory)?;
    csv::messages(run, &directory.join("messages.csv"))?;
    csv::trials(run, &directory.join("trials.csv"))
}

fn section(experiment: &ExperimentResults<'_>) -> Section {
    let (title, description) = described(experiment.name);
    Section {
        name: experiment.name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        figures: figures::of(experiment),
        tables: tables::of(experiment),
    }
}

/// An experiment's title and description.
fn described(experiment: &str) -> (&'static str, &'static str) {
    match experiment {
        "design-choices" => (
            "Design choices",
            "Section V-A: the contributions of coding, multiple paths and tiny queues, with \
             all-to-all requests beside background flows.",
        ),
        "schemes" => (
            "Schemes",
            "Section V-B: Cloudburst compared with transports for commodity hardware, with \
             all-to-all requests beside background flows.",
        ),
        "incast" => (
            "Incast",
            "Section V-C: one receiver requests N messages of 90 KB at once from the hosts of \
             another rack.",
        ),
        "failures" => ("Dead paths", "Section V-C: some of the paths between the racks are dead."),
        "rate" => (
            "Sending rate",
            "Section V-D: Cloudburst's sending rate r, in a network that is over-subscribed 2:1.",
        ),
        "loss" => ("Random loss", "Packets are lost at random on the links between the racks."),
        "friendly" => (
            "Background flows",
            "The goodput that the short flows of each scheme leave to background flows.",
        ),
        "compare" => (
            "Comparison",
            "Schemes chosen by the user, with all-to-all requests beside background flows.",
        ),
        _ => ("Another experiment", "This report has no figures for this experiment."),
    }
}

/// Notes on how to read the figures.
fn notes(run: &Run) -> Vec<String> {
    let scale = run.about.scale;
    let loads = if scale == 1.0 {
        "Loads are the paper's, in requests a second of all hosts together (r/s).".to_owned()
    } else {
        format!(
            "Loads are written as in the paper, in requests a second of all hosts together (r/s). \
             The actual loads are these divided by {scale}, because the paper's links of 1 Gb/s \
             are {scale} times as fast as these. Compare times with each other, and only their \
             ratios with the paper's."
        )
    };
    const OTHERS: [&str; 7] = [
        "TCP cubic stands in for the paper's DCTCP with ECMP.",
        "Completion times run from when a request was due until the whole response had arrived. A \
         message that did not arrive within the deadline has an infinite time. A figure that falls \
         on one is written \"> deadline\", and the end of an interval that does is \"∞\".",
        "Quantiles are by nearest rank over the messages of all repetitions. Their 95 % intervals, \
         and those of mean completion times, are from a seeded percentile bootstrap in two stages: \
         repetitions are drawn with replacement, then messages within each, 1000 times. If \
         repetitions are few and differ much, such an interval is too narrow. The interval of a \
         mean over sizes runs from the mean of the lower ends to the mean of the upper ends.",
        "With fewer than 100 messages there is no p99, and with fewer than 1000 no p99.9: the \
         longest time stands in its place, marked \"max\". With fewer than 368 messages a p99 has \
         no interval, because the true p99 may well be longer than all of them.",
        "Intervals of incasts and of goodput are Student's t intervals over repetitions. With one \
         repetition there are none.",
        "Ratios of sent to original packets cover only messages that their sender knows to have \
         arrived.",
        "Cloudburst A to D are the paper's design choices with this project's defaults; (lt, \
         until-stop) has the paper's code and bursts, but this project's trains of packets and \
         paths: it is not all of the paper's Algorithm 1.",
    ];
    let others = OTHERS.iter().map(|note| (*note).to_owned());
    let stolen: Vec<f64> = run.trials.iter().map(|trial| trial.stolen).collect();
    let disturbed = stolen.iter().filter(|stolen| **stolen > MOST_STOLEN).count();
    let most = stolen.iter().copied().fold(0.0, f64::max) * 100.0;
    let calm = format!(
        "Other virtual machines took more than 1 % of the processors during {disturbed} of the {} \
         trials, and at most {most:.1} %. The figures include these trials.",
        stolen.len()
    );
    [loads, calm].into_iter().chain(others).collect()
}

/// Facts about the run.
fn facts(about: &About) -> Vec<(String, String)> {
    let About { link_rate, scale, repetitions, seconds, warm_up_seconds, .. } = about;
    let rate = figure(*link_rate as f64 / 1e6);
    let minutes = figure(about.took_s / 60.0);
    let repeated = format!(
        "{repetitions}, each {seconds} s after {warm_up_seconds} s of warm-up; trials were \
         repeated {} times because other virtual machines took more than 1 % of the processors",
        about.retaken
    );
    let facts = [
        ("Date", about.date.clone()),
        ("Command", about.command.clone()),
        ("Version", about.version.clone()),
        ("Machine", about.machine.clone()),
        ("Kernel", about.kernel.clone()),
        ("Network", about.network.clone()),
        ("Links", format!("{rate} Mb/s; request rates are the paper's divided by {scale}")),
        ("Repetitions", repeated),
        ("Seed", about.seed.to_string()),
        ("Duration", format!("{minutes} min")),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}
