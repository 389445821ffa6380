//! The effect of each step on a world.

use crate::adversary::Tampering;
use crate::conditions::link_config;
use crate::drive;
use crate::host::Host;
use crate::log::Name;
use crate::setup::address;
use crate::step::Step;
use crate::world::World;
use cloudburst_core::error::{Indeterminate, Outcome, Rejection};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use core::time::Duration;
use std::net::SocketAddr;

/// Limits on the messages and bytes that the steps of one world send.
const MAX_SENDS: usize = 40;
const MAX_BYTES: usize = 500_000;
/// A pause of a process that is longer than this is a long one.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

impl World {
    pub(crate) fn apply(&mut self, step: &Step) {
        match *step {
            Step::Send { from, to, len, ref options } => {
                self.send_within_bounds(from, address(to, 0), len, options);
            }
            Step::Reply(host, len, ref options) => {
                let anybody = self.faults.forged_addresses;
                let taken = |peer: &SocketAddr| self.log.host_of(*peer).is_some();
                let peer = self.log.profiles[host].last_peer;
                if let Some(peer) = peer.filter(|peer| anybody || taken(peer)) {
                    self.send_within_bounds(host, peer, len, options);
                }
            }
            Step::Cancel(host, choice) => self.cancel(host, choice),
            Step::Take { host, all, from_now_on } => self.take(host, all, from_now_on),
            // A process that is stopped calls nothing.
            Step::Close(host) if self.hosts[host].is_running() => {
                self.log.on_closed(host);
                let now = self.hosts[host].clock.read(self.now);
                self.hosts[host].endpoint.close(now);
                self.drain(host);
            }
            Step::Close(_) => {}
            Step::Restart(host) => self.restart(host),
            Step::HandOver(host) => self.hand_over(host),
            Step::Pause(host) => self.hosts[host].pause(),
            Step::Resume(host) => self.resume(host),
            Step::Clock { host, still } => {
                self.log.profiles[host].clock_stood |= still;
                let clock = &mut self.hosts[host].clock;
                if still { clock.stop(self.now) } else { clock.start(self.now) }
            }
            Step::Stall(time) => {
                self.hosts.iter_mut().for_each(Host::pause);
                self.wait(time);
                self.resume_all(|_| {});
            }
            Step::Wait(time) => self.pass(time),
            Step::Next => {
                let next = drive::next_at(&self.hosts, &self.network);
                self.pass(next.map_or(Duration::ZERO, |at| at.saturating_since(self.now)));
            }
            Step::Conditions(from, to, kind) => {
                let config = link_config(kind, self.setup.classed);
                self.network.set_conditions(from, to, &config);
            }
            Step::Egress(egress, down) => {
                let port = address(0, egress).port();
                for (hop, link) in self.network.links() {
                    if hop.egress == egress || hop.source.port() == port {
                        link.set_down(down);
                    }
                }
            }
            Step::Rule(rule) => self.log.set_rule(rule),
            Step::Again(choice, ref tampering) => {
                let adversary = &self.log.adversary;
                if let Some(packet) = adversary.past(choice) {
                    let arrival = adversary.tamper(packet, tampering);
                    self.inject(arrival);
                }
            }
            Step::Release { choice, deliver, keep } => self.release(choice, deliver, keep),
            Step::ReleaseSome(count) => (0..count).for_each(|_| self.release(0, true, false)),
        }
    }

    fn send_within_bounds(&mut self, from: usize, to: SocketAddr, len: usize, how: &SendOptions) {
        let within = self.log.messages.len() < MAX_SENDS && self.bytes_sent + len <= MAX_BYTES;
        if within && self.hosts[from].is_running() {
            // A refusal is a valid outcome as well; `send` has checked its reason.
            let _ = self.send(from, to, len, how);
        }
    }

    fn cancel(&mut self, host: usize, choice: u8) {
        if !self.hosts[host].is_running() {
            return;
        }
        let open = self.log.messages.open(host, self.hosts[host].life());
        let open: Vec<Name> = open.map(|sent| sent.name).collect();
        let chosen = usize::from(choice).checked_rem(open.len()).map(|at| open[at]);
        let id = chosen.map_or(MessageId(choice.into()), |(_, _, id)| id);
        self.hosts[host].endpoint.cancel(id);
        self.drain(host);
        if let Some(sent) = chosen.and_then(|name| self.log.messages.find(name)) {
            let cancelled = matches!(
                sent.outcome,
                Some(
                    Outcome::Unknown(Indeterminate::Cancelled)
                        | Outcome::Rejected(Rejection::Cancelled)
                )
            );
            assert!(cancelled, "{sent:?}");
        }
    }

    fn restart(&mut self, host: usize) {
        // After that many lives, the host stays as it is.
        if self.hosts[host].lives() < u8::MAX {
            self.hosts[host].restart();
            self.log.on_restarted(host, self.hosts[host].life());
        }
    }

    /// A process that is stopped hands nothing over.
    fn hand_over(&mut self, host: usize) {
        if self.hosts[host].is_running() && self.hosts[host].lives() < u8::MAX {
            self.hosts[host].hand_over();
            self.log.on_handed_over(host, &self.hosts[host]);
            // What has become due in the process meanwhile.
            drive::run_moment(&mut self.hosts, &mut self.network, self.now, &mut self.log);
        }
    }

    /// Lets time pass. Unless long pauses may occur, stopped processes continue before a wait of more than
    /// [`SHORT_PAUSE`].
    fn pass(&mut self, time: Duration) {
        if time > SHORT_PAUSE && !self.faults.long_pauses {
            self.resume_all(|_| {});
        }
        self.wait(time);
    }

    fn release(&mut self, choice: u8, deliver: bool, keep: bool) {
        let adversary = &mut self.log.adversary;
        let Some(packet) = adversary.take_held(choice) else { return };
        let arrival = adversary.tamper(&packet, &Tampering::None);
        if keep {
            adversary.hold(packet);
        }
        if deliver {
            self.inject(arrival);
        }
    }
}
