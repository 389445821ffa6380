//! A world: its hosts, its network, and its clock.

use crate::adversary::Tampering;
use crate::conditions::link_config;
use crate::drive;
use crate::faults::Faults;
use crate::host::Host;
use crate::log::{self, Log, Name, Sent, Trace, UNIQUE};
use crate::network::Network;
use crate::setup::Setup;
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::error::StartError;
use cloudburst_core::path::Via;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

/// Maximum number of moments in one step at which something may happen.
const MAX_MOMENTS: usize = 200_000;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host>,
    pub(crate) network: Network,
    pub(crate) log: Log,
    pub(crate) setup: Setup,
    pub(crate) faults: Faults,
    pub(crate) bytes_sent: usize,
}

impl World {
    pub(crate) fn new(setup: Setup, faults: Faults, trace: Trace) -> Self {
        let now = setup.start;
        let hosts = 0..setup.configs.len();
        let mut network = Network::new(setup.seed, link_config(0, setup.classed));
        for (host, classes) in setup.remarks.iter().enumerate() {
            network.set_remark(host, classes);
        }
        Self {
            now,
            hosts: hosts.map(|host| Host::new(setup.recipe(host))).collect(),
            network,
            log: Log::new(&setup, faults, trace),
            setup,
            faults,
            bytes_sent: 0,
        }
    }

    /// Sends from a host, which must be running, to `peer`.
    ///
    /// # Errors
    ///
    /// The endpoint's refusal, whose reason has been checked.
    pub(crate) fn send(
        &mut self,
        from: usize,
        peer: SocketAddr,
        len: usize,
        options: &SendOptions,
    ) -> Result<Name, StartError> {
        let life = self.hosts[from].life();
        let bytes = self.log.messages.content(from, life, len);
        let config = &self.setup.configs[from];
        let now = self.hosts[from].clock.read(self.now);
        let endpoint = &mut self.hosts[from].endpoint;
        // A message that waits is recognized by its content, which must then be unique.
        let options = &options.wait(options.wait && bytes.len() >= UNIQUE);
        let id = endpoint.send(now, peer, bytes.clone(), options).inspect_err(|error| {
            let closed = self.log.profiles[from].closed;
            log::check_refusal(error, peer, bytes.len(), config.max_message, closed);
        })?;
        self.bytes_sent += bytes.len();
        let name = (from, life, id);
        let to = self.log.host_of(peer);
        self.log.messages.on_sent(Sent {
            name,
            to,
            bytes,
            sent_at: now,
            deadline: now + options.deadline.unwrap_or(config.deadline),
            max_redundancy: match options.policy.unwrap_or(config.policy) {
                // Only the rate bounds it.
                BurstPolicy::UntilStop => 1_000_000,
                _ => config.tuning.max_redundancy as usize,
            },
            // The message may start over.
            uncapped: to.is_some_and(|to| self.hosts[to].lives() > 0),
            arrived: false,
            outcome: None,
        });
        self.drain(from);
        Ok(name)
    }

    /// Lets an application take one message, or all. `from_now_on` tells whether it takes each further
    /// message at once.
    pub(crate) fn take(&mut self, host: usize, all: bool, from_now_on: bool) {
        if !self.hosts[host].is_running() {
            return;
        }
        self.hosts[host].takes = from_now_on;
        while self.hosts[host].take(self.now) {
            self.drain(host);
            if !all {
                return;
            }
        }
    }

    /// Resumes a process that was stopped.
    pub(crate) fn resume(&mut self, host: usize) {
        if !self.hosts[host].is_running() {
            drive::resume(&mut self.hosts, &mut self.network, self.now, host, &mut self.log);
        }
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.run(time, |_| false);
    }

    /// Lets time pass until `done`, but at most `time`.
    pub(crate) fn run(&mut self, time: Duration, done: impl Fn(&Self) -> bool) {
        let until = self.now + time;
        for _ in 0..MAX_MOMENTS {
            if done(self) || self.now >= until {
                return;
            }
            let next = drive::next_at(&self.hosts, &self.network);
            self.now = next.unwrap_or(until).clamp(self.now, until);
            self.log.now = self.now;
            drive::run_moment(&mut self.hosts, &mut self.network, self.now, &mut self.log);
        }
        let left = until.saturating_since(self.now);
        panic!("time hardly passes: {MAX_MOMENTS} moments, and still {left:?} to go");
    }

    /// Hands a packet to a host directly, bypassing the links.
    pub(crate) fn inject(&mut self, (to, via, packet): (usize, Via, Vec<u8>)) {
        drive::hand_in(
            &mut self.hosts,
            &mut self.network,
            self.now,
            (to, via, packet),
            &mut self.log,
        );
    }

    /// Drains a host that was given an input.
    pub(crate) fn drain(&mut self, host: usize) {
        drive::drain(&mut self.hosts, &mut self.network, self.now, host, &mut self.log);
    }

    /// The number of sends of all hosts that have not ended.
    pub(crate) fn unfinished(&self) -> usize {
        self.hosts.iter().map(|host| host.endpoint.unfinished()).sum()
    }

    /// Removes the adversary, makes all links plain again, and lets all clocks run.
    pub(crate) fn heal(&mut self) {
        self.run_clocks();
        self.log.adversary.leave();
        self.network.heal();
    }

    /// Lets all clocks run.
    pub(crate) fn run_clocks(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.clock.start(self.now));
    }

    /// Resumes all processes. Runs `first` before they read the packets that wait for them.
    pub(crate) fn resume_all(&mut self, first: impl FnOnce(&mut Self)) {
        let waiting: Vec<_> = self.hosts.iter_mut().map(Host::resume).collect();
        first(self);
        for (host, waiting) in waiting.into_iter().enumerate() {
            waiting.into_iter().for_each(|(via, packet)| self.inject((host, via, packet)));
        }
        drive::run_moment(&mut self.hosts, &mut self.network, self.now, &mut self.log);
    }

    /// Replays every handshake that the adversary remembers, from an address without a host.
    pub(crate) fn replay_handshakes(&mut self) {
        let adversary = &self.log.adversary;
        let again = |packet| adversary.tamper(packet, &Tampering::FromStranger(1));
        let arrivals: Vec<_> = adversary.handshakes().map(again).collect();
        arrivals.into_iter().for_each(|arrival| self.inject(arrival));
    }
}
