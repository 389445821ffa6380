//! Parsing of topologies, links and times.

use crate::engine::{MS, NS, SECOND, Time, US};
use crate::fabric::{Link, Shape};

/// Parses `switch:N`, `leaf-spine:HxLxS`, `fat-tree:K`, `fat-tree:KxO` or `vl2:HxD0xD1xD2`.
pub(super) fn shape(text: &str) -> Result<Shape, String> {
    let expected = || {
        "expected switch:HOSTS, leaf-spine:HOSTSxLEAVESxSPINES, fat-tree:PORTS, \
         fat-tree:PORTSxOVERSUBSCRIPTION or vl2:HOSTSxD0xD1xD2"
            .to_owned()
    };
    let (kind, sizes) = text.split_once(':').ok_or_else(expected)?;
    let sizes: Result<Vec<u16>, _> = sizes.split('x').map(str::parse).collect();
    match (kind, sizes.map_err(|_| expected())?.as_slice()) {
        ("switch", &[hosts]) => Ok(Shape::one_switch(hosts)),
        ("leaf-spine", &[hosts, leaves, spines]) => Ok(Shape::leaf_spine(hosts, leaves, spines)),
        ("fat-tree", &[ports]) => fat_tree(ports, 1),
        ("fat-tree", &[ports, oversubscription]) => fat_tree(ports, oversubscription),
        ("vl2", &[hosts, d0, d1, d2]) => vl2(hosts, d0, d1, d2),
        _ => Err(expected()),
    }
}

fn fat_tree(ports: u16, oversubscription: u16) -> Result<Shape, String> {
    if ports == 0 || ports % 2 == 1 {
        return Err(format!(
            "fat-tree: ports per switch: got {ports}, expected an even number of 2 or more"
        ));
    }
    if oversubscription == 0 || u32::from(ports / 2) * u32::from(oversubscription) > 0xffff {
        return Err(format!(
            "fat-tree: over-subscription: got {oversubscription}, expected 1 to {}",
            0xffff / (ports / 2)
        ));
    }
    Ok(Shape::fat_tree(ports, oversubscription))
}

fn vl2(hosts: u16, d0: u16, d1: u16, d2: u16) -> Result<Shape, String> {
    if d0 == 0 || d1 < 2 || d1 % 2 == 1 || d2 < d0 || !d2.is_multiple_of(d0) {
        return Err(format!(
            "vl2: got d0 = {d0}, d1 = {d1}, d2 = {d2}, expected d0 of 1 or more, an even d1 of 2 or more, and a \
             d2 that is a positive multiple of d0"
        ));
    }
    Ok(Shape::vl2(hosts, d0, d1, d2))
}

/// Parses `RATE,DELAY`: `10G,2us`.
pub(super) fn link(text: &str) -> Result<Link, String> {
    let expected = || "expected RATE,DELAY, such as 10G,2us".to_owned();
    let (bits, delay) = text.split_once(',').ok_or_else(expected)?;
    let rate = with_unit(bits, &[("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000), ("", 1)]);
    Ok(Link { rate: rate.ok_or_else(expected)?, delay: time(delay).map_err(|_| expected())? })
}

/// Parses a time with its unit: `2us`, `1.5ms`.
pub(super) fn time(text: &str) -> Result<Time, String> {
    let units = [("ns", NS), ("us", US), ("ms", MS), ("ps", 1), ("s", SECOND)];
    with_unit(text, &units).ok_or_else(|| "expected a time with a unit, such as 2us".to_owned())
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = number.parse::<f64>().ok()? * factor as f64;
    // A quarter of the range, 53 days in picoseconds, keeps sums from overflowing.
    (0.0..=3e19).contains(&value).then(|| value.round() as u64).filter(|&v| v <= u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_and_links_are_parsed() {
        assert_eq!(shape("leaf-spine:16x9x4"), Ok(Shape::leaf_spine(16, 9, 4)));
        assert_eq!(shape("fat-tree:24x2"), Ok(Shape::fat_tree(24, 2)));
        assert_eq!(link("10G,2us"), Ok(Link { rate: 10_000_000_000, delay: 2 * US }));
        assert_eq!(time("1.5ms"), Ok(1_500 * US));
    }

    #[test]
    fn invalid_topologies_and_links_are_refused() {
        for text in [
            "fat-tree:7",
            "fat-tree:0",
            "fat-tree:8x0",
            "fat-tree:8x60000",
            "vl2:20x0x64x24",
            "vl2:20x4x63x24",
            "vl2:20x4x64x25",
            "ring:8",
            "switch",
            "switch:",
            "switch:-1",
            "leaf-spine:2x2",
        ] {
            assert!(shape(text).is_err(), "{text}");
        }
        for text in
            ["10G", "10G,2", "x,2us", "10T,2us", "-1G,2us", "10G,-2us", "10G,1e300s", "NaNG,2us"]
        {
            assert!(link(text).is_err(), "{text}");
        }
    }
}
