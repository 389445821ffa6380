//! Requests and responses (INFOCOM 2022, V): hosts send requests at random times, and each is answered by a response
//! of random size.

use super::{Workload, WorkloadError, draw, refuse};
use crate::engine::{SECOND, Time};
use crate::fabric::Shape;
use crate::flow::{Flow, NewFlow};
use std::rc::Rc;

/// The response sizes of the paper in bytes, equally likely.
pub const RESPONSES: [u64; 5] = [5_000, 10_000, 20_000, 50_000, 93_000];

/// The hosts that a host may draw as destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Any other host.
    All,
    /// Any host below another leaf.
    OtherRacks,
}

impl Peers {
    /// The number of hosts to choose from.
    pub(super) const fn count(self, shape: &Shape) -> usize {
        match self {
            Self::All => shape.hosts() - 1,
            Self::OtherRacks => shape.hosts() - shape.hosts_per_leaf as usize,
        }
    }

    /// The host that `host` draws with a number below [`count`](Self::count).
    pub(super) const fn nth(self, shape: &Shape, host: u16, drawn: u64) -> u16 {
        let first = match self {
            Self::All => host as usize + 1,
            Self::OtherRacks => {
                let rack = shape.hosts_per_leaf as usize;
                (host as usize / rack + 1) * rack
            }
        };
        ((first + drawn as usize) % shape.hosts()) as u16
    }

    /// Returns an error if the network has no hosts to choose from.
    pub(super) fn check(self, shape: &Shape) -> Result<(), WorkloadError> {
        match (self, self.count(shape)) {
            (Self::All, 0) => refuse("hosts", shape.hosts() as f64, "2 or more"),
            (Self::OtherRacks, 0) => refuse("leaves", shape.leaves() as f64, "2 or more"),
            _ => Ok(()),
        }
    }
}

/// The parameters of requests and responses.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// Requests per second of each host.
    pub rate: f64,
    /// The destinations of requests.
    pub peers: Peers,
    /// Bytes of a request.
    pub request: u64,
    /// Response sizes in bytes, equally likely.
    pub responses: Vec<u64>,
    /// The start of requests.
    pub from: Time,
    /// The end of requests.
    pub until: Time,
}

impl Default for RequestConfig {
    /// Section V of the paper at its highest load, for a second: each host sends 250 requests of 1.5 KB per second to
    /// random other hosts.
    fn default() -> Self {
        Self {
            rate: 250.0,
            peers: Peers::All,
            request: 1_500,
            responses: RESPONSES.to_vec(),
            from: 0,
            until: SECOND,
        }
    }
}

/// A request and the size of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its start time.
    pub at: Time,
    /// The requesting host.
    pub client: u16,
    /// The responding host.
    pub server: u16,
    /// Bytes of the response.
    pub response: u64,
}

/// A request with its completion times, if its response has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The request.
    pub request: Request,
    /// The completion time from the start of the response.
    pub response: Option<Time>,
    /// The completion time from the start of the request.
    pub total: Option<Time>,
}

/// Requests and their responses. The flow of request `i` has the tag `2 * i`, that of its response `2 * i + 1`.
#[derive(Clone, Debug)]
pub struct Requests {
    all: Rc<[Request]>,
    bytes: u64,
    /// The transports of requests and of responses.
    transports: [u8; 2],
    next: usize,
}

impl Requests {
    /// Draws all requests. They use the first of `transports`, responses the second.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]: an invalid rate, no response sizes, or no destinations.
    pub fn new(
        shape: &Shape,
        config: &RequestConfig,
        transports: [u8; 2],
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        if !(config.rate > 0.0 && config.rate <= 1e9) {
            return refuse("requests per second", config.rate, "above 0 and at most 1e9");
        }
        if config.responses.is_empty() {
            return refuse("response sizes", 0.0, "1 or more");
        }
        config.peers.check(shape)?;
        let mean = (SECOND as f64 / config.rate) as Time;
        let mut all = Vec::new();
        for host in 0..shape.hosts() as u16 {
            // Separate streams, so that start times do not depend on the number of hosts.
            let mut times = draw::stream(seed, "request times", host.into());
            let mut rng = draw::stream(seed, "request peers and sizes", host.into());
            let span = config.until.saturating_sub(config.from);
            all.extend(draw::poisson(&mut times, mean, span).map(|after| Request {
                at: config.from + after,
                client: host,
                server: config.peers.nth(shape, host, rng.below(config.peers.count(shape) as u64)),
                response: config.responses[rng.below(config.responses.len() as u64) as usize],
            }));
        }
        all.sort_by_key(|request| (request.at, request.client));
        Ok(Self { all: all.into(), bytes: config.request, transports, next: 0 })
    }

    /// All requests by start time. Tags refer to this order.
    pub fn all(&self) -> Rc<[Request]> {
        self.all.clone()
    }

    /// The completion times of requests, from the flows of a simulation in which they were workload `part` of a
    /// [`Mix`](super::Mix), or 0 without a mix.
    pub fn completed(all: &[Request], flows: &[Flow], part: usize) -> Vec<Completed> {
        let one = |&request| Completed { request, response: None, total: None };
        let mut completed: Vec<Completed> = all.iter().map(one).collect();
        for flow in flows.iter().filter(|flow| super::part(flow.spec.tag) == part) {
            let tag = super::own_tag(flow.spec.tag);
            if let (1, Some(delivered)) = (tag % 2, flow.delivered) {
                let completed = &mut completed[tag as usize / 2];
                completed.response = Some(delivered - flow.begun);
                completed.total = Some(delivered - completed.request.at);
            }
        }
        completed
    }
}

impl Workload for Requests {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        let number = self.next;
        let request = self.all.get(number)?;
        self.next += 1;
        let flow = NewFlow {
            source: request.client,
            destination: request.server,
            transport: self.transports[0],
            bytes: self.bytes,
            tag: 2 * number as u32,
        };
        Some((request.at, flow))
    }

    fn on_delivered(&mut self, _now: Time, flow: &Flow) -> Option<NewFlow> {
        let tag = flow.spec.tag;
        if tag % 2 == 1 {
            return None;
        }
        let request = &self.all[tag as usize / 2];
        Some(NewFlow {
            source: request.server,
            destination: request.client,
            transport: self.transports[1],
            bytes: request.response,
            tag: tag + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn draw(shape: Shape, config: &RequestConfig, seed: u64) -> Rc<[Request]> {
        Requests::new(&shape, config, [0, 0], seed).unwrap().all()
    }

    #[test]
    fn every_host_asks_as_often_as_it_should_for_all_sizes_of_all_others() {
        let shape = Shape::leaf_spine(4, 2, 4);
        let config = RequestConfig { until: 40 * SECOND, ..RequestConfig::default() };
        let requests = draw(shape, &config, 7);
        assert!(requests.is_sorted_by_key(|request| request.at));
        for host in 0..8 {
            let mine: Vec<_> = requests.iter().filter(|r| r.client == host).collect();
            // 10,000 within three deviations.
            assert!((9_700..10_300).contains(&mine.len()), "{} of {host}", mine.len());
            for size in RESPONSES {
                let count = mine.iter().filter(|request| request.response == size).count();
                assert!((1_850..2_150).contains(&count), "{count} of {size} bytes");
            }
            let servers: BTreeSet<u16> = mine.iter().map(|request| request.server).collect();
            assert!(servers.len() == 7 && !servers.contains(&host));
        }
    }

    #[test]
    fn those_who_ask_other_racks_ask_all_hosts_there() {
        let shape = Shape::leaf_spine(4, 3, 4);
        let config = RequestConfig { peers: Peers::OtherRacks, ..RequestConfig::default() };
        for host in 0..12 {
            let requests = draw(shape, &config, 7);
            let mine = requests.iter().filter(|request| request.client == host);
            let servers: BTreeSet<u16> = mine.map(|request| request.server).collect();
            assert_eq!(servers, (0..12).filter(|other| other / 4 != host / 4).collect());
        }
    }

    #[test]
    fn a_host_asks_at_the_same_times_however_many_others_there_are() {
        let times = |shape| -> Vec<Time> {
            let requests = draw(shape, &RequestConfig::default(), 3);
            requests.iter().filter(|r| r.client == 1).map(|r| r.at).collect()
        };
        assert_eq!(times(Shape::one_switch(4)), times(Shape::leaf_spine(16, 9, 4)));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let refused = |config: RequestConfig| {
            Requests::new(&Shape::one_switch(4), &config, [0, 0], 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(RequestConfig { rate: 0.0, ..RequestConfig::default() }),
            "workload: requests per second: got 0, expected above 0 and at most 1e9"
        );
        assert_eq!(
            refused(RequestConfig { peers: Peers::OtherRacks, ..RequestConfig::default() }),
            "workload: leaves: got 1, expected 2 or more"
        );
    }
}
