//! Tables for the page and as Markdown.

use serde::Serialize;

/// A table with a caption and a header row.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The headings of the columns.
    pub head: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Whether it is folded on the page until a reader opens it.
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

    /// The table as Markdown, with pipes in cells escaped.
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
    fn a_pipe_character_does_not_break_a_table() {
        let table = Table::new("Pipes", &["a"], vec![vec!["b|c".to_owned()]]);
        assert_eq!(table.markdown(), "Pipes\n\n| a |\n| --- |\n| b\\|c |\n\n");
    }
}
