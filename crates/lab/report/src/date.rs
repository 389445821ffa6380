//! The date of a report.

use time::OffsetDateTime;

/// Today's date in UTC, such as `2026-01-31`.
pub fn today() -> String {
    OffsetDateTime::now_utc().date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_iso_8601() {
        let shape = |c: char| if c.is_ascii_digit() { '9' } else { c };
        assert_eq!(today().chars().map(shape).collect::<String>(), "9999-99-99");
    }
}
