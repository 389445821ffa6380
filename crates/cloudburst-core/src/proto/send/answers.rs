//! Handles ANSWERs, with reports on messages.

use super::peer::Peer;
use super::recovery::Pull;
use super::{Outgoing, Sender};
use crate::error::Outcome;
use crate::proto::observe::{Observation, ReportKind, emit, emit_path_changes, path_states};
use crate::rate::{Evidence, RoundTrips};
use crate::time::Instant;
use crate::wire::answer::{self, ArrivalsView};
use crate::wire::seal::{OpenError, TAG_LEN};
use crate::wire::{Answer, Prefix, Report, Verdict};
use core::time::Duration;
use std::net::SocketAddr;

impl Sender {
    /// Handles an ANSWER. The contents of `packet` are unspecified afterwards.
    pub(in crate::proto) fn handle_answer(&mut self, now: Instant, packet: &mut [u8]) {
        let Ok(prefix) = Prefix::parse(packet) else { return self.counters.malformed += 1 };
        let Some(&address) = self.sessions.get(&prefix.session) else {
            return self.counters.unknown_session += 1;
        };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(session) = &mut peer.session else { return };
        let Some(payload_at) = packet.len().checked_sub(TAG_LEN) else {
            return self.counters.malformed += 1;
        };
        match session.opener.open(prefix.number, packet, payload_at) {
            Ok(_) => {}
            Err(OpenError::Replayed) => return self.counters.replayed += 1,
            Err(OpenError::Forged) => return self.counters.forged += 1,
        }
        // Reports are parsed only after authentication.
        let Ok((_, mut reports)) = answer::reports(packet) else {
            return self.counters.malformed += 1;
        };
        peer.counts.answers_received += 1;
        let before = self.observer.as_ref().map(|_| path_states(peer.paths.stats()));
        let mut freshest = None;
        for report in reports.clone() {
            let Report::Message(answer) = report else { continue };
            // Even if it says nothing new about the message, it says something of the path.
            if let Some((path, rtt)) = peer.rtt.on_answer(now, answer.acknowledged) {
                peer.paths.answered(now, path, rtt);
                peer.on_acknowledged(now, answer.acknowledged);
                // An answer counts from when its cause was sent: after a sleep, one of any age may
                // wait in the sockets.
                freshest = Some(freshest.map_or(rtt, |known: Duration| known.min(rtt)));
            }
        }
        let resumed = peer.answered(now, freshest);
        let awaited = peer.opening.is_some() || !peer.connects.is_empty() || self.line.len() > 0;
        for report in reports.clone() {
            if let Report::Alive { nonce } = report {
                self.on_alive(now, address, nonce);
            }
        }
        if awaited {
            self.end_connects_to(address);
            // The handshake was begun because the peer did not answer, which has changed.
            let settled = |peer: &Peer| peer.liveness.is_verified() && peer.connects.is_empty();
            if self.peers.get(&address).is_some_and(settled) {
                self.end_handshake(address);
            }
        }
        self.reschedule_peer(address);
        for report in reports.clone() {
            if let Report::Message(answer) = report {
                self.take_answer(now, address, answer);
            }
        }
        if let (Some(before), Some(peer)) = (before, self.peers.get(&address)) {
            emit_path_changes(&self.observer, address, &before, peer.paths.stats());
        }
        // Messages continue only once the reports on them have been handled.
        self.resume(now, address, resumed);
        if let Some(end) = reports.find_map(|report| match report {
            Report::Ended(end) => Some(end),
            _ => None,
        }) {
            self.on_ended(now, address, &end);
        }
        self.limit_rate(now, address, freshest);
    }

    /// Updates the rate limit after an answer of a peer. The packet that it acknowledges was sent
    /// `age` ago, if that is known.
    fn limit_rate(&mut self, now: Instant, address: SocketAddr, age: Option<Duration>) {
        let Some(limit) = &mut self.limit else { return };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if peer.rate_changes != limit.changes {
            // Packets before the change were sent at another rate.
            peer.paths.clear_evidence();
            peer.paths.take_report();
            // Each message has its reports, and an answer about one tells of packets of a round trip.
            let counts_from = limit.changed_at + peer.rtt.smoothed().unwrap_or_default();
            if age.is_none_or(|age| now - age >= counts_from) {
                peer.rate_changes = limit.changes;
            }
            return;
        }
        let report = peer.paths.take_report();
        let evidence = peer.paths.has_evidence().then(|| {
            let evidence = Evidence::of(peer.paths.evidence());
            peer.paths.clear_evidence();
            evidence
        });
        let trips = RoundTrips {
            last: age,
            smoothed: peer.rtt.smoothed().unwrap_or_default(),
            shortest: peer.rtt.shortest().unwrap_or_default(),
            mtu: peer.mtu.size,
        };
        let peers = &self.peers;
        let alone = |is_witness: &dyn Fn(SocketAddr) -> bool| {
            let idle =
                |(other, peer): (&SocketAddr, &Peer)| peer.has_no_messages() || is_witness(*other);
            peers.iter().all(idle)
        };
        let changes = limit.changes;
        limit.on_report(now, address, &report, &trips, alone);
        if let Some(evidence) = evidence
            && limit.changes == changes
        {
            limit.on_evidence(now, address, &evidence, &trips, alone);
        }
        self.follow_limit(now);
    }

    /// Paces symbols according to the limit.
    pub(super) fn follow_limit(&mut self, now: Instant) {
        let Some(limit) = &self.limit else { return };
        if self.limited_to != limit.share {
            self.limited_to = limit.share;
            self.pacer.limit(now, limit.share, limit.window() as usize * self.config.usual_mtu());
            let bits_per_second = self.pacer.bits_per_second();
            emit(&self.observer, || Observation::RateChanged { bits_per_second });
        }
    }

    /// Handles an authentic answer, whose peer already counts as heard from.
    fn take_answer(&mut self, now: Instant, address: SocketAddr, answer: Answer<ArrivalsView<'_>>) {
        match &answer.verdict {
            Verdict::BlockDone { .. } | Verdict::Delivered { .. } => {
                self.counters.stops_received += 1;
            }
            Verdict::Nack { .. } => self.counters.nacks_received += 1,
            Verdict::Pull { .. } => self.counters.pulls_received += 1,
            Verdict::Busy | Verdict::Held => self.counters.busy_received += 1,
            Verdict::Reject(_) | Verdict::Forgotten => {}
        }
        let mine = self.messages.get(&answer.message).is_some_and(|m| m.transfer.peer == address);
        if !mine {
            self.counters.late_answers += 1;
            if let (Verdict::Delivered { arrivals, .. }, Some(peer)) =
                (&answer.verdict, self.peers.get_mut(&address))
            {
                let arrivals = arrivals.iter();
                peer.on_late_arrivals(now, answer.message, answer.acknowledged, arrivals);
            }
            return;
        }
        emit(&self.observer, || Observation::Report {
            peer: address,
            message: answer.message,
            block: answer.block,
            kind: ReportKind::from(&answer.verdict),
            sends: true,
        });
        self.handle_verdict(now, address, answer);
    }

    fn handle_verdict(
        &mut self,
        now: Instant,
        address: SocketAddr,
        answer: Answer<ArrivalsView<'_>>,
    ) {
        let Answer { message: id, block, acknowledged, verdict } = answer;
        let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else { return };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(session) = &peer.session else { return };
        transfer.answered = true;
        let next = session.sealer.next_number();
        let rto = peer.rtt.rto();
        let mut resumed = false;
        match verdict {
            // Of symbols that the receiver has forgotten, or of an older cut.
            Verdict::BlockDone { .. }
            | Verdict::Nack { .. }
            | Verdict::Pull { .. }
            | Verdict::Forgotten
                if transfer.is_outdated(acknowledged) => {}
            Verdict::Delivered { digest, arrivals } => {
                if !source.is(digest, &session.digest) {
                    return self.counters.false_stops += 1;
                }
                transfer.on_arrivals(now, acknowledged, arrivals, &mut peer.paths, rto);
                let receipt = transfer.receipt(now);
                let is_waited_for = !peer.paused.is_empty();
                let delivered = peer.counts.bytes_delivered + receipt.bytes as u64;
                let may_raise = peer.mtu.may_raise(now, delivered);
                self.finish(id, Outcome::Delivered(receipt));
                if is_waited_for {
                    self.probe_next_paused(now, address);
                }
                if may_raise {
                    self.raise_mtu(now, address);
                }
                return;
            }
            Verdict::BlockDone { digest, arrivals } => {
                if !source.has_block(block, digest) {
                    return self.counters.false_stops += 1;
                }
                transfer.on_block_done(now, block, next, source);
                let is_new =
                    transfer.on_arrivals(now, acknowledged, arrivals, &mut peer.paths, rto);
                self.counters.progress_reports += u64::from(is_new);
                resumed = transfer.on_progress(now, rto);
            }
            Verdict::Nack { needed, arrivals } => {
                let is_new =
                    transfer.on_arrivals(now, acknowledged, arrivals, &mut peer.paths, rto);
                self.counters.progress_reports += u64::from(is_new);
                // What was refused was not lost, so it says nothing of losses to come.
                resumed = transfer.on_progress(now, rto);
                if !resumed {
                    transfer.on_feedback(block, acknowledged, u32::from(needed));
                }
            }
            Verdict::Pull { credit, fin, arrivals } => {
                let is_new =
                    transfer.on_arrivals(now, acknowledged, arrivals, &mut peer.paths, rto);
                self.counters.progress_reports += u64::from(is_new);
                resumed = transfer.on_progress(now, rto);
                let pull = Pull { acknowledged, credit, fin };
                transfer.on_pull(now, block, pull, next, rto);
            }
            Verdict::Busy => {
                transfer.on_busy(now, false);
                if transfer.is_busy() {
                    peer.paused.insert(id);
                }
            }
            Verdict::Held => {
                transfer.on_busy(now, true);
                peer.paused.remove(&id);
            }
            Verdict::Forgotten => transfer.on_forgotten(next, source),
            Verdict::Reject(reason) => {
                return self.on_rejected(now, address, id, reason);
            }
        }
        let vanishes = transfer.vanishes();
        if resumed {
            peer.paused.remove(&id);
            self.probe_next_paused(now, address);
        }
        if vanishes {
            self.watch_vanishing(now, id);
        }
        self.reschedule(id);
    }

    /// Has the first of the messages that wait for capacity of a peer ask again, because there is some: it
    /// has just begun or delivered another. So they follow each other as fast as the peer takes them.
    fn probe_next_paused(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        while let Some(&id) = peer.paused.first() {
            if let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id)
                && transfer.is_busy()
            {
                transfer.hasten_probe(now);
                return self.reschedule(id);
            }
            // It has begun again.
            peer.paused.remove(&id);
        }
    }
}
