//! Checks before a fabric is built.

use crate::{Error, namespace};
use std::fs;

/// Checks that this process may build a fabric, and that the necessary programs are installed.
///
/// # Errors
///
/// Names the missing privilege or program.
pub fn available() -> Result<(), Error> {
    check_privileges()?;
    for (tool, flag) in [
        ("ip", "-V"),
        ("tc", "-V"),
        ("nft", "--version"),
        ("ethtool", "--version"),
        ("nsenter", "-V"),
    ] {
        namespace::run(tool, &[flag], "", "the machine")?;
    }
    Ok(())
}

pub(super) fn check_privileges() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status").map_err(Error::io("/proc/self/status"))?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let needed = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_SYS_ADMIN", 21)];
    let missing = needed.iter().filter(|(_, bit)| mask & (1 << bit) == 0);
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Privilege { missing: format!("this process lacks {}", missing.join(", ")) })
}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if (1..=32).contains(&name.len()) && name.chars().all(is_fine) {
        return Ok(());
    }
    let expected = "1 to 32 lower-case letters and digits".into();
    Err(Error::Parameter { field: "name", value: format!("{name:?}"), expected })
}
