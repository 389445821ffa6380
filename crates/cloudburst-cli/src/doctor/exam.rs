//! What becomes of the packets of one source port: one at a time, so that no queue fills up.

use super::{ExamError, FULL};
use crate::plan::DoctorPlan;
use crate::protocol::{Body, Frame, InvocationId, TransferId, Vitals};
use bytes::Bytes;
use cloudburst_net::{
    BurstPolicy, Config, Endpoint, PathMap, Rejection, SendError, SendOptions, blocking,
};
use core::time::Duration;
use std::net::SocketAddr;
use std::time::Instant;

/// How often to ask until a question needs one packet.
const TRIES: usize = 32;

/// An endpoint that asks a receiver how it is.
pub(super) struct Examiner {
    pub(super) endpoint: blocking::Endpoint,
    peer: SocketAddr,
    session: InvocationId,
    asked: u32,
    deadline: Duration,
}

/// What became of the packets of one source port.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Findings {
    /// SYMBOL packets sent, and how many of them the receiver did not get.
    pub(super) sent: u64,
    pub(super) lost_there: u64,
    /// Answers that the receiver sent to this port, and how many of them did not come.
    pub(super) answers: u64,
    pub(super) lost_back: u64,
    pub(super) round_trip: Option<Duration>,
    /// Packets that came to the receiver meanwhile with another DSCP than it has, from anybody.
    pub(super) foreign_there: u64,
    /// Packets that came back with another DSCP than was sent.
    pub(super) foreign_back: u64,
    pub(super) first_foreign_back: Option<u8>,
}

/// What both ends had counted when nothing was on its way.
#[derive(Clone, Copy)]
struct Moment {
    vitals: Vitals,
    sent: u64,
    answers: u64,
}

impl Examiner {
    /// An endpoint of `paths` source ports, the first of them that of `local`.
    pub(super) fn new(
        plan: &DoctorPlan,
        local: SocketAddr,
        peer: SocketAddr,
        paths: u16,
    ) -> Result<Self, ExamError> {
        let mut builder = Endpoint::builder()
            .bind(local)
            .paths(PathMap::ecmp(paths))
            .security(plan.key.security())
            .dscp(plan.dscp);
        // One packet at a time takes no capacity; a burst should fit the link.
        if let Some(capacity) = plan.capacity {
            builder = builder.capacity(capacity);
        } else if paths == 1 {
            builder = builder.capacity(Config::default().capacity);
        }
        let endpoint = builder.build()?.blocking();
        let session = InvocationId(rand::random());
        Ok(Self { endpoint, peer, session, asked: 0, deadline: plan.deadline })
    }

    /// Asks with `padding` bytes; how many packets that took, and the answer. `None`: no answer.
    pub(super) fn ask(&mut self, padding: usize) -> Result<Option<(usize, Vitals)>, ExamError> {
        let Some((transfer, packets)) = self.send(true, padding)? else { return Ok(None) };
        let until = Instant::now() + self.deadline;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(Some(message)) = self.endpoint.recv_timeout(left) else {
                return Err(ExamError::NoVitals);
            };
            match Frame::decode(&message.bytes) {
                Ok(Frame { transfer: of, body: Body::Vitals(vitals) }) if of == transfer => {
                    return Ok(Some((packets, vitals)));
                }
                // An answer to an earlier question, or no answer.
                _ => {}
            }
        }
    }

    /// Sends a question, with how many packets. `None`: nobody has got it, for all that is known.
    fn send(
        &mut self,
        answer: bool,
        padding: usize,
    ) -> Result<Option<(TransferId, usize)>, ExamError> {
        let transfer = TransferId { session: self.session, file: self.asked };
        self.asked += 1;
        let body = Body::Examine { answer, padding: Bytes::from(vec![0; padding]) };
        // Not one packet more than is needed: each should be accounted for.
        let policy = Some(BurstPolicy::Budgeted { margin: 0.0 });
        let options =
            SendOptions { deadline: Some(self.deadline), policy, ..SendOptions::default() };
        let question = Frame { transfer, body }.encode();
        match self.endpoint.send_with(self.peer, question, options) {
            Ok(receipt) => Ok(Some((transfer, receipt.packets))),
            Err(
                SendError::Rejected(Rejection::NoAnswer | Rejection::Local(_))
                | SendError::Unknown(_),
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends `packets` single packets, and compares what both ends have counted; `None`: the port
    /// does not work, one way or the other.
    ///
    /// Nothing is answered by a message meanwhile: messages of the receiver come by other ways, and
    /// would be counted among what comes by this one.
    pub(super) fn examine(mut self, packets: u32) -> Result<Option<Findings>, ExamError> {
        let Some(first) = self.moment()? else { return Ok(None) };
        let foreign_before = self.endpoint.counters().io.foreign_dscp;
        for _ in 0..packets {
            if self.send(false, FULL)?.is_none() {
                return Ok(None);
            }
        }
        let io = self.endpoint.counters().io;
        let Some(last) = self.moment()? else { return Ok(None) };

        // A peer's numbers may be anything.
        let since = |of: fn(&Vitals) -> u64| of(&last.vitals).saturating_sub(of(&first.vitals));
        let sent = last.sent.saturating_sub(first.sent);
        let answers = since(|vitals| vitals.answers);
        let came = last.answers.saturating_sub(first.answers);
        let paths = self.endpoint.paths(self.peer);
        Ok(Some(Findings {
            sent,
            lost_there: sent.saturating_sub(since(|vitals| vitals.symbols)),
            answers,
            // A receiver may count before the STOP of the question leaves, and the other time after it.
            lost_back: answers.saturating_sub(came + 1),
            round_trip: paths.first().and_then(|path| path.round_trip),
            foreign_there: since(|vitals| vitals.foreign_dscp),
            foreign_back: io.foreign_dscp - foreign_before,
            first_foreign_back: io.first_foreign_dscp,
        }))
    }

    /// Asks until a question took one packet: that one has come and has been answered, and nothing
    /// else is on its way. What one end has sent by then, and the other has not had, is lost.
    fn moment(&mut self) -> Result<Option<Moment>, ExamError> {
        for _ in 0..TRIES {
            let (took, vitals) = match self.ask(FULL) {
                Ok(Some(answer)) => answer,
                // By other ports it has answered: on the way back, much is lost here.
                Ok(None) | Err(ExamError::NoVitals) => return Ok(None),
                Err(error) => return Err(error),
            };
            if took == 1 {
                let peer = self.endpoint.peer(self.peer);
                let sent = peer.map(|peer| peer.sent).unwrap_or_default();
                let (sent, answers) = (sent.symbols_sent, sent.answers_received);
                return Ok(Some(Moment { vitals, sent, answers }));
            }
        }
        Ok(None)
    }
}
