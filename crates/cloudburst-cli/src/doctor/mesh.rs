//! Several receivers, each examined from this host: a line for each.

use super::report::{Report, no_report};
use cloudburst_program::escaped;
use core::fmt;
use core::time::Duration;

/// The result for each receiver: its name on the command line, and its report or the error.
pub(super) struct Mesh(pub(super) Vec<(String, Result<Report, String>)>);

/// The findings for one receiver, summed over all source ports.
#[derive(Default)]
struct Sum {
    working: usize,
    sent: u64,
    lost_there: u64,
    answers: u64,
    lost_back: u64,
    /// The round trip of the fastest port.
    round_trip: Option<Duration>,
    rewritten: bool,
}

impl Mesh {
    /// Whether every receiver was examined without a problem.
    pub(super) fn is_healthy(&self) -> bool {
        let healthy = |report: &Report| report.problems.is_empty();
        self.0.iter().all(|(_, found)| found.as_ref().is_ok_and(healthy))
    }

    /// Formats one object, on one line, that has the objects of all receivers.
    pub(super) fn to_json(&self) -> String {
        let objects = self.0.iter().map(|(host, found)| match found {
            Ok(report) => report.to_json(),
            Err(error) => no_report(Some(host), error),
        });
        let objects: Vec<String> = objects.map(|object| object.trim_end().to_owned()).collect();
        format!("{{\"receivers\":[{}]}}\n", objects.join(","))
    }
}

impl Sum {
    fn of(report: &Report) -> Self {
        let mut sum = Self::default();
        for found in report.measured.ports.iter().filter_map(|port| port.found.as_ref()) {
            sum.working += 1;
            sum.sent += found.sent;
            sum.lost_there += found.lost_there;
            sum.answers += found.answers;
            sum.lost_back += found.lost_back;
            sum.rewritten |= found.is_rewritten_there() || found.is_rewritten_back();
            let time = found.round_trip_seconds.map(Duration::from_secs_f64);
            sum.round_trip = sum.round_trip.into_iter().chain(time).min();
        }
        sum
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = || self.0.iter().map(|(host, found)| (escaped(host), found));
        let width = rows().map(|(host, _)| host.chars().count()).max().unwrap_or(0).max(8);
        writeln!(
            f,
            "{:<width$}  ports  paths  lost there  lost back  round trip  DSCP     problems",
            "receiver"
        )?;
        for (host, found) in rows() {
            match found {
                Ok(report) => line(f, &host, width, report)?,
                Err(_) => writeln!(f, "{host:<width$}  not examined")?,
            }
        }
        for (host, found) in rows() {
            match found {
                Ok(report) => {
                    for problem in &report.problems {
                        writeln!(f, "\n{host}: {}\n   -> {}", problem.what, problem.remedy)?;
                    }
                }
                Err(error) => writeln!(f, "\n{host}: {}", escaped(error))?,
            }
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, host: &str, width: usize, report: &Report) -> fmt::Result {
    let sum = Sum::of(report);
    let ports = format!("{}/{}", sum.working, report.measured.ports.len());
    // Routers that do not answer may hide more.
    let paths =
        report.measured.paths.as_ref().map_or("?".into(), |paths| format!("{}+", paths.len()));
    let there = percent(sum.lost_there, sum.sent);
    let back = percent(sum.lost_back, sum.answers);
    let time =
        sum.round_trip.map_or("?".into(), |time| format!("{:.2} ms", time.as_secs_f64() * 1e3));
    let dscp = match report.measured.here.dscp == report.measured.there.dscp {
        false => "differs",
        true if sum.rewritten => "changed",
        true => "kept",
    };
    let problems = report.problems.len();
    writeln!(
        f,
        "{host:<width$}  {ports:>5}  {paths:>5}  {there:>10}  {back:>9}  {time:>10}  {dscp:<7}  {problems:>8}"
    )
}

fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "?".into(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}
