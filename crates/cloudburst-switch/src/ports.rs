//! Lists of ports as users write them: `swp[1-32]`, `Ethernet[0-124/4]`, `ge-1/1/[1-48]`.

use super::error::Refusal;
use super::platform::Platform;
use std::collections::HashSet;

/// The most ports: more than any switch has, and a bound on the work that a short text can cause.
const MAX_PORTS: usize = 1024;

/// Expands the ranges of `list`, in order.
///
/// # Errors
///
/// If a text is not a name or range, or a port is listed twice.
pub(crate) fn expand(list: &[String], platform: Platform) -> Result<Vec<String>, Refusal> {
    let mut ports = Vec::new();
    for text in list {
        let wrong = || Refusal::Port { got: text.clone() };
        ports.extend(range(text).ok_or_else(wrong)?);
        if ports.len() > MAX_PORTS {
            return Err(wrong());
        }
    }
    if ports.is_empty() {
        return Err(Refusal::NoPorts);
    }
    let mut seen = HashSet::new();
    if let Some(port) = ports.iter().find(|port| !seen.insert(platform.same_port(port))) {
        return Err(Refusal::PortTwice { port: port.clone() });
    }
    Ok(ports)
}

fn range(text: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = text.split_once('[') else {
        return is_name(text).then(|| vec![text.to_owned()]);
    };
    let (inside, after) = rest.split_once(']')?;
    let (bounds, step) = inside.split_once('/').unwrap_or((inside, "1"));
    let (low, high) = bounds.split_once('-')?;
    let low = low.parse::<u32>().ok()?;
    let high = high.parse::<u32>().ok()?;
    let step: usize = step.parse().ok().filter(|&step| step > 0)?;
    let is_fine = low <= high && (high - low) as usize / step < MAX_PORTS;
    let names = || (low..=high).step_by(step).map(|n| format!("{before}{n}{after}"));
    (is_fine && names().all(|name| is_name(&name))).then(|| names().collect())
}

/// Whether the text is a port's name. Names become part of switch and shell commands, so they must not contain
/// characters that end a word.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/.-_:".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(list: &[&str]) -> Result<Vec<String>, String> {
        let list: Vec<String> = list.iter().map(|&text| text.into()).collect();
        expand(&list, Platform::Linux).map_err(|error| error.to_string())
    }

    #[test]
    fn ranges_may_have_steps() {
        let ports = expanded(&["swp[1-3]", "Ethernet[0-8/4]", "ge-1/1/[9-10]"]).unwrap();
        let expected = "swp1 swp2 swp3 Ethernet0 Ethernet4 Ethernet8 ge-1/1/9 ge-1/1/10";
        assert_eq!(ports.join(" "), expected);
    }

    #[test]
    fn a_port_that_is_listed_twice_is_named() {
        let error = expanded(&["swp[1-3]", "swp2"]).unwrap_err();
        assert_eq!(error, "port swp2 is listed twice: name it once");
    }

    #[test]
    fn invalid_port_names_are_refused() {
        for text in ["", "swp[1-", "swp[3-1]", "swp[1-9/0]", "swp[0-99999]", "a;b", "a b", "[1-2]"]
        {
            assert!(expanded(&[text]).is_err(), "{text}");
        }
        assert!(expanded(&[]).unwrap_err().contains("no ports"));
    }
}
