//! How schemes, sizes and figures are written, and in which order and colours schemes stand.

use super::statistics::Estimate;

/// Red, green, blue.
pub(super) type Colour = (u8, u8, u8);

/// What dots of a scheme look like; apart without colour too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
}

/// The scheme that stands for the paper's DCTCP.
pub(super) const TCP: &str = "tcp-cubic";

/// A scheme, its order, its name, its colour and its form.
const SCHEMES: [(&str, &str, Colour, Form); 13] = [
    (TCP, "TCP cubic", (25, 25, 30), Form::Circle),
    ("tcp-bbr", "TCP bbr", (115, 115, 125), Form::Square),
    ("pias", "PIAS-like", (15, 60, 130), Form::Triangle),
    ("tcp-short", "TCP cubic, short queue", (60, 60, 90), Form::Wedge),
    ("replicated-2", "Replicated TCP x2", (45, 120, 190), Form::Diamond),
    ("replicated-4", "Replicated TCP x4", (120, 180, 230), Form::Wedge),
    ("mptcp", "MPTCP", (0, 95, 75), Form::Square),
    ("quic", "QUIC (quinn)", (90, 170, 100), Form::Circle),
    ("none", "background alone", (160, 160, 160), Form::Circle),
    ("a", "Cloudburst A", (225, 180, 40), Form::Triangle),
    ("b", "Cloudburst B", (225, 125, 20), Form::Square),
    ("c", "Cloudburst C", (150, 85, 190), Form::Wedge),
    ("d", "Cloudburst D", (180, 10, 45), Form::Diamond),
];

/// A scheme's name without and with what is set of it: `d` and `code=lt,policy=oblivious`.
pub(super) fn split(scheme: &str) -> (&str, &str) {
    scheme.split_once(':').unwrap_or((scheme, ""))
}

/// A choice (`a` to `d`) with other settings, as schemes are named.
pub(super) fn with_settings(choice: &str, settings: &str) -> String {
    if settings.is_empty() { choice.to_owned() } else { format!("{choice}:{settings}") }
}

/// Whether a scheme is one of Cloudburst's design choices.
pub(super) fn is_cloudburst(scheme: &str) -> bool {
    matches!(split(scheme).0, "a" | "b" | "c" | "d")
}

/// What people read: `Cloudburst D (lt, oblivious)`.
pub(super) fn display(scheme: &str) -> String {
    let (base, settings) = split(scheme);
    let name = match SCHEMES.iter().find(|known| known.0 == base) {
        Some(known) => known.1.to_owned(),
        None => base.to_owned(),
    };
    if settings.is_empty() {
        return name;
    }
    // The values of the code and of the policy say what they are.
    let said = settings.split(',').map(|setting| match setting.split_once('=') {
        Some(("code" | "policy", value)) => value.to_owned(),
        _ => setting.replace('=', " "),
    });
    format!("{name} ({})", said.collect::<Vec<_>>().join(", "))
}

/// Where a scheme stands among others.
pub(super) fn order(scheme: &str) -> (usize, &str) {
    let (base, settings) = split(scheme);
    (SCHEMES.iter().position(|known| known.0 == base).unwrap_or(SCHEMES.len()), settings)
}

/// The colour of a scheme, the form of its dots, and whether they are hollow: those of schemes
/// with other settings are.
pub(super) fn look(scheme: &str) -> (Colour, Form, bool) {
    let (base, settings) = split(scheme);
    let known = SCHEMES.iter().find(|known| known.0 == base);
    let (colour, form) = known.map_or(((90, 60, 40), Form::Wedge), |known| (known.2, known.3));
    (colour, form, !settings.is_empty())
}

/// A message's size: `5 KB`.
pub(super) fn size(bytes: u32) -> String {
    if bytes.is_multiple_of(1024) {
        format!("{} KB", bytes / 1024)
    } else if bytes >= 1000 {
        format!("{} KB", (f64::from(bytes) / 100.0).round() / 10.0)
    } else {
        format!("{bytes} B")
    }
}

/// Three digits that count, no exponent: `0.0421`, `5.41`, `123`, `4520`.
pub(super) fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// Microseconds as milliseconds.
pub(super) fn milliseconds(us: f64) -> String {
    if us.is_finite() { figure(us / 1e3) } else { "> deadline".to_owned() }
}

/// Microseconds as milliseconds with the interval; `∞` is past the deadline.
pub(super) fn within(us: Estimate) -> String {
    let end = |us: f64| if us.is_finite() { figure(us / 1e3) } else { "∞".to_owned() };
    format!("{} [{}, {}]", milliseconds(us.value), end(us.low), end(us.high))
}

/// A share as percent.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "—".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_names_for_people() {
        let names =
            ["tcp-cubic", "replicated-4", "quic", "d", "d:code=lt,policy=oblivious", "b:r=0.5"];
        assert_eq!(
            names.map(display),
            [
                "TCP cubic",
                "Replicated TCP x4",
                "QUIC (quinn)",
                "Cloudburst D",
                "Cloudburst D (lt, oblivious)",
                "Cloudburst B (r 0.5)"
            ]
        );
        assert_eq!(display("new"), "new");
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let figures = [0.0, 0.042_12, 5.412, 123.4, 4_520.3, -2.0].map(figure);
        assert_eq!(figures, ["0", "0.0421", "5.41", "123", "4520", "-2.00"]);
        assert_eq!(milliseconds(f64::INFINITY), "> deadline");
    }

    #[test]
    fn sizes_are_said_in_the_unit_that_they_are_given_in() {
        assert_eq!(
            [5000, 5120, 93_000, 512, 1500].map(size),
            ["5 KB", "5 KB", "93 KB", "512 B", "1.5 KB"]
        );
    }

    #[test]
    fn no_two_schemes_look_alike() {
        for (i, a) in SCHEMES.iter().enumerate() {
            for b in &SCHEMES[i + 1..] {
                assert!((a.2, a.3) != (b.2, b.3), "{} {}", a.0, b.0);
            }
        }
        assert_ne!(look("d"), look("d:code=lt"));
    }
}
