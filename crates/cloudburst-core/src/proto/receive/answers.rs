//! What a receiver says, and by which way: STOP, STATUS, BUSY, REJECT.

use super::Receiver;
use super::routes::copies;
use crate::id::{PathId, SessionId};
use crate::proto::limits::MAX_ANSWERS;
use crate::proto::{Contents, Transmit, marking};
use crate::wire::{Answer, Prefix, Verdict};

/// Answers of one batch.
const MAX_JOINED: usize = 16;
/// Of these, so many are looked at for one to the same block.
const LOOK_BACK: usize = 64;

/// An answer that waits to be sent.
#[derive(Debug)]
pub(super) struct Outbound {
    session: SessionId,
    /// The path of the symbol that it answers, if it does.
    path: Option<PathId>,
    answer: Answer,
    /// It has left by a route; so many times more it leaves by other ways.
    routed: bool,
    detours: usize,
}

impl Receiver {
    /// Appends the next datagrams for one path to `buffer`. Answers are not paced: none is larger
    /// than the packet that caused it.
    pub(in crate::proto) fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let start = buffer.len();
        let marking = marking::control(&self.config);
        if let Some((via, ack)) = self.acks.pop_front() {
            ack.write(&self.identity.hello_key, buffer);
            let len = buffer.len() - start;
            return Some(Transmit {
                contents: Contents::Answers,
                via,
                segment_size: len,
                len,
                marking,
            });
        }
        while let Some(mut outbound) = self.answers.pop_front() {
            let Some(session) = self.sessions.get_mut(&outbound.session) else { continue };
            let way = if outbound.routed {
                outbound.detours -= 1;
                session.routes.take_detour(&*self.path_map)
            } else {
                session.routes.take()
            };
            let Some((path, via)) = way else { continue };
            let alone = outbound.routed || outbound.detours > 0;
            outbound.routed = true;
            let len = outbound.answer.sealed_len();
            for joined in 1.. {
                session.write_answer(&outbound.answer, path, buffer);
                self.counters.on_answer(outbound.answer.kind());
                // Answers of equal length to one peer are one system call, by one route.
                let joins = |next: &mut Outbound| {
                    next.session == outbound.session
                        && !next.routed
                        && next.detours == 0
                        && next.answer.sealed_len() == len
                };
                if alone || joined == MAX_JOINED {
                    break;
                }
                let Some(next) = self.answers.pop_front_if(joins) else { break };
                outbound = next;
            }
            if outbound.detours > 0 {
                self.answers.push_front(outbound);
            }
            let sent = buffer.len() - start;
            return Some(Transmit {
                contents: Contents::Answers,
                via,
                segment_size: len,
                len: sent,
                marking,
            });
        }
        None
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_output(&self) -> bool {
        !self.acks.is_empty() || !self.answers.is_empty()
    }

    /// Whether what waits should wait no longer for symbols to leave with.
    pub(in crate::proto) fn is_overdue(&self) -> bool {
        !self.acks.is_empty() || (self.overdue && !self.answers.is_empty())
    }

    /// Appends an answer that waits to the symbols in `buffer`, if they go to the same peer and it is
    /// no longer than they are; returns what the batch is then.
    pub(in crate::proto) fn poll_piggyback(
        &mut self,
        batch: Transmit,
        buffer: &mut Vec<u8>,
    ) -> Transmit {
        let Transmit { contents, via, segment_size: room, marking, .. } = batch;
        self.overdue = true;
        // Where a HELLO goes, it is not known who is there, or whether anything gets through.
        if !matches!(contents, Contents::Symbols(_))
            || !marking::may_carry_answers(&self.config, marking)
        {
            return batch;
        }
        let sessions = &self.sessions;
        let fits = |waiting: &Outbound| {
            !waiting.routed
                && waiting.detours == 0
                && waiting.answer.sealed_len() <= room
                && sessions.get(&waiting.session).is_some_and(|known| known.own == via.remote)
        };
        let found = self.answers.iter().take(LOOK_BACK).position(fits);
        let Some(outbound) = found.and_then(|at| self.answers.remove(at)) else { return batch };
        let Some(session) = self.sessions.get_mut(&outbound.session) else { return batch };
        session.write_answer(&outbound.answer, PathId(via.lane), buffer);
        self.counters.on_answer(outbound.answer.kind());
        Transmit { len: buffer.len(), ..batch }
    }

    /// Queues an answer, or several copies for different ways, of at most `limit` bytes in all.
    pub(super) fn answer(
        &mut self,
        name: SessionId,
        symbol: Option<Prefix>,
        mut answer: Answer,
        limit: usize,
    ) {
        if let Verdict::Delivered { arrivals, .. }
        | Verdict::BlockDone { arrivals, .. }
        | Verdict::Status { arrivals, .. } = &mut answer.verdict
        {
            arrivals.truncate(Answer::arrivals_within(limit));
        }
        let path = symbol.map(|symbol| symbol.path);
        let again = symbol.is_some_and(|symbol| symbol.again);
        let detours = if again { copies(answer.sealed_len(), limit) - 1 } else { 0 };
        let outbound = Outbound { session: name, path, answer, routed: false, detours };
        // What has not left yet is out of date: this has all that it said of the block. So symbols
        // that came together are answered together, but those of each path apart, unless the peer hears
        // nothing anyway: an answer is news of the path of the one that it names.
        let same = |waiting: &&mut Outbound| {
            waiting.session == name
                && (again || waiting.path == path)
                && waiting.answer.message == outbound.answer.message
                && waiting.answer.block == outbound.answer.block
        };
        if let Some(waiting) = self.answers.iter_mut().rev().take(LOOK_BACK).find(same) {
            *waiting = outbound;
            return;
        }
        if self.answers.is_empty() {
            self.overdue = false;
        }
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
            self.counters.answers_dropped += 1;
        }
        self.answers.push_back(outbound);
    }
}
