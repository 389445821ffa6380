//! The symbols beyond n that the codes need.

use std::fmt::Write as _;
use std::str::FromStr;

use cloudburst_core::code::{Code, MAX_SOURCE_SYMBOLS};

use crate::Common;
use crate::simulate::{self, Point, Repairs};
use crate::totals::Totals;

/// The codes simulated without `--codes`. Codes that this build does not support are skipped, with a
/// message on standard error.
const CODES: [&str; 6] =
    ["lt:d=5", "lt:d=9", "lt:robust", "lt-systematic:dense", "rlf256", "raptorq"];

/// The shares of the first n symbols that are lost, in percent.
const LOSSES: [usize; 6] = [0, 1, 5, 20, 50, 100];

/// The values of n in the tables; the CSV has all.
const TABLED: [usize; 12] = [1, 2, 4, 7, 8, 14, 16, 32, 35, 64, 100, 128];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,

    /// Codes, such as lt:d=5,rlf256 [default: lt:d=5, lt:d=9, lt:robust, lt-systematic:dense, rlf256,
    /// raptorq]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    codes: Vec<Code>,

    /// Numbers of source symbols, from 1 to 128 [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=128))]
    n: Vec<u8>,
}

/// Simulates, writes the CSV, and prints the tables.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let common = &options.common;
    common.prepare()?;
    let codes = if options.codes.is_empty() { known_codes() } else { options.codes.clone() };
    let sizes: Vec<usize> = match &options.n[..] {
        [] => (1..=MAX_SOURCE_SYMBOLS).collect(),
        list => list.iter().map(|&n| usize::from(n)).collect(),
    };
    let points: Vec<Point> = codes.iter().flat_map(|&code| points(code, &sizes)).collect();
    let tallies = simulate::run(&points, common.effort());
    let rows: Vec<(Point, Totals)> = points.into_iter().zip(tallies).collect();
    common.write("extra-symbols.csv", &csv(&rows))?;
    print!("{}", tables(&codes, &rows));
    Ok(())
}

fn known_codes() -> Vec<Code> {
    let known =
        |name: &&str| Code::from_str(name).inspect_err(|error| eprintln!("left out: {error}")).ok();
    CODES.iter().filter_map(known).collect()
}

/// Returns all points of one code.
fn points(code: Code, sizes: &[usize]) -> Vec<Point> {
    let with = |repairs, losses: &'static [usize]| {
        sizes
            .iter()
            .flat_map(move |&n| losses.iter().map(move |&loss| Point { code, n, loss, repairs }))
    };
    let mut points: Vec<Point> = with(Repairs::Next, &LOSSES).collect();
    if code == Code::Rlf256 {
        // It has two kinds of repair symbols, and short bursts use only one of them.
        points.extend(with(Repairs::Far, &LOSSES[1..]));
    }
    points
}

fn csv(rows: &[(Point, Totals)]) -> String {
    let mut csv = String::from("code,repairs,n,loss_percent,trials,mean,p99,p99.9,max\n");
    for (Point { code, n, loss, repairs }, totals) in rows {
        let _ = writeln!(
            csv,
            "{code},{repairs},{n},{loss},{},{:.4},{},{},{}",
            totals.trials(),
            totals.mean(),
            totals.percentile(99, 100),
            totals.percentile(999, 1000),
            totals.max(),
        );
    }
    csv
}

/// Returns a table of the codes without source symbols, for which loss makes no difference, and a table of
/// each other code by loss, unless all of its entries are zero.
fn tables(codes: &[Code], rows: &[(Point, Totals)]) -> String {
    let mut text = String::new();
    let drawn: Vec<Code> = codes.iter().copied().filter(|code| !code.is_systematic()).collect();
    if !drawn.is_empty() {
        let columns: Vec<(String, Key)> =
            drawn.iter().map(|&code| (format!("`{code}`"), (code, 0, Repairs::Next))).collect();
        let _ = writeln!(text, "Codes without source symbols, 0 % lost:\n");
        text += &table(&columns, rows);
    }
    for &code in codes.iter().filter(|code| code.is_systematic()) {
        text += &by_loss(code, Repairs::Next, &LOSSES, rows);
        if code == Code::Rlf256 {
            text += &by_loss(code, Repairs::Far, &LOSSES[1..], rows);
        }
    }
    text
}

/// The key of a column: the code, the loss in percent, the repairs.
type Key = (Code, usize, Repairs);

fn by_loss(code: Code, repairs: Repairs, losses: &[usize], rows: &[(Point, Totals)]) -> String {
    let of_code =
        || rows.iter().filter(|(point, _)| point.code == code && point.repairs == repairs);
    let name = match repairs {
        Repairs::Next => format!("`{code}`"),
        Repairs::Far => format!("`{code}`, repairs from a random id of 256 or more on"),
    };
    if of_code().all(|(_, totals)| totals.max() == 0) {
        let trials: u64 = of_code().map(|(_, totals)| totals.trials()).sum();
        return format!("{name}: no extra symbol in any of {trials} trials.\n\n");
    }
    let columns: Vec<(String, Key)> =
        losses.iter().map(|&loss| (format!("{loss} % lost"), (code, loss, repairs))).collect();
    format!("{name}:\n\n{}", table(&columns, rows))
}

fn table(columns: &[(String, Key)], rows: &[(Point, Totals)]) -> String {
    let mut text = String::from("| n |");
    for (name, _) in columns {
        let _ = write!(text, " {name} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for n in TABLED {
        let cells: Vec<String> = columns.iter().filter_map(|(_, key)| cell(n, key, rows)).collect();
        if !cells.is_empty() {
            let _ = writeln!(text, "| {n} | {} |", cells.join(" | "));
        }
    }
    text.push('\n');
    text
}

/// Returns "mean / p99 / p99.9"; `None` if this n was not requested.
fn cell(n: usize, key: &Key, rows: &[(Point, Totals)]) -> Option<String> {
    let (_, totals) = rows
        .iter()
        .find(|(point, _)| point.n == n && (point.code, point.loss, point.repairs) == *key)?;
    let mean = match totals.mean() {
        0.0 => String::from("0"),
        mean if mean < 0.1 => format!("{mean:.4}"),
        mean if mean < 10.0 => format!("{mean:.2}"),
        mean => format!("{mean:.1}"),
    };
    Some(format!("{mean} / {} / {}", totals.percentile(99, 100), totals.percentile(999, 1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code: &str, loss: usize, extras: &[usize]) -> (Point, Totals) {
        let mut totals = Totals::default();
        extras.iter().for_each(|&extra| totals.add(extra, 0, 0));
        (Point { code: code.parse().unwrap(), n: 14, loss, repairs: Repairs::Next }, totals)
    }

    #[test]
    fn rows_show_the_extra_symbols_needed() {
        let csv = csv(&[row("lt", 20, &[0, 1, 1, 7])]);
        assert_eq!(csv.lines().nth(1), Some("lt:d=5,next,14,20,4,2.2500,7,7,7"));
        assert_eq!(csv.lines().next().unwrap().split(',').count(), 9);
    }

    #[test]
    fn tables_have_drawn_codes_beside_each_other_and_others_by_loss() {
        let rows = [
            row("lt", 0, &[0, 1]),
            row("lt:robust", 0, &[12, 11]),
            row("lt-systematic", 0, &[0, 0]),
            row("lt-systematic", 1, &[0, 2]),
            row("rlf256", 0, &[0, 0]),
        ];
        let codes = ["lt", "lt:robust", "lt-systematic", "rlf256"].map(|c| c.parse().unwrap());
        let text = tables(&codes, &rows);
        assert!(text.contains("| n | `lt:d=5` | `lt:robust` |\n"), "{text}");
        assert!(text.contains("| 14 | 0.50 / 1 / 1 | 11.5 / 12 / 12 |\n"), "{text}");
        assert!(text.contains("| 14 | 0 / 0 / 0 | 1.00 / 2 / 2 |\n"), "{text}");
        assert!(text.contains("`rlf256`: no extra symbol in any of 2 trials.\n"), "{text}");
    }

    #[test]
    fn only_rlf256_is_tried_beyond_the_cauchy_rows_and_only_with_losses() {
        let far = |code: Code| {
            let points = points(code, &[3, 5]);
            points.into_iter().filter(|point| point.repairs == Repairs::Far).collect::<Vec<_>>()
        };
        assert!(far("lt-systematic".parse().unwrap()).is_empty());
        assert_eq!(far(Code::Rlf256).len(), 10);
        assert!(far(Code::Rlf256).iter().all(|point| point.loss > 0));
    }
}
