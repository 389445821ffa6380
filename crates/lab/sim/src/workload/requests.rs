//! Requests and responses (INFOCOM 2022, V): hosts send requests at random times, and each is answered by a response
//! of random size.

use super::Workload;
use crate::engine::{SECOND, Time};
use crate::fabric::Shape;
use crate::flow::{Flow, NewFlow};
use cloudburst_workload::{Peers, Request, WorkloadError, paper, requests};
use std::rc::Rc;

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
            request: paper::REQUEST,
            responses: paper::RESPONSES.to_vec(),
            from: 0,
            until: SECOND,
        }
    }
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
            let expected = "above 0 and at most 1e9";
            return Err(WorkloadError::new("requests per second", config.rate, expected));
        }
        let mean = (SECOND as f64 / config.rate) as Time;
        let span = config.until.saturating_sub(config.from);
        let mut all = requests(shape.racks(), config.peers, mean, span, &config.responses, seed)?;
        for request in &mut all {
            request.at += config.from;
        }
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
