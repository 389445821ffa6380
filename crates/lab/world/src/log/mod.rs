//! The log of a world: what happened while it ran, checked against the promises.
//!
//! | file | role |
//! |---|---|
//! | `messages` | messages sent, delivered and ended |
//! | `checks` | checks of what endpoints report about sends |
//! | `traffic` | bytes by host and address |
//! | `trace` | a hash of everything |

mod checks;
mod messages;
mod trace;
mod traffic;

pub(crate) use checks::check_refusal;
pub(crate) use messages::{Name, Sent, UNIQUE};
pub(crate) use trace::Trace;

use crate::adversary::{Adversary, Rule};
use crate::drive::Watch;
use crate::faults::Faults;
use crate::host::{Departure, Host};
use crate::network::Hop;
use crate::setup::{Setup, host_at};
use checks::{Facts, SESSION_IDLE};
use cloudburst_core::naming::is_alias;
use cloudburst_core::path::Via;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::{Answer, Kind, RejectReason, Report, Verdict, answer};
use messages::MessageLog;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use traffic::TrafficLog;

/// Facts about a host.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    life: u8,
    /// The latest life. The host may have been handed back to an earlier one.
    latest: u8,
    pub(crate) closed: bool,
    /// Whether the process that has handed over its socket is closed.
    former_closed: bool,
    /// Whether a process has handed over its socket.
    handed_over: bool,
    /// Whether one of its lives was closed: answers of that life may still be on their way.
    was_closed: bool,
    /// Whether its clock has stood still.
    pub(crate) clock_stood: bool,
    max_message: usize,
    max_peers: usize,
    /// The address that the latest message states as its sender's.
    pub(crate) last_peer: Option<SocketAddr>,
}

/// Observes a world.
pub(crate) struct Log {
    pub(crate) now: Instant,
    pub(crate) adversary: Adversary,
    pub(crate) messages: MessageLog,
    pub(crate) traffic: TrafficLog,
    pub(crate) trace: Trace,
    pub(crate) profiles: Vec<Profile>,
    /// When a host last received a packet from another, by sender and receiver.
    contacts: BTreeMap<(usize, usize), Instant>,
    /// Senders whose clock hid from them that they were silent for so long that their receiver may have
    /// forgotten the session, and receivers.
    unaware: BTreeSet<(usize, usize)>,
    /// The hosts that sent messages under an alias, by alias.
    aliases: BTreeMap<SocketAddr, usize>,
    /// The hosts that have said that they were busy.
    busy: BTreeSet<usize>,
    /// Whether packets may have gone to a host other than the one that they were sent to.
    diverted: bool,
    faults: Faults,
}

impl Log {
    pub(crate) fn new(setup: &Setup, faults: Faults, trace: Trace) -> Self {
        let profile = |config: &cloudburst_core::config::Config| Profile {
            life: 0,
            latest: 0,
            closed: false,
            former_closed: false,
            handed_over: false,
            was_closed: false,
            clock_stood: false,
            max_message: config.max_message,
            max_peers: config.limits().max_peers,
            last_peer: None,
        };
        Self {
            now: setup.start,
            adversary: Adversary::default(),
            messages: MessageLog::default(),
            traffic: TrafficLog::default(),
            trace,
            profiles: setup.configs.iter().map(profile).collect(),
            contacts: BTreeMap::new(),
            unaware: BTreeSet::new(),
            aliases: BTreeMap::new(),
            busy: BTreeSet::new(),
            diverted: false,
            faults,
        }
    }

    pub(crate) fn set_rule(&mut self, rule: Rule) {
        self.diverted |= matches!(rule, Rule::Relay { .. } | Rule::Mirror { .. });
        self.adversary.rule = rule;
    }

    pub(crate) fn on_closed(&mut self, host: usize) {
        self.profiles[host].closed = true;
        self.profiles[host].was_closed = true;
    }

    /// The host with the address or alias `peer`.
    pub(crate) fn host_of(&self, peer: SocketAddr) -> Option<usize> {
        host_at(peer, self.profiles.len()).or_else(|| self.aliases.get(&peer).copied())
    }

    /// Notes that a host begins its life `life`.
    pub(crate) fn on_restarted(&mut self, host: usize, life: u8) {
        let profile = &mut self.profiles[host];
        profile.life = life;
        profile.latest = life;
        profile.closed = false;
        profile.former_closed = false;
        profile.last_peer = None;
        self.traffic.on_restarted(host);
        self.messages.uncap_to(host);
    }

    /// Notes that another process has the socket of a host.
    pub(crate) fn on_handed_over(&mut self, number: usize, host: &Host) {
        let profile = &mut self.profiles[number];
        profile.life = host.life();
        profile.latest = host.lives();
        core::mem::swap(&mut profile.closed, &mut profile.former_closed);
        profile.handed_over = true;
        profile.last_peer = None;
        self.messages.uncap_to(number);
    }

    /// Whether a host can hold the sessions of all lives of its peers. Each life may have made
    /// more than one handshake.
    pub(crate) fn has_capacity(&self, host: usize) -> bool {
        let lives: usize = self.profiles.iter().map(|peer| 1 + usize::from(peer.latest)).sum();
        self.profiles[host].max_peers >= 2 * lives
    }

    fn facts(&self, now: Instant, from: usize, to: Option<usize>) -> Facts {
        let peer = to.map(|to| &self.profiles[to]);
        Facts {
            now,
            contact: to
                .and_then(|to| self.contacts.get(&(from, to)))
                .map(|at| self.now.saturating_since(*at)),
            peer_replaced: self.diverted
                || to.is_some_and(|to| self.unaware.contains(&(from, to)))
                || self.profiles[from].handed_over
                || to.is_some_and(|to| self.profiles[to].latest > 0 || !self.has_capacity(to)),
            peer_busy: self.diverted || to.is_some_and(|to| self.busy.contains(&to)),
            peer_closed: peer.is_some_and(|peer| peer.was_closed),
            closed: self.profiles[from].closed,
            peer_max: peer.map_or(0, |peer| peer.max_message),
        }
    }
}

impl Watch for Log {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        let Departure { from, ref transmit, ref packet, .. } = *departure;
        let destination = transmit.via.remote;
        let to = host_at(destination, self.profiles.len());
        let known = to.is_some() || !self.faults.forged_addresses;
        self.traffic.on_departure(from, destination.ip(), known, packet);
        self.trace.record(self.now, 0, from, packet);
        let kind = Kind::of(packet);
        let egress = transmit.via.egress;
        let line = format_args!("{from}.{egress} -> {destination} {kind:?} {}", packet.len());
        self.trace.print(self.now, line);
        if let Ok((_, reports)) = answer::parse(packet)
            && reports.iter().any(says_busy)
        {
            self.busy.insert(from);
        }
        self.adversary.on_departure(departure, hop)
    }

    fn on_arrival(&mut self, to: usize, via: Via, packet: &[u8]) {
        self.trace.record(self.now, 3, to, format!("{via:?}").as_bytes());
        self.trace.record(self.now, 4, to, packet);
        self.traffic.on_arrival(to, via.remote.ip(), packet);
        if let Some(from) = host_at(via.remote, self.profiles.len()) {
            let last = self.contacts.insert((from, to), self.now);
            let silent = last.is_some_and(|at| self.now.saturating_since(at) >= SESSION_IDLE);
            if silent && self.profiles[from].clock_stood {
                self.unaware.insert((from, to));
            }
        }
        if let Ok((_, reports)) = answer::parse(packet)
            && reports.iter().any(uncaps)
        {
            self.messages.uncap(to, self.profiles[to].life);
        }
    }

    fn on_served(&mut self, number: usize, host: &mut Host) {
        for message in host.inbox.drain(..) {
            self.trace.record(self.now, 1, number, &message.bytes);
            let from = self.messages.on_message(number, &message);
            if is_alias(&message.peer) {
                let known = *self.aliases.entry(message.peer).or_insert(from);
                assert_eq!(known, from, "two hosts have the same alias");
            } else {
                assert_eq!(self.host_of(message.peer), Some(from), "it has another host's address");
            }
            self.traffic.on_message(number);
            self.profiles[number].last_peer = Some(message.peer);
        }
        for (id, outcome) in core::mem::take(&mut host.outcomes) {
            let name = (number, host.life(), id);
            let ended = format!("{name:?} {outcome:?}");
            self.trace.record(self.now, 2, number, ended.as_bytes());
            self.trace.print(self.now, format_args!("{ended}"));
            let to = self.messages.find(name).and_then(|sent| sent.to);
            let facts = self.facts(host.clock.read(self.now), number, to);
            checks::check(self.messages.on_ended(name, outcome.clone()), &outcome, facts);
        }
    }
}

/// Whether a report says that its sender has no capacity for a message.
const fn says_busy(report: &Report) -> bool {
    matches!(
        report,
        Report::Message(Answer {
            verdict: Verdict::Busy | Verdict::Held | Verdict::Reject(RejectReason::Busy),
            ..
        })
    )
}

/// Whether a report lets its receiver send more packets of a message than the cap allows.
const fn uncaps(report: &Report) -> bool {
    matches!(
        report,
        Report::Message(Answer { verdict: Verdict::Busy | Verdict::Held | Verdict::Forgotten, .. })
    )
}
