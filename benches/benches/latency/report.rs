//! The table.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The figures of one row, in the order of the transports; `None` if one was not measured.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) figures: [Option<f64>; 3],
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    /// Thousands of messages a second.
    Thousands,
    /// Gigabits per second.
    Gigabits,
    /// Per message.
    Each,
}

/// The durations of a transport's round trips.
pub(crate) struct Times(Histogram<u64>);

impl Times {
    pub(crate) fn new() -> Self {
        // Three significant digits for times of any size.
        Self(Histogram::new(3).expect("3 is a number of digits that histograms can have"))
    }

    pub(crate) fn add(&mut self, took: &[Duration]) {
        for time in took {
            // It grows as needed: every time is in its range.
            self.0 += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns a percentile in microseconds; `None` without any round trip.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1e3)
    }
}

/// Returns the rows as a Markdown table below its title, with the ratios of Cloudburst to the others.
/// Empty without rows.
pub(crate) fn section(title: &str, rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "**{title}**\n\n\
         | | TCP, in the clear | quinn | Cloudburst | x TCP | x quinn |\n\
         |---|---:|---:|---:|---:|---:|\n"
    );
    for Row { name, figures, unit } in rows {
        let [tcp, quinn, cloudburst] = *figures;
        let cell =
            |figure: Option<f64>| figure.map_or("-".into(), |figure| with_unit(figure, *unit));
        let times = |other| ratio(cloudburst, other).map_or("-".into(), digits);
        text += &format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            cell(tcp),
            cell(quinn),
            cell(cloudburst),
            times(tcp),
            times(quinn),
        );
    }
    text + "\n"
}

fn with_unit(figure: f64, unit: Unit) -> String {
    match unit {
        Unit::Microseconds if figure >= 1000.0 => format!("{} ms", digits(figure / 1e3)),
        Unit::Microseconds => format!("{} us", digits(figure)),
        Unit::Thousands => format!("{} k/s", digits(figure)),
        Unit::Each => digits(figure),
        Unit::Gigabits => format!("{} Gb/s", digits(figure)),
    }
}

/// Returns the ratio; `None` if a figure was not measured, or the other one is almost zero.
pub(crate) fn ratio(figure: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(figure? / other.filter(|&other| other >= 0.01)?)
}

/// Formats a figure with at least two digits, and at most three decimals.
pub(crate) fn digits(figure: f64) -> String {
    let behind = match figure {
        ..0.1 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{figure:.behind$}")
}
