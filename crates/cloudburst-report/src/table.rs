//! Tables, as Markdown and for the page.

use serde::Serialize;

/// A caption, a line of heads, lines.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// One for each column.
    pub head: Vec<String>,
    /// Each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Whether it is for those who look closer: folded on the page.
    pub fold: bool,
}

impl Table {
    /// A table that is not folded.
    pub fn new(caption: impl Into<String>, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        let head = head.iter().map(|head| (*head).to_owned()).collect();
        Self { caption: caption.into(), head, rows, fold: false }
    }

    /// The same, folded.
    pub fn folded(self) -> Self {
        Self { fold: true, ..self }
    }

    /// As Markdown, with a pipe in a cell escaped.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<_> = self.head.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}\n\n{}{}{rows}\n", self.caption, line(&self.head), line(&rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_does_not_break_a_table() {
        let table = Table::new("Pipes", &["a"], vec![vec!["b|c".to_owned()]]);
        assert_eq!(table.markdown(), "Pipes\n\n| a |\n| --- |\n| b\\|c |\n\n");
    }
}
