//! Formatting of numbers.

use crate::statistics::Estimate;

/// A size in bytes: `5 KB`.
pub fn size(bytes: u32) -> String {
    if bytes.is_multiple_of(1024) {
        format!("{} KB", bytes / 1024)
    } else if bytes >= 1000 {
        format!("{} KB", (f64::from(bytes) / 100.0).round() / 10.0)
    } else {
        format!("{bytes} B")
    }
}

/// Three significant digits without an exponent: `0.0421`, `5.41`, `123`, `4520`.
pub fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// A parameter rather than a measurement, with at most four decimals: `0.25`, `48`.
pub fn value(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

/// Microseconds as milliseconds. An infinite time is past the deadline.
pub fn milliseconds(us: f64) -> String {
    if us.is_finite() { figure(us / 1e3) } else { "> deadline".to_owned() }
}

/// Microseconds as milliseconds with their interval, if there is one. `∞` is past the deadline.
pub fn within(us: Estimate) -> String {
    let end = |us: f64| if us.is_finite() { figure(us / 1e3) } else { "∞".to_owned() };
    let value = milliseconds(us.value);
    if us.has_interval() { format!("{value} [{}, {}]", end(us.low), end(us.high)) } else { value }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "—".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let figures = [0.0, 0.042_12, 5.412, 123.4, 4_520.3, -2.0].map(figure);
        assert_eq!(figures, ["0", "0.0421", "5.41", "123", "4520", "-2.00"]);
        assert_eq!(milliseconds(f64::INFINITY), "> deadline");
    }

    #[test]
    fn an_interval_is_written_where_there_is_one() {
        let value = Estimate { value: 2e3, low: 1e3, high: f64::INFINITY };
        assert_eq!(within(value), "2.00 [1.00, ∞]");
        assert_eq!(within(Estimate::exact(247e3)), "247");
        assert_eq!(within(Estimate::exact(f64::INFINITY)), "> deadline");
    }

    #[test]
    fn axis_values_have_at_most_four_decimals() {
        assert_eq!([0.1 + 0.2, 48.0, 0.25].map(value), ["0.3", "48", "0.25"]);
    }

    #[test]
    fn sizes_are_written_in_binary_or_decimal_kilobytes() {
        assert_eq!(
            [5000, 5120, 93_000, 512, 1500].map(size),
            ["5 KB", "5 KB", "93 KB", "512 B", "1.5 KB"]
        );
    }
}
