//! Packets sent over original packets, with the paper's values.

use super::dash;
use crate::report::names;
use crate::report::points::ExperimentResults;
use cloudburst_report::{Table, numbers, statistics};
use cloudburst_workload::paper::LOADS;

/// Sent over original packets in the paper (Table 14), as printed: for its loads, then the mean.
const TABLE_14: [(&str, [f64; 4]); 6] = [
    ("5 KB", [1.221, 1.241, 1.381, 1.281]),
    ("10 KB", [1.478, 1.133, 1.367, 1.331]),
    ("20 KB", [1.398, 1.972, 1.875, 1.748]),
    ("50 KB", [1.167, 1.311, 1.643, 1.373]),
    ("93 KB", [1.542, 1.928, 1.676, 1.715]),
    (MEAN, [1.361, 1.517, 1.591, 1.490]),
];
const MEAN: &str = "mean";

/// The paper's value in a row: in the column `load`, or in that of the mean over loads.
fn in_table_14(row: &str, load: Option<f64>) -> Option<f64> {
    let values = TABLE_14.iter().find(|(name, _)| *name == row)?.1;
    match load {
        Some(load) => Some(values[LOADS.iter().position(|known| *known == load)?]),
        None => Some(values[3]),
    }
}

/// Table 14, one for each scheme of Cloudburst D.
pub(super) fn of(experiment: &ExperimentResults<'_>) -> Vec<Table> {
    let loads = experiment.loads();
    let table = |scheme: &str| {
        let ratios = |bytes: u32| -> Vec<Option<f64>> {
            let at =
                |load: &f64| experiment.at(scheme, *load, 0.0)?.sent_over_original(Some(bytes));
            loads.iter().map(at).collect()
        };
        let sizes = experiment.sizes();
        let mut lines: Vec<_> = sizes.iter().map(|b| (numbers::size(*b), ratios(*b))).collect();
        let column = |k: usize| mean(&lines.iter().map(|line| line.1[k]).collect::<Vec<_>>());
        let whole = (0..loads.len()).map(column).collect();
        lines.push((MEAN.to_owned(), whole));
        let row = |(name, ours): (String, Vec<Option<f64>>)| {
            let three = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.3}"));
            let cell =
                |ours, load| format!("{} ({})", three(ours), three(in_table_14(&name, load)));
            let cells = ours.iter().zip(&loads).map(|(ours, load)| cell(*ours, Some(*load)));
            let cells: Vec<_> = cells.chain([cell(mean(&ours), None)]).collect();
            [vec![name], cells].concat()
        };
        let mut head = vec!["size".to_owned()];
        head.extend(loads.iter().map(|load| format!("{load} r/s")));
        head.push(MEAN.to_owned());
        let name = names::display(scheme);
        let caption = format!("Table 14: packets sent over original packets, {name} (paper)");
        Table { caption, head, rows: lines.into_iter().map(row).collect(), fold: false }
    };
    let ours = experiment.schemes().into_iter().filter(|scheme| names::split(scheme).0 == "d");
    ours.map(table).collect()
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    statistics::mean(&values.iter().flatten().copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::synthetic;

    #[test]
    fn table_14_shows_the_papers_values_in_parentheses() {
        let run = synthetic::run(1, &["schemes"]);
        let tables = of(&ExperimentResults::of(&run)[0]);
        assert_eq!(tables.len(), 2);
        assert!(tables[1].caption.contains("Cloudburst D (lt, until-stop)"));
        let last = tables[0].rows.last().unwrap();
        assert_eq!((last[0].as_str(), last.len()), ("mean", 5));
        assert!(last[1].ends_with("(1.361)") && last[4].ends_with("(1.490)"), "{last:?}");
        assert!(tables[0].rows[4][3].ends_with("(1.676)"));
    }
}
