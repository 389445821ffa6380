//! Names of interfaces as command lines take them: in any case, abbreviated, and in lists and ranges.

use crate::intent::Intent;

/// Returns the intended ports that a list names, such as `Ethernet1-3,5` or `gi1/0/1-4`, without spaces; `None` if
/// it is unknown which ones.
pub(super) fn named<'a>(intent: &'a Intent, list: &str) -> Option<Vec<&'a str>> {
    let mut kind = String::new();
    let mut found = Vec::new();
    for part in list.split(',') {
        let (given, number) = split(part);
        if !given.is_empty() {
            kind = given.to_lowercase();
        }
        let mut of_kind: Vec<_> =
            intent.ports.iter().map(|port| (port.as_str(), split(port))).collect();
        of_kind.retain(|(_, (of, _))| !kind.is_empty() && of.to_lowercase().starts_with(&kind));
        let mut bounds = number.split('-');
        let low = path(bounds.next()?);
        // The upper end may leave out what it has in common with the lower one.
        let high = bounds.next().map_or_else(|| low.clone(), |high| path(split(high).1));
        if !of_kind.is_empty() && (bounds.next().is_some() || high.len() > low.len()) {
            return None;
        }
        let high = [&low[..low.len().saturating_sub(high.len())], &high].concat();
        let is_meant = |number: &str| {
            let number = path(number);
            number.len() == low.len() && (&low..=&high).contains(&&number)
        };
        of_kind.retain(|(_, (_, number))| is_meant(number));
        found.extend(of_kind.into_iter().map(|(port, _)| port));
    }
    Some(found)
}

/// Splits a name into its kind and its number: `Ethernet` and `1/2`.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.find(|c: char| c.is_ascii_digit() || c == '$').unwrap_or(name.len()))
}

/// Returns the parts of a number such as `1/0/2.10`. On EOS, `$` is the last one.
fn path(number: &str) -> Vec<u32> {
    let parts =
        number.split(|c: char| !c.is_ascii_digit() && c != '$').filter(|part| !part.is_empty());
    parts.map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_name_ports_in_any_spelling() {
        let intent = |ports: &str| {
            let text = format!(
                "platform = \"nxos\"\nports = {ports}\n\
                 limit = \"8 packets\"\nrate = \"10G\"\nseed = 1\n"
            );
            Intent::new(toml::from_str(&text).unwrap()).unwrap()
        };
        let flat = intent("[\"Ethernet[1-5]\"]");
        let deep = intent("[\"Ethernet1/1/[1-3]\", \"Ethernet1/2/1\"]");
        for (list, numbers) in [
            ("Ethernet2", "2"),
            ("e2", "2"),
            ("ETH2", "2"),
            ("Ethernet1-3,5", "1 2 3 5"),
            ("et1,et4-$", "1 4 5"),
            ("Ethernet2-Ethernet3", "2 3"),
            ("Ethernet2.10", ""),
            ("Ethernet1/2", ""),
            ("Vlan1-3", ""),
            ("loopback2", ""),
            ("", ""),
        ] {
            let named: Vec<_> =
                named(&flat, list).unwrap().into_iter().map(|port| &port[8..]).collect();
            assert_eq!(named.join(" "), numbers, "{list}");
        }
        for (list, numbers) in [
            ("ethernet1/1/2-3", "1/1/2 1/1/3"),
            ("ethernet1/1/2-1/1/3", "1/1/2 1/1/3"),
            ("ethernet1/1/3-1/2/9", "1/1/3 1/2/1"),
            ("ethernet1/1/1,1/2/1", "1/1/1 1/2/1"),
        ] {
            let named: Vec<_> =
                named(&deep, list).unwrap().into_iter().map(|port| &port[8..]).collect();
            assert_eq!(named.join(" "), numbers, "{list}");
        }
        assert_eq!(named(&flat, "Ethernet1-2/1-4"), None);
        assert_eq!(named(&flat, "Vlan1-2/1-4"), Some(vec![]));
    }
}
