//! Named code points: RFC 2474 (class selectors), RFC 2597 (AF), RFC 3246 (EF), RFC 5865
//! (VOICE-ADMIT), RFC 8622 (LE).

/// The default DSCP of Cloudburst's packets: that of the library, on which this crate does not depend.
// Not imported: a dependency on the transport for one number would bring sockets, ciphers and codes
// into a program that opens no connection. A test compares both.
pub(crate) const DEFAULT: u8 = 43;

const NAMES: [(u8, &str); 22] = [
    (1, "le"),
    (8, "cs1"),
    (10, "af11"),
    (12, "af12"),
    (14, "af13"),
    (16, "cs2"),
    (18, "af21"),
    (20, "af22"),
    (22, "af23"),
    (24, "cs3"),
    (26, "af31"),
    (28, "af32"),
    (30, "af33"),
    (32, "cs4"),
    (34, "af41"),
    (36, "af42"),
    (38, "af43"),
    (40, "cs5"),
    (44, "voice-admit"),
    (46, "ef"),
    (48, "cs6"),
    (56, "cs7"),
];

/// Returns the name of a code point, if it has one.
pub(crate) fn name(dscp: u8) -> Option<&'static str> {
    NAMES.iter().find(|(value, _)| *value == dscp).map(|(_, name)| *name)
}

/// Parses a code point, given as a number or a name.
pub(crate) fn parse(text: &str) -> Option<u8> {
    let by_name = || NAMES.iter().find(|(_, name)| *name == text).map(|(value, _)| *value);
    match text {
        "default" | "be" => Some(0),
        _ => text.parse().ok().filter(|&dscp| dscp < 64).or_else(by_name),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_default_is_the_librarys() {
        assert_eq!(super::DEFAULT, cloudburst_net::DEFAULT_DSCP);
    }
}
