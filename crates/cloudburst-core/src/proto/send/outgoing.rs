//! One message on its way out: its blocks, their recovery, its place in the schedule.

use super::SendOptions;
use super::recovery::Recovery;
use super::schedule::{Place, Rank};
use super::trail::Trail;
use crate::code::{Code, Encoder};
use crate::config::{BurstPolicy, Config};
use crate::error::{LocalError, Receipt};
use crate::id::{Digest, MessageId, PathId};
use crate::path::PathSet;
use crate::proto::layout::Layout;
use crate::proto::limits::{MAX_COUNTED_PATHS, MAX_RESTARTS};
use crate::time::Instant;
use crate::wire::answer::NO_ECHO;
use crate::wire::keys::DigestKey;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use crate::wire::{Answer, Arrivals, Role};
use bytes::Bytes;
use core::cmp::Reverse;
use core::time::Duration;
use std::net::SocketAddr;

const FIRST_BUSY_WAIT: Duration = Duration::from_millis(1);
const MAX_BUSY_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) id: MessageId,
    pub(super) peer: SocketAddr,
    pub(super) role: Role,
    pub(super) bytes: Bytes,
    pub(super) layout: Layout,
    pub(super) code: Code,
    pub(super) deadline: Instant,
    pub(super) started_at: Option<Instant>,
    pub(super) packets: usize,
    /// How many packets there were when the host did not take the last of them, and why.
    pub(super) not_sent: Option<(usize, LocalError)>,
    /// The receiver has said something of this message. It stays so.
    pub(super) answered: bool,
    priority: u8,
    policy: BurstPolicy,
    max_redundancy: u32,
    blocks_in_flight: usize,
    accepted_at: Instant,
    /// Blocks begun and not stopped, in order.
    active: Vec<Block>,
    /// Digests of all blocks that were ever begun, by block number.
    digests: Vec<Digest>,
    /// Blocks begun, since the receiver last forgot them.
    begun: usize,
    done: usize,
    /// The receiver had no room: nothing but a probe at this moment, until it has.
    busy_until: Option<Instant>,
    busy_wait: Duration,
    /// How often the receiver forgot what it had.
    restarts: u32,
    arrivals: Vec<Arrivals>,
    trail: Trail,
    /// Where the schedule has this message: among the ready, and among the timers.
    pub(super) place: Option<Place>,
    pub(super) timer_key: Option<Instant>,
    /// Where the silence of its peer has it, among those that wait for a probe.
    pub(super) probe_key: Option<Instant>,
    /// The peer has not answered for long: so many symbols may be sent, and no others.
    held: Option<u32>,
}

/// One block under way.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) index: u32,
    pub(super) encoder: Encoder,
    pub(super) digest: Digest,
    pub(super) recovery: Recovery,
    first_symbol: u32,
}

impl Block {
    /// The symbol to send next.
    pub(super) fn next_symbol(&self) -> u32 {
        self.first_symbol.wrapping_add(self.recovery.sent())
    }
}

impl Outgoing {
    pub(super) fn new(
        now: Instant,
        id: MessageId,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        config: &Config,
    ) -> Self {
        let code = options.code.unwrap_or(config.code);
        Self {
            id,
            peer,
            role,
            layout: Layout::fit(bytes.len(), config.max_symbol(code)),
            bytes,
            code,
            deadline: now + options.deadline.unwrap_or(config.deadline),
            started_at: None,
            packets: 0,
            not_sent: None,
            answered: false,
            priority: options.priority,
            policy: options.policy.unwrap_or(config.policy),
            max_redundancy: config.max_redundancy,
            blocks_in_flight: config.blocks_in_flight,
            accepted_at: now,
            active: Vec::new(),
            digests: Vec::new(),
            begun: 0,
            done: 0,
            busy_until: None,
            busy_wait: FIRST_BUSY_WAIT,
            restarts: 0,
            arrivals: Vec::new(),
            trail: Trail::default(),
            place: None,
            timer_key: None,
            probe_key: None,
            held: None,
        }
    }

    /// Whether a symbol may be sent now.
    pub(super) fn is_ready(&self) -> bool {
        self.held != Some(0) && self.has_more()
    }

    /// Whether there is a symbol to send, if the peer's silence let it.
    fn has_more(&self) -> bool {
        self.may_begin() || self.active.iter().any(|block| block.recovery.allowance() > 0)
    }

    /// What it has to say for itself when the next round is given away.
    pub(super) fn rank(&self) -> Rank {
        let probing = self.held.is_some();
        Rank { probing, priority: Reverse(self.priority), remaining: self.remaining() }
    }

    /// Symbols that are still to be sent if nothing more is lost: what the shortest have least of.
    fn remaining(&self) -> usize {
        let granted: usize =
            self.active.iter().map(|block| block.recovery.allowance() as usize).sum();
        let to_begin = self.layout.blocks() - self.begun;
        granted + to_begin * self.layout.source_symbols() / self.layout.blocks()
    }

    /// The block whose turn it is, and where to note what of it goes where; begins the next block
    /// where none is ready.
    pub(super) fn turn(
        &mut self,
        digest: &DigestKey,
        paths: usize,
    ) -> Option<(&mut Block, &mut Trail)> {
        if let Some(at) = self.active.iter().position(|block| block.recovery.allowance() > 0) {
            return Some((&mut self.active[at], &mut self.trail));
        }
        if !self.may_begin() {
            return None;
        }
        let index = self.begun;
        let shape = self.layout.shape(index)?;
        let bytes = self.bytes.slice(self.layout.bytes(index)?);
        if index == self.digests.len() {
            self.digests.push(digest.block(self.id, index as u32, &bytes));
        }
        let digest = self.digests[index];
        self.begun += 1;
        let n = shape.source_symbols();
        // Where symbols are drawn by their ids, blocks that all began with id 0 would all share
        // its luck, good or bad; the digest is as good as a random start.
        let [a, b, c, d, ..] = digest.0;
        let drawn = u32::from_be_bytes([a, b, c, d]);
        self.active.push(Block {
            index: index as u32,
            first_symbol: if self.code.is_systematic() { 0 } else { drawn },
            encoder: Encoder::new(self.code, shape, bytes).ok()?,
            digest,
            recovery: Recovery::new(
                self.policy,
                n,
                self.code.expected_symbols(n),
                self.max_redundancy,
                paths,
            ),
        });
        Some((self.active.last_mut()?, &mut self.trail))
    }

    fn may_begin(&self) -> bool {
        self.busy_until.is_none()
            && self.active.len() < self.blocks_in_flight
            && self.begun < self.layout.blocks()
    }

    /// Whether the receiver has said of some blocks, but not of all, that they are done.
    pub(super) fn is_partial(&self) -> bool {
        self.done > 0
    }

    /// The next moment at which the message itself wants something done.
    pub(super) fn wake_at(&self) -> Instant {
        if self.held.is_some() || self.probe_key.is_some() {
            return self.deadline;
        }
        let other = match self.busy_until {
            Some(until) => Some(until),
            None => self.active.iter().filter_map(|block| block.recovery.next_wake()).min(),
        };
        other.map_or(self.deadline, |at| at.min(self.deadline))
    }

    /// Grants what is due, at most `limit` symbols, and says how many; the deadline is the caller's
    /// business. `all_well`: see [`PathSet::all_well`].
    pub(super) fn on_timeout(&mut self, now: Instant, all_well: bool, limit: u32) -> u32 {
        let Some(until) = self.busy_until else {
            return self.active.iter_mut().fold(0, |granted, block| {
                granted + block.recovery.on_timeout(now, all_well, limit - granted)
            });
        };
        if until > now {
            return 0;
        }
        self.pause(now);
        self.probe_one()
    }

    /// One symbol: it is answered by BUSY again, or by whatever is true by now.
    fn probe_one(&mut self) -> u32 {
        let Some(block) = self.active.first_mut() else { return 0 };
        block.recovery.probe();
        1
    }

    /// The peer has not answered for long: nothing more is sent but what is granted by
    /// [`probe`](Self::probe).
    pub(super) fn hold(&mut self) {
        self.held = Some(0);
    }

    /// Lets at most `limit` symbols go to a peer that does not answer, and says how many.
    pub(super) fn probe(&mut self, now: Instant, all_well: bool, limit: u32, few: u32) -> u32 {
        if self.held.is_none() {
            return self.on_timeout(now, all_well, limit);
        }
        let granted = if self.has_more() {
            few.min(limit)
        } else if self.busy_until.is_some() {
            self.probe_one()
        } else if let Some(block) = self.active.first_mut() {
            block.recovery.grant_probes(all_well, limit)
        } else {
            0
        };
        self.held = Some(granted);
        granted
    }

    /// How many symbols may go now, as far as the peer's silence is concerned.
    pub(super) fn held(&self) -> u32 {
        self.held.unwrap_or(u32::MAX)
    }

    /// Probes have been sent. Says whether the message waits for others.
    pub(super) fn on_probed(&mut self, packets: usize) -> bool {
        let Some(held) = self.held else { return false };
        self.held = Some(held.saturating_sub(packets as u32));
        if !self.is_ready() {
            self.held = Some(0);
        }
        self.held == Some(0)
    }

    /// The peer was heard: what it was held for, or waited for, goes on at once.
    pub(super) fn go_on(&mut self, now: Instant, all_well: bool) {
        let waited = self.probe_key.take().is_some();
        if self.held.take().is_some() && self.busy_until.is_none() {
            for block in self.active.iter_mut().filter(|block| block.recovery.allowance() == 0) {
                block.recovery.grant_probes(all_well, u32::MAX);
            }
        } else if waited {
            self.on_timeout(now, all_well, u32::MAX);
        }
    }

    pub(super) fn on_busy(&mut self, now: Instant) {
        if self.busy_until.is_none() {
            self.pause(now);
            self.active.iter_mut().for_each(|block| block.recovery.revoke());
        }
    }

    fn pause(&mut self, now: Instant) {
        self.busy_until = Some(now + self.busy_wait);
        self.busy_wait = (self.busy_wait * 2).min(MAX_BUSY_WAIT);
    }

    /// The receiver works on the message (again).
    pub(super) fn on_progress(&mut self) {
        if self.busy_until.take().is_some() {
            self.active.iter_mut().for_each(|block| block.recovery.resume());
        }
        self.busy_wait = FIRST_BUSY_WAIT;
    }

    /// The receiver has forgotten the blocks that were done: all begin again. Late echoes of the
    /// same news find no block done, and change nothing.
    pub(super) fn on_forgotten(&mut self) {
        if self.is_partial() && self.restarts < MAX_RESTARTS {
            self.restarts += 1;
            self.busy_until = None;
            self.active.clear();
            self.arrivals.clear();
            self.trail = Trail::default();
            (self.begun, self.done) = (0, 0);
        }
    }

    pub(super) fn on_status(&mut self, block: u32, echo: u64, needed: u32) {
        if let Some(block) = self.active.iter_mut().find(|active| active.index == block) {
            block.recovery.on_feedback(echo, needed);
        }
    }

    /// Stops a block if the digest is the right one. The last one stops with the message alone.
    pub(super) fn on_block_done(&mut self, block: u32, digest: Digest) -> bool {
        if self.digests.get(block as usize) != Some(&digest) {
            return false;
        }
        let last = self.done + 1 == self.layout.blocks();
        if let Some(at) = self.active.iter().position(|active| active.index == block && !last) {
            self.active.remove(at);
            self.done += 1;
        }
        true
    }

    /// Whether `digest` is that of the whole message: only then has the receiver all of it.
    pub(super) fn is_delivered_by(&self, digest: Digest, key: &DigestKey) -> bool {
        self.digests.len() == self.layout.blocks() && key.message(self.id, &self.digests) == digest
    }

    /// Takes in how many symbols the receiver has from each path, as an answer to packet `echo`
    /// says, and tells `paths` what is new.
    pub(super) fn on_arrivals(
        &mut self,
        now: Instant,
        echo: u64,
        arrivals: &[Arrivals],
        paths: &mut PathSet,
    ) {
        let mut news = false;
        for &Arrivals { path, count } in arrivals {
            // The sender's own number of paths bounds what a lying receiver can make it remember.
            if usize::from(path.0) >= paths.stats().len() {
                continue;
            }
            let known = self.arrivals_on(path);
            let more = count.saturating_sub(*known);
            *known += more;
            if more > 0 {
                news = true;
                paths.heard(now, path, more.into());
            }
        }
        // A path that an answer had no room for has not missed anything.
        if news && (arrivals.len() >= paths.stats().len() || arrivals.len() < self.room(echo)) {
            for account in self.trail.account(&self.arrivals) {
                paths.account(now, account.path, account.due, account.missing);
            }
        }
    }

    /// How many arrivals an answer to packet `echo` has room for, at least.
    fn room(&self, echo: u64) -> usize {
        let symbol = if echo == NO_ECHO { 0 } else { self.layout.symbol_size() };
        Answer::arrivals_within(SYMBOL_OVERHEAD + symbol).min(MAX_COUNTED_PATHS)
    }

    fn arrivals_on(&mut self, path: PathId) -> &mut u16 {
        let at = self.arrivals.iter().position(|on| on.path == path).unwrap_or_else(|| {
            self.arrivals.push(Arrivals { path, count: 0 });
            self.arrivals.len() - 1
        });
        &mut self.arrivals[at].count
    }

    /// Why the host did not take its last packets; `None`: it did.
    pub(super) fn local_error(&self) -> Option<LocalError> {
        let (packets, error) = self.not_sent?;
        (packets == self.packets).then_some(error)
    }

    pub(super) fn receipt(&self, now: Instant) -> Receipt {
        let started = self.started_at.unwrap_or(now);
        Receipt {
            bytes: self.bytes.len(),
            blocks: self.layout.blocks(),
            source_symbols: self.layout.source_symbols(),
            packets: self.packets,
            arrivals: self.arrivals.clone(),
            waited: started.saturating_since(self.accepted_at),
            completed_in: now.saturating_since(started),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Incarnation;
    use crate::wire::HelloAck;
    use crate::wire::keys::PresharedKey;

    fn digest_key() -> DigestKey {
        let ack = HelloAck {
            path: PathId(0),
            initiator: Incarnation([1; 16]),
            nonce: 2,
            responder: Incarnation([3; 16]),
            session_nonce: [4; 16],
            current_alive: false,
            more_ports: 0,
            port: 0,
        };
        PresharedKey::new([5; 32]).session(&ack).forward.digest
    }

    #[test]
    fn a_message_that_begins_again_is_still_known_by_its_digest() {
        let (key, config) = (digest_key(), Config::default());
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let bytes = Bytes::from(vec![7; 300_000]);
        let options = SendOptions::default();
        let mut message =
            Outgoing::new(Instant::ZERO, MessageId(9), peer, Role::Plain, bytes, &options, &config);
        let mut digests = Vec::new();
        for index in 0..message.layout.blocks() as u32 {
            let (block, _) = message.turn(&key, 1).unwrap();
            assert_eq!(block.index, index);
            digests.push(block.digest);
            block.recovery.revoke();
            message.on_block_done(index, digests[index as usize]);
        }
        assert!(message.is_partial());
        // The news is late: meanwhile the receiver has collected all blocks again.
        message.on_forgotten();
        assert!(!message.is_partial());
        assert!(message.is_delivered_by(key.message(MessageId(9), &digests), &key));
        assert_eq!(message.turn(&key, 1).unwrap().0.index, 0, "else it begins with the first");
    }
}
