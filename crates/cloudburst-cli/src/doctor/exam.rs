//! Examines one source port with single packets, one at a time, so that no queue fills up.

use super::error::ExamError;
use crate::plan::DoctorPlan;
use crate::protocol::{Body, Frame, InvocationId, TransferId, Vitals};
use crate::sender::Failure;
use crate::sender::address::{self, Probe};
use bytes::Bytes;
use cloudburst_net::{
    BurstPolicy, Capacity, Config, Endpoint, Fabric, PathMap, SendError, SendOptions,
};
use core::time::Duration;
use serde::Serialize;
use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

/// Bytes of the digest at the end of each message.
const DIGEST: usize = 16;
/// How often to ask until a request takes only one packet.
const TRIES: usize = 32;
/// How often to count again where packets are missing, and the time before that.
const RECOUNTS: usize = 3;
const RECOUNT_AFTER: Duration = Duration::from_millis(20);

/// An endpoint that requests the state of a receiver.
pub(super) struct Examiner {
    pub(super) endpoint: Endpoint,
    peer: SocketAddr,
    /// Bytes of padding with which a request fills a packet.
    full: usize,
    session: InvocationId,
    requests: u32,
    deadline: Duration,
    /// Why the last request was not delivered, as far as is known.
    last_error: Option<SendError>,
}

/// Where an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Nowhere,
    Here,
    /// At another port of this host.
    At(u16),
}

/// The findings for one source port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Findings {
    /// SYMBOL packets sent.
    pub(super) sent: u64,
    /// SYMBOL packets that the receiver did not get.
    pub(super) lost_there: u64,
    /// Answers that the receiver sent to this port.
    pub(super) answers: u64,
    /// Answers that did not arrive.
    pub(super) lost_back: u64,
    pub(super) round_trip_seconds: Option<f64>,
    /// Packets with a DSCP other than the receiver's that it got meanwhile, from any sender.
    pub(super) foreign_dscp_there: u64,
    /// Packets that came back with a DSCP other than that of this end.
    pub(super) foreign_dscp_back: u64,
    pub(super) first_foreign_dscp_back: Option<u8>,
}

/// The counters of both ends when nothing was in flight.
#[derive(Clone, Copy)]
struct Snapshot {
    vitals: Vitals,
    sent: u64,
    answers: u64,
}

impl Findings {
    pub(super) const fn is_rewritten_there(&self) -> bool {
        is_rewritten(self.foreign_dscp_there, self.sent)
    }

    pub(super) const fn is_rewritten_back(&self) -> bool {
        is_rewritten(self.foreign_dscp_back, self.answers)
    }
}

impl Examiner {
    /// Creates an endpoint with `paths` source ports, the first of them that of `local`.
    pub(super) fn new(
        plan: &DoctorPlan,
        local: SocketAddr,
        peer: SocketAddr,
        paths: u16,
    ) -> Result<Self, ExamError> {
        // Single packets need no capacity; a burst should fit the link.
        let capacity = match plan.capacity {
            Capacity::Auto if paths == 1 => Capacity::FALLBACK,
            capacity => capacity,
        };
        let config = Config {
            mtu: plan.mtu,
            capacity,
            fabric: Fabric { dscps: vec![plan.dscp], ..Fabric::default() },
            ..Config::default()
        };
        let full = full(&config, peer);
        let builder = Endpoint::builder()
            .bind(local)
            .config(config)
            .paths(PathMap::ecmp(paths))
            .security(plan.key.security());
        let endpoint = builder.build()?;
        let session = InvocationId(rand::random());
        let deadline = plan.deadline;
        Ok(Self { endpoint, peer, full, session, requests: 0, deadline, last_error: None })
    }

    /// Requests the state, with `padding` bytes. Returns the number of packets sent, and the answer. `None`: not
    /// delivered.
    pub(super) fn request(&mut self, padding: usize) -> Result<Option<(usize, Vitals)>, ExamError> {
        let Some((transfer, packets)) = self.send(Answer::Here, padding)? else { return Ok(None) };
        let vitals = self.answer_to(transfer)?.ok_or(ExamError::NoVitals)?;
        Ok(Some((packets, vitals)))
    }

    /// As [`request`](Self::request), but a delivered request without an answer is `None`, not an error.
    pub(super) fn try_request(
        &mut self,
        padding: usize,
    ) -> Result<Option<(usize, Vitals)>, ExamError> {
        match self.request(padding) {
            Err(ExamError::NoVitals) => Ok(None),
            other => other,
        }
    }

    /// Requests an answer to `other`, which has sent nothing yet. Returns whether it arrives; `None`: the
    /// request was not delivered, as far as is known.
    pub(super) fn is_answered_at(&mut self, other: &Self) -> Result<Option<bool>, ExamError> {
        let port = other.endpoint.local_addr().port();
        let Some((transfer, _)) = self.send(Answer::At(port), 0)? else { return Ok(None) };
        Ok(Some(other.answer_to(transfer)?.is_some()))
    }

    /// Waits for the answer to a request. `None`: it did not arrive.
    fn answer_to(&self, transfer: TransferId) -> Result<Option<Vitals>, ExamError> {
        let until = Instant::now() + self.deadline;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.endpoint.recv().wait_for(left);
            let Some(Ok(message)) = message else { return Ok(None) };
            match Frame::decode_answer(&message.bytes) {
                Ok(frame) if frame.transfer == transfer => match frame.body {
                    Body::Vitals(vitals) => return Ok(Some(vitals)),
                    Body::Failed(reason) => return Err(ExamError::Refused(reason)),
                    _ => {}
                },
                // An answer to an earlier request, or no answer.
                _ => {}
            }
        }
    }

    /// Sends a request. Returns the number of packets that took; `None`: not delivered, as far as is known.
    fn send(
        &mut self,
        answer: Answer,
        padding: usize,
    ) -> Result<Option<(TransferId, usize)>, ExamError> {
        let transfer = TransferId { session: self.session, file: self.requests };
        self.requests += 1;
        // No packet more than is needed: each is accounted for.
        let policy = BurstPolicy::Budgeted { margin: 0.0 };
        let options = SendOptions::default().deadline(self.deadline).policy(policy);
        let frame = request_frame(transfer, self.peer, answer, padding);
        match self.endpoint.send(self.peer, frame).options(options).wait() {
            Ok(receipt) => Ok(Some((transfer, receipt.packets))),
            Err(
                error @ (SendError::NoAnswer
                | SendError::NotAccepted
                | SendError::OtherVersion { .. }
                | SendError::NotSent(_)
                | SendError::Deadline
                | SendError::Busy
                | SendError::PartlySent(_)
                | SendError::PeerRestarted),
            ) => {
                self.last_error = Some(error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Explains why the last request was not delivered.
    pub(super) fn explain_no_answer(&self, probe: &Probe) -> Failure {
        let peer = self.peer;
        let waited = self.deadline;
        let known = self.last_error.as_ref();
        let known = known.and_then(|error| Failure::of_peer(peer, waited, error));
        let known = known.unwrap_or(Failure::NoAnswer { peer, waited });
        known.explained(|| probe.refusal(address::PROBE_FOR))
    }

    /// Sends `packets` single packets and compares the counters of both ends. `None`: the port does not
    /// work, in one direction or both.
    ///
    /// The receiver answers none of these packets with a message: its messages take other paths, and
    /// would be counted among the packets on this one.
    pub(super) fn examine(mut self, packets: u32) -> Result<Option<Findings>, ExamError> {
        let Some(first) = self.snapshot()? else { return Ok(None) };
        let foreign_before = self.endpoint.counters().io.foreign_dscp;
        for _ in 0..packets {
            if self.send(Answer::Nowhere, self.full)?.is_none() {
                return Ok(None);
            }
        }
        let Some(mut found) = self.compare(&first)? else { return Ok(None) };
        // On a busy host, a thread may have been preempted before it sent or counted packets. Packets that are
        // only late have arrived by the next count.
        // With three busy loops on two cores, about one of five examinations of 128 ports found
        // losses where there were none.
        for _ in 0..RECOUNTS {
            if found.lost_there == 0 && found.lost_back == 0 {
                break;
            }
            thread::sleep(RECOUNT_AFTER);
            let Some(again) = self.compare(&first)? else { break };
            found = again;
        }
        let io = self.endpoint.counters().io;
        found.foreign_dscp_back = io.foreign_dscp - foreign_before;
        found.first_foreign_dscp_back = io.first_foreign_dscp;
        Ok(Some(found))
    }

    /// Compares the counters of both ends with those of `first`. `None`: the port no longer works.
    fn compare(&mut self, first: &Snapshot) -> Result<Option<Findings>, ExamError> {
        let Some(last) = self.snapshot()? else { return Ok(None) };
        // A peer's numbers may be anything.
        let since = |of: fn(&Vitals) -> u64| of(&last.vitals).saturating_sub(of(&first.vitals));
        let sent = last.sent.saturating_sub(first.sent);
        let answers = since(|vitals| vitals.answers);
        let received = last.answers.saturating_sub(first.answers);
        let paths = self.endpoint.paths(self.peer);
        Ok(Some(Findings {
            sent,
            lost_there: sent.saturating_sub(since(|vitals| vitals.symbols)),
            answers,
            // The receiver may take one count before the STOP of the request leaves, and the other after.
            lost_back: answers.saturating_sub(received + 1),
            round_trip_seconds: paths
                .first()
                .and_then(|path| path.round_trip)
                .map(|time| time.as_secs_f64()),
            foreign_dscp_there: since(|vitals| vitals.foreign_dscp),
            foreign_dscp_back: 0,
            first_foreign_dscp_back: None,
        }))
    }

    /// Repeats a request until it takes only one packet. That one has arrived and has been answered, so nothing
    /// is in flight, and any packet that one end has sent and the other has not received is lost.
    fn snapshot(&mut self) -> Result<Option<Snapshot>, ExamError> {
        for _ in 0..TRIES {
            // The receiver has answered other ports, so this port loses many packets on the way back.
            let Some((took, vitals)) = self.try_request(self.full)? else { return Ok(None) };
            if took == 1 {
                let peer = self.endpoint.peer(self.peer);
                let counters = peer.map(|peer| peer.sent).unwrap_or_default();
                return Ok(Some(Snapshot {
                    vitals,
                    sent: counters.symbols_sent,
                    answers: counters.answers_received,
                }));
            }
        }
        Ok(None)
    }
}

/// Encodes a request to `peer`.
fn request_frame(transfer: TransferId, peer: SocketAddr, answer: Answer, padding: usize) -> Bytes {
    let body = Body::Examine {
        answer: answer != Answer::Nowhere,
        answer_to: if let Answer::At(port) = answer { port } else { 0 },
        addressed: Some(peer),
        padding: Bytes::from(vec![0; padding]),
    };
    Frame { transfer, body }.encode()
}

/// Returns the bytes of padding with which a request to `peer` fills a packet.
fn full(config: &Config, peer: SocketAddr) -> usize {
    let headers = if peer.is_ipv4() { 28 } else { 48 };
    let transfer = TransferId { session: InvocationId([0; 16]), file: 0 };
    let others = DIGEST + request_frame(transfer, peer, Answer::Here, 0).len();
    config.max_symbol(config.code, headers).saturating_sub(others)
}

/// Whether more packets had another DSCP than stray answers would explain.
const fn is_rewritten(foreign: u64, of: u64) -> bool {
    // The receiver counts packets of all senders, so a few may be of another one.
    foreign.saturating_mul(4) > of
}
