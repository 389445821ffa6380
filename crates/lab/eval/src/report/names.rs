//! The displayed names, the order and the colours of schemes.

use cloudburst_report::figures::{Colour, Entry, Form};

/// The scheme that stands in for the paper's DCTCP.
pub(super) const TCP: &str = "tcp-cubic";

/// The schemes in order, each with its displayed name, colour and form.
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

/// Splits a scheme into its name and its settings: `d` and `code=lt,policy=until-stop`.
pub(super) fn split(scheme: &str) -> (&str, &str) {
    scheme.split_once(':').unwrap_or((scheme, ""))
}

/// The scheme of a design (`a` to `d`) with settings.
pub(super) fn with_settings(choice: &str, settings: &str) -> String {
    if settings.is_empty() { choice.to_owned() } else { format!("{choice}:{settings}") }
}

/// Whether a scheme is one of Cloudburst's design choices.
pub(super) fn is_cloudburst(scheme: &str) -> bool {
    matches!(split(scheme).0, "a" | "b" | "c" | "d")
}

/// The displayed name, such as `Cloudburst D (lt, until-stop)`.
pub(super) fn display(scheme: &str) -> String {
    let (base, settings) = split(scheme);
    let name = match SCHEMES.iter().find(|known| known.0 == base) {
        Some(known) => known.1.to_owned(),
        None => base.to_owned(),
    };
    if settings.is_empty() {
        return name;
    }
    // The values of the code and of the policy are clear without their keys.
    let shown = settings.split(',').map(|setting| match setting.split_once('=') {
        Some(("code", value)) => value.to_owned(),
        Some(("policy", value)) => value.replace([':', '='], " "),
        _ => setting.replace('=', " "),
    });
    format!("{name} ({})", shown.collect::<Vec<_>>().join(", "))
}

/// The sort key of a scheme.
pub(super) fn order(scheme: &str) -> (usize, &str) {
    let (base, settings) = split(scheme);
    (SCHEMES.iter().position(|known| known.0 == base).unwrap_or(SCHEMES.len()), settings)
}

/// The legend entry of a scheme. The dots of schemes with settings are hollow.
pub(super) fn entry(scheme: &str) -> Entry {
    let (base, settings) = split(scheme);
    let known = SCHEMES.iter().find(|known| known.0 == base);
    let (colour, form) = known.map_or(((90, 60, 40), Form::Wedge), |known| (known.2, known.3));
    Entry { name: display(scheme), colour, form, hollow: !settings.is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_readable_names() {
        let names = [
            "tcp-cubic",
            "replicated-4",
            "quic",
            "d",
            "d:code=lt,policy=until-stop",
            "d:policy=pulled:window=24",
            "b:r=0.5",
        ];
        assert_eq!(
            names.map(display),
            [
                "TCP cubic",
                "Replicated TCP x4",
                "QUIC (quinn)",
                "Cloudburst D",
                "Cloudburst D (lt, until-stop)",
                "Cloudburst D (pulled window 24)",
                "Cloudburst B (r 0.5)"
            ]
        );
        assert_eq!(display("new"), "new");
    }

    #[test]
    fn no_two_schemes_share_a_colour_and_a_form() {
        for (i, a) in SCHEMES.iter().enumerate() {
            for b in &SCHEMES[i + 1..] {
                assert!((a.2, a.3) != (b.2, b.3), "{} {}", a.0, b.0);
            }
        }
        assert_ne!(entry("d").hollow, entry("d:code=lt").hollow);
    }
}
