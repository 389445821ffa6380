//! Measurements as CSV.

use crate::Error;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Writes a header line with the names of the rows' fields, and a line for each row. Without rows, the
/// file is empty.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_csv(path: &Path, rows: impl IntoIterator<Item = impl Serialize>) -> Result<(), Error> {
    let all = || {
        let mut writer = csv::Writer::from_path(path)?;
        for row in rows {
            writer.serialize(row)?;
        }
        writer.flush()?;
        Ok(())
    };
    all().map_err(|error: csv::Error| Error::file(path)(io::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_csv_header_names_the_fields_of_rows() {
        #[derive(Serialize)]
        struct Row {
            scheme: &'static str,
            took_us: Option<u64>,
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.csv");
        let rows =
            [Row { scheme: "d:a=1,b=2", took_us: Some(3) }, Row { scheme: "d", took_us: None }];
        write_csv(&path, rows).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "scheme,took_us\n\"d:a=1,b=2\",3\nd,\n");
    }

    #[test]
    fn the_error_names_a_file_that_cannot_be_written() {
        let error = write_csv(Path::new("/nonexistent/rows.csv"), [1]).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/rows.csv: cannot be written: "));
    }
}
