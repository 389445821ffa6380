//! Requests between hosts at random times, each answered by a response of random size.

use crate::{WorkloadError, draw};

/// Hosts in racks of equal size. Hosts have numbers from 0, rack by rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Racks {
    /// The number of hosts.
    pub hosts: u16,
    /// The number of hosts in a rack.
    pub rack: u16,
}

/// The hosts that a host may draw as destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Any other host.
    All,
    /// Any host of another rack.
    OtherRacks,
}

impl Peers {
    /// The number of hosts to choose from.
    pub const fn count(self, racks: Racks) -> usize {
        match self {
            Self::All => racks.hosts as usize - 1,
            Self::OtherRacks => racks.hosts as usize - racks.rack as usize,
        }
    }

    /// The host that `host` draws with a number below [`count`](Self::count).
    pub const fn nth(self, racks: Racks, host: u16, drawn: u64) -> u16 {
        let first = match self {
            Self::All => host as usize + 1,
            Self::OtherRacks => {
                let rack = racks.rack as usize;
                (host as usize / rack + 1) * rack
            }
        };
        ((first + drawn as usize) % racks.hosts as usize) as u16
    }

    /// Returns an error if the network has no hosts to choose from.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]: there is only one host, or only one rack.
    pub fn check(self, racks: Racks) -> Result<(), WorkloadError> {
        if self.count(racks) > 0 {
            return Ok(());
        }
        Err(match self {
            Self::All => WorkloadError::new("hosts", racks.hosts.into(), "2 or more"),
            Self::OtherRacks => {
                WorkloadError::new("leaves", f64::from(racks.hosts / racks.rack), "2 or more")
            }
        })
    }
}

/// A request and the size of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its start time.
    pub at: u64,
    /// The requesting host.
    pub client: u16,
    /// The responding host.
    pub server: u16,
    /// Bytes of the response.
    pub response: u64,
}

/// Draws the Poisson requests of all hosts within `span`, by start time. `mean` is the mean time between requests of a
/// host, in any unit of time, which is also that of `span` and of the requests. Response sizes are equally likely.
///
/// # Errors
///
/// [`WorkloadError`]: no time between requests, no response sizes, or no destinations.
pub fn requests(
    racks: Racks,
    peers: Peers,
    mean: u64,
    span: u64,
    responses: &[u64],
    seed: u64,
) -> Result<Vec<Request>, WorkloadError> {
    if mean == 0 {
        return Err(WorkloadError::new("time between requests", 0.0, "1 unit or more"));
    }
    if responses.is_empty() {
        return Err(WorkloadError::new("response sizes", 0.0, "1 or more"));
    }
    peers.check(racks)?;
    let mut all = Vec::new();
    for client in 0..racks.hosts {
        // Separate streams, so that start times do not depend on the number of hosts.
        let mut times = draw::stream(seed, "request times", client.into());
        let mut rng = draw::stream(seed, "request peers and sizes", client.into());
        all.extend(draw::poisson(&mut times, mean, span).map(|at| Request {
            at,
            client,
            server: peers.nth(racks, client, rng.below(peers.count(racks) as u64)),
            response: responses[rng.below(responses.len() as u64) as usize],
        }));
    }
    all.sort_by_key(|request| (request.at, request.client));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper;
    use std::collections::BTreeSet;

    const SECOND: u64 = 1_000_000_000;

    fn draw(racks: Racks, peers: Peers, seconds: u64, seed: u64) -> Vec<Request> {
        requests(racks, peers, SECOND / 250, seconds * SECOND, &paper::RESPONSES, seed).unwrap()
    }

    #[test]
    fn every_host_sends_requests_at_its_rate_for_all_sizes_to_all_others() {
        let requests = draw(Racks { hosts: 8, rack: 4 }, Peers::All, 40, 7);
        assert!(requests.is_sorted_by_key(|request| request.at));
        for host in 0..8 {
            let mine: Vec<_> = requests.iter().filter(|r| r.client == host).collect();
            // 10,000 within three deviations.
            assert!((9_700..10_300).contains(&mine.len()), "{} of {host}", mine.len());
            for size in paper::RESPONSES {
                let count = mine.iter().filter(|request| request.response == size).count();
                assert!((1_850..2_150).contains(&count), "{count} of {size} bytes");
            }
            let servers: BTreeSet<u16> = mine.iter().map(|request| request.server).collect();
            assert!(servers.len() == 7 && !servers.contains(&host));
        }
    }

    #[test]
    fn requests_to_other_racks_reach_all_hosts_there() {
        let requests = draw(Racks { hosts: 12, rack: 4 }, Peers::OtherRacks, 1, 7);
        for host in 0..12 {
            let mine = requests.iter().filter(|request| request.client == host);
            let servers: BTreeSet<u16> = mine.map(|request| request.server).collect();
            assert_eq!(servers, (0..12).filter(|other| other / 4 != host / 4).collect());
        }
    }

    #[test]
    fn request_times_of_a_host_do_not_depend_on_the_number_of_hosts() {
        let times = |hosts| -> Vec<u64> {
            let requests = draw(Racks { hosts, rack: 4 }, Peers::All, 1, 3);
            requests.iter().filter(|r| r.client == 1).map(|r| r.at).collect()
        };
        assert_eq!(times(4), times(144));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let refused = |peers, mean| {
            let racks = Racks { hosts: 4, rack: 4 };
            requests(racks, peers, mean, SECOND, &paper::RESPONSES, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(Peers::All, 0),
            "workload: time between requests: got 0, expected 1 unit or more"
        );
        assert_eq!(refused(Peers::OtherRacks, 1), "workload: leaves: got 1, expected 2 or more");
    }
}
