//! The paper's Figure 7 (IV-A): the cost of a message by degree.

use std::fmt::Write as _;

use clap::ValueEnum;
use cloudburst_core::code::{Code, Degree};

use crate::Common;
use crate::plot::{Chart, Dot, Line};
use crate::simulate::{self, Point, Repairs};
use crate::totals::Totals;

const DEGREES: std::ops::RangeInclusive<u8> = 1..=10;

/// The legend of hollow dots in the charts.
const HOLLOW: [&str; 2] = ["2 d > n:", "dense"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,

    /// The meaning of the degree d
    #[arg(long, value_enum, default_value_t = Law::Fixed)]
    degree: Law,

    /// Numbers of source symbols, from 1 to 128
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4,8,16,32,64,128", value_parser = clap::value_parser!(u8).range(1..=128))]
    n: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Law {
    /// Every symbol combines d source symbols, as in the paper, where that can work
    Fixed,
    /// Every number from 1 to d is equally likely
    Uniform,
}

impl Law {
    fn code(self, d: u8) -> Code {
        Code::Lt(match self {
            Self::Fixed => Degree::Fixed(d),
            Self::Uniform => Degree::Uniform(d),
        })
    }

    /// Returns whether the code draws dense sets instead of sets of degree d (`docs/spec.md`, 5.4).
    fn is_dense(self, d: u8, n: u8) -> bool {
        self == Self::Fixed && 2 * usize::from(d) > usize::from(n)
    }

    fn file_stem(self) -> &'static str {
        match self {
            Self::Fixed => "figure7",
            Self::Uniform => "figure7-uniform",
        }
    }
}

/// One point with its outcome.
struct Row {
    d: u8,
    n: u8,
    code: Code,
    totals: Totals,
}

impl Row {
    /// Returns the symbols needed per source symbol.
    fn ratio(&self) -> f64 {
        1.0 + self.totals.mean() / f64::from(self.n)
    }
}

/// Runs the simulation, and writes the CSV and both charts.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let Options { common, degree: law, n: sizes } = options;
    common.prepare()?;
    let places: Vec<(u8, u8)> = sizes.iter().flat_map(|&n| DEGREES.map(move |d| (d, n))).collect();
    let points: Vec<Point> = places
        .iter()
        .map(|&(d, n)| Point {
            code: law.code(d),
            n: usize::from(n),
            loss: 0,
            repairs: Repairs::Next,
        })
        .collect();
    let tallies = simulate::run(&points, common.effort());
    let rows: Vec<Row> = places
        .iter()
        .zip(tallies)
        .map(|(&(d, n), totals)| Row { d, n, code: law.code(d), totals })
        .collect();

    let stem = law.file_stem();
    common.write(&format!("{stem}.csv"), &csv(&rows))?;
    let lines = |value: &dyn Fn(&Row) -> f64| -> Vec<Line> {
        sizes.iter().map(|&n| line(n, *law, &rows, value)).collect()
    };
    let symbols = Chart {
        title: "(b) Coding overhead",
        y: "symbols needed / symbols in the message",
        hollow: HOLLOW,
        lines: lines(&Row::ratio),
    };
    let xors = Chart {
        title: "(a) Computation overhead",
        y: "XORs of payloads to decode a message",
        hollow: HOLLOW,
        lines: lines(&|row| row.totals.mean_decode_xors()),
    };
    xors.draw(&common.out.join(format!("{stem}a.svg")))?;
    symbols.draw(&common.out.join(format!("{stem}b.svg")))
}

fn csv(rows: &[Row]) -> String {
    let mut csv = String::from(
        "code,d,n,trials,symbols_mean,symbols_p99,symbols_over_n,decode_xors_mean,\
         encode_xors_mean\n",
    );
    for row in rows {
        let Row { d, n, code, totals } = row;
        let _ = writeln!(
            csv,
            "{code},{d},{n},{},{:.4},{},{:.4},{:.4},{:.4}",
            totals.trials(),
            f64::from(*n) + totals.mean(),
            usize::from(*n) + totals.percentile(99, 100),
            row.ratio(),
            totals.mean_decode_xors(),
            totals.mean_encode_xors(),
        );
    }
    csv
}

/// Returns the line of one n, with the `value` of each of its rows.
fn line(n: u8, law: Law, rows: &[Row], value: &dyn Fn(&Row) -> f64) -> Line {
    let dots = rows
        .iter()
        .filter(|row| row.n == n)
        .map(|row| Dot { x: row.d, y: value(row), hollow: law.is_dense(row.d, n) })
        .collect();
    Line { name: format!("n = {n}"), dots }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_cost_of_a_message() {
        let mut totals = Totals::default();
        totals.add(2, 20, 30);
        totals.add(1, 21, 30);
        let row = Row { d: 5, n: 10, code: Law::Fixed.code(5), totals };
        let csv = csv(&[row]);
        assert_eq!(csv.lines().nth(1), Some("lt:d=5,5,10,2,11.5000,12,1.1500,20.5000,30.0000"));
        assert_eq!(csv.lines().next().unwrap().split(',').count(), 9);
    }

    #[test]
    fn dots_of_drawn_degrees_are_hollow() {
        assert!(Law::Fixed.is_dense(5, 9) && !Law::Fixed.is_dense(5, 10));
        assert!(!Law::Uniform.is_dense(5, 9));
    }
}
