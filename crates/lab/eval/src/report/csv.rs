//! All measurements as CSV.

use crate::{Failure, Message, Run, Trial};
use cloudburst_report::write_csv;
use serde::Serialize;
use std::path::Path;

/// A message with its trial.
#[derive(Serialize)]
struct MessageRow<'a> {
    experiment: &'a str,
    scheme: &'a str,
    load: f64,
    x: f64,
    repetition: u32,
    id: u32,
    from: u16,
    to: u16,
    bytes: u32,
    at_us: u64,
    took_us: Option<u64>,
    packets: Option<u32>,
    source_packets: Option<u32>,
}

/// A trial without its messages.
#[derive(Serialize)]
struct TrialRow<'a> {
    experiment: &'a str,
    scheme: &'a str,
    load: f64,
    x: f64,
    repetition: u32,
    seconds: f64,
    background_bytes: u64,
    background_flows: u32,
    busy: f64,
    stolen: f64,
    tiny_sent: u64,
    tiny_dropped: u64,
    default_sent: u64,
    default_dropped: u64,
}

/// Writes every message of every trial. The time of a message that did not arrive is empty.
pub(super) fn messages(run: &Run, path: &Path) -> Result<(), Failure> {
    let rows = run
        .trials
        .iter()
        .flat_map(|trial| trial.messages.iter().map(move |message| MessageRow::of(trial, message)));
    Ok(write_csv(path, rows)?)
}

/// Writes every trial.
pub(super) fn trials(run: &Run, path: &Path) -> Result<(), Failure> {
    Ok(write_csv(path, run.trials.iter().map(TrialRow::of))?)
}

impl<'a> MessageRow<'a> {
    fn of(trial: &'a Trial, message: &Message) -> Self {
        Self {
            experiment: &trial.experiment,
            scheme: &trial.scheme,
            load: trial.load,
            x: trial.x,
            repetition: trial.repetition,
            id: message.id,
            from: message.from,
            to: message.to,
            bytes: message.bytes,
            at_us: message.at_us,
            took_us: message.took_us,
            packets: message.packets,
            source_packets: message.source_packets,
        }
    }
}

impl<'a> TrialRow<'a> {
    fn of(trial: &'a Trial) -> Self {
        Self {
            experiment: &trial.experiment,
            scheme: &trial.scheme,
            load: trial.load,
            x: trial.x,
            repetition: trial.repetition,
            seconds: trial.seconds,
            background_bytes: trial.background_bytes,
            background_flows: trial.background_flows,
            busy: trial.busy,
            stolen: trial.stolen,
            tiny_sent: trial.tiny_sent,
            tiny_dropped: trial.tiny_dropped,
            default_sent: trial.default_sent,
            default_dropped: trial.default_dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic;
    use super::*;

    #[test]
    fn messages_are_read_back_as_they_were_written() {
        let mut run = synthetic::run(1, &["schemes"]);
        run.trials.truncate(2);
        run.trials[0].scheme = "d:code=lt,policy=\"until-stop\"".to_owned();
        run.trials[0].messages[0].took_us = None;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messages.csv");
        messages(&run, &path).unwrap();
        let rows: Vec<csv::StringRecord> =
            csv::Reader::from_path(&path).unwrap().records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), run.trials.iter().map(|trial| trial.messages.len()).sum::<usize>());
        assert_eq!((&rows[0][0], &rows[0][1]), ("schemes", run.trials[0].scheme.as_str()));
        let message: Message = Message {
            id: rows[1][5].parse().unwrap(),
            from: rows[1][6].parse().unwrap(),
            to: rows[1][7].parse().unwrap(),
            bytes: rows[1][8].parse().unwrap(),
            at_us: rows[1][9].parse().unwrap(),
            took_us: rows[1][10].parse().ok(),
            packets: rows[1][11].parse().ok(),
            source_packets: rows[1][12].parse().ok(),
        };
        assert_eq!((&rows[0][10], message), ("", run.trials[0].messages[1].clone()));
    }

    #[test]
    fn trials_are_a_line_each() {
        let run = synthetic::run(2, &["friendly"]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trials.csv");
        trials(&run, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), run.trials.len() + 1);
        assert!(text.starts_with("experiment,scheme,load,x,repetition,seconds,background_bytes,"));
    }

    #[test]
    fn the_error_names_a_file_that_cannot_be_written() {
        let failure = trials(&synthetic::run(1, &[]), Path::new("/nonexistent/trials.csv"));
        assert!(
            failure.unwrap_err().to_string().contains("/nonexistent/trials.csv: cannot be written")
        );
    }
}
