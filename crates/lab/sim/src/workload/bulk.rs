//! Flows that start together: permutations and incasts.

use super::List;
use crate::engine::Time;
use crate::flow::NewFlow;
use cloudburst_workload::{WorkloadError, draw};

/// A random derangement: a permutation of `count` hosts that maps none to itself, uniform among all of these.
///
/// # Errors
///
/// [`WorkloadError`]: fewer than two hosts.
pub fn derangement(count: u16, seed: u64) -> Result<Vec<u16>, WorkloadError> {
    if count < 2 {
        return Err(WorkloadError::new("hosts", count.into(), "2 or more"));
    }
    let mut rng = draw::stream(seed, "derangement", 0);
    let mut to: Vec<u16> = (0..count).collect();
    // One in e permutations is a derangement.
    loop {
        for last in (1..to.len()).rev() {
            to.swap(last, rng.below(last as u64 + 1) as usize);
        }
        if to.iter().enumerate().all(|(from, &to)| from != usize::from(to)) {
            return Ok(to);
        }
    }
}

/// Permutation traffic (CoNEXT 2013, 5.1): each host sends `bytes` to one other and receives from one, starting at a
/// random time within `spread`. Tags are the numbers of the senders.
///
/// # Errors
///
/// [`WorkloadError`]: fewer than two hosts.
pub fn permutation(
    hosts: u16,
    bytes: u64,
    spread: Time,
    transport: u8,
    seed: u64,
) -> Result<List, WorkloadError> {
    let to = derangement(hosts, seed)?;
    let flows = (0..hosts).zip(to).map(|(source, destination)| {
        let at = draw::stream(seed, "permutation", source.into()).below(spread.max(1));
        (at, NewFlow { source, destination, transport, bytes, tag: source.into() })
    });
    Ok(List::new(flows.collect()))
}

/// An incast: all `senders` send `bytes` to `receiver` at time 0. Tags are their indices among the senders.
pub fn incast(
    senders: impl IntoIterator<Item = u16>,
    receiver: u16,
    bytes: u64,
    transport: u8,
) -> List {
    let flow = |(tag, source): (usize, u16)| {
        (0, NewFlow { source, destination: receiver, transport, bytes, tag: tag as u32 })
    };
    List::new(senders.into_iter().enumerate().map(flow).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn derangements_are_uniform() {
        let mut counts = BTreeMap::new();
        for seed in 0..9_000 {
            *counts.entry(derangement(4, seed).unwrap()).or_insert(0) += 1;
        }
        // There are nine derangements of four.
        assert_eq!(counts.len(), 9);
        assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
        let error = derangement(1, 0).unwrap_err().to_string();
        assert_eq!(error, "workload: hosts: got 1, expected 2 or more");
    }
}
