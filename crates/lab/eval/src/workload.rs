//! Workloads: requests between hosts, with their sizes and times. All schemes have the same.

use cloudburst_workload::{Peers, Racks, WorkloadError, paper, requests};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The bytes of a response in an incast.
pub(crate) const INCAST: u32 = paper::INCAST_PACKETS as u32 * 1_500;
/// The bytes of a request in an incast. The paper's flows start at the same time, without requests.
const INCAST_REQUEST: u32 = 64;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u32,
    /// When it is due, in microseconds after the beginning.
    pub(crate) at_us: u64,
    /// The host that sends it, from 1.
    pub(crate) from: u16,
    /// The host that responds.
    pub(crate) to: u16,
    /// The bytes of the request.
    pub(crate) request: u32,
    /// The bytes of the response.
    pub(crate) response: u32,
}

/// Poisson arrivals of `rate` requests a second of all hosts together, between random pairs of hosts: the requests that
/// the simulator draws from the same seed.
pub(crate) fn poisson(
    hosts: u16,
    rate: f64,
    during: Duration,
    seed: u64,
) -> Result<Vec<Request>, WorkloadError> {
    let racks = Racks { hosts, rack: hosts };
    let mean_ns = (1e9 * f64::from(hosts) / rate) as u64;
    let span_ns = during.as_nanos() as u64;
    let drawn = requests(racks, Peers::All, mean_ns, span_ns, &paper::RESPONSES, seed)?;
    let request = |(id, drawn): (u32, cloudburst_workload::Request)| Request {
        id,
        at_us: drawn.at / 1_000,
        from: drawn.client + 1,
        to: drawn.server + 1,
        request: paper::REQUEST as u32,
        response: drawn.response as u32,
    };
    Ok((0..).zip(drawn).map(request).collect())
}

/// Incasts, `rounds` of them and `gap` apart: in each, host `to` requests `flows` messages at once,
/// from `senders` in turn.
pub(crate) fn incast(
    flows: u32,
    senders: &[u16],
    to: u16,
    rounds: u32,
    gap: Duration,
) -> Vec<Request> {
    let request = |number: u32| {
        let round = number / flows;
        let flow = number % flows;
        Request {
            id: number,
            at_us: gap.as_micros() as u64 * u64::from(round),
            from: to,
            to: senders[flow as usize % senders.len()],
            request: INCAST_REQUEST,
            response: INCAST,
        }
    };
    (0..flows * rounds).map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_poisson_between_different_hosts_of_all_sizes() {
        let requests = poisson(8, 2000.0, Duration::from_secs(10), 7).unwrap();
        assert!((19_500..20_500).contains(&requests.len()), "{}", requests.len());
        assert!(requests.iter().all(|request| request.from != request.to));
        assert!(requests.is_sorted_by_key(|request| request.at_us));
        for size in paper::RESPONSES {
            let count =
                requests.iter().filter(|request| u64::from(request.response) == size).count();
            assert!((3_700..4_300).contains(&count), "{count} of {size} bytes");
        }
        for host in 1..=8 {
            let count = requests.iter().filter(|request| request.from == host).count();
            assert!((2_300..2_700).contains(&count), "{count} from {host}");
            let count = requests.iter().filter(|request| request.to == host).count();
            assert!((2_300..2_700).contains(&count), "{count} to {host}");
        }
        // In a Poisson process, the standard deviation of the gaps equals their mean.
        let gaps = requests.windows(2).map(|pair| (pair[1].at_us - pair[0].at_us) as f64);
        let gaps: Vec<f64> = gaps.collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((0.95..1.05).contains(&(variance.sqrt() / mean)));
    }

    #[test]
    fn the_same_seed_draws_the_same_requests_and_another_one_others() {
        let draw = |seed| poisson(8, 200.0, Duration::from_secs(1), seed).unwrap();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn flows_of_an_incast_start_at_once_and_are_spread_evenly() {
        let requests = incast(6, &[1, 2, 3, 4], 5, 2, Duration::from_millis(500));
        let first: Vec<_> = requests.iter().filter(|request| request.at_us == 0).collect();
        assert_eq!(first.iter().map(|request| request.to).collect::<Vec<_>>(), [1, 2, 3, 4, 1, 2]);
        assert_eq!(requests.len(), 12);
        assert!(requests[6..].iter().all(|request| request.at_us == 500_000));
    }
}
