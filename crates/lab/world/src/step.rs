//! Steps: everything that can happen to a world.

use crate::adversary::{Damage, Rule, Tampering};
use crate::choices::Choices;
use crate::faults::Faults;
use crate::{conditions, setup};
use cloudburst_core::proto::SendOptions;
use core::time::Duration;

/// One thing that happens. Hosts are numbers below the number of hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// An application sends a message of about `len` bytes.
    Send {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// Its length: at least eight bytes, except in the first life of the first host.
        len: usize,
        /// Options that differ from the configuration.
        options: SendOptions,
    },
    /// An application replies to its latest message, at the address that the message states.
    Reply(usize, usize, SendOptions),
    /// An application cancels one of its sends.
    Cancel(usize, u8),
    /// An application takes one message, or all, and may take each one at once from now on.
    Take {
        /// The host.
        host: usize,
        /// Whether it takes all messages, or one.
        all: bool,
        /// Whether it takes each message at once from now on.
        from_now_on: bool,
    },
    /// An endpoint stops accepting new messages.
    Close(usize),
    /// A host is killed, and starts again as another incarnation.
    Restart(usize),
    /// A process is stopped: packets wait, timers do not fire.
    Pause(usize),
    /// A process continues.
    Resume(usize),
    /// The clock of a host stands still from now on, or runs again.
    Clock {
        /// The host.
        host: usize,
        /// Whether it stands still.
        still: bool,
    },
    /// The socket of a host passes to another process: a new incarnation, or the one that had it before.
    HandOver(usize),
    /// All processes are stopped for this long.
    Stall(Duration),
    /// Time passes.
    Wait(Duration),
    /// Time passes until something happens.
    Next,
    /// The conditions of links from one host to another change.
    Conditions(usize, usize, usize),
    /// All links from and to an egress become black holes, or heal.
    Egress(u16, bool),
    /// The adversary begins to apply a rule to all packets.
    Rule(Rule),
    /// The adversary replays a packet.
    Again(u8, Tampering),
    /// The adversary releases a packet that it holds: delivers it, and may keep a copy.
    Release {
        /// The packet.
        choice: u8,
        /// Whether it is delivered.
        deliver: bool,
        /// Whether a copy remains held.
        keep: bool,
    },
    /// The adversary delivers this many of the packets that it holds, oldest first.
    ReleaseSome(u8),
}

impl Step {
    /// Reads the next step of a world of `hosts` hosts with `egresses` egresses each.
    pub(crate) fn read(
        choices: &mut Choices<'_>,
        hosts: usize,
        egresses: u16,
        faults: &Faults,
    ) -> Self {
        let host = |choices: &mut Choices<'_>| choices.below(hosts);
        let millis = |choices: &mut Choices<'_>| Duration::from_millis(choices.u8().into());
        match choices.u8() % 43 {
            0..=7 => {
                let (from, to) = two(choices, hosts);
                Self::Send { from, to, len: length(choices), options: setup::options(choices) }
            }
            8 => Self::Reply(host(choices), length(choices), setup::options(choices)),
            9 => Self::Cancel(host(choices), choices.u8()),
            10 | 11 => {
                let host = host(choices);
                let how = choices.u8();
                Self::Take { host, all: how & 1 != 0, from_now_on: how & 2 != 0 }
            }
            12 => match choices.u8() {
                byte @ 0..=199 => Self::Restart(usize::from(byte) % hosts),
                byte => Self::Close(usize::from(byte) % hosts),
            },
            13 => Self::Pause(host(choices)),
            14 => Self::Resume(host(choices)),
            15 if faults.long_pauses => Self::Stall(millis(choices) * 200),
            15 => Self::Stall(millis(choices) / 3),
            16..=18 => Self::Wait(Duration::from_micros(10) * u32::from(choices.u8())),
            19..=21 => Self::Wait(Duration::from_micros(100) * u32::from(choices.u8())),
            22 => Self::Wait(millis(choices) * 4),
            23 => Self::Wait(millis(choices) * 100),
            24 | 25 => Self::Next,
            26..=28 => {
                let (from, to) = two(choices, hosts);
                Self::Conditions(from, to, choices.below(conditions::KINDS))
            }
            29 => {
                let egress = u16::from(choices.u8()) % egresses;
                let down = choices.below(3) == 2;
                Self::Egress(egress, down)
            }
            30 => Self::Rule(rule(choices, hosts, faults)),
            31 | 32 => Self::Again(choices.u8(), tampering(choices, hosts, egresses, faults)),
            33 => Self::Again(choices.u8(), Tampering::Damage(Damage::read(choices))),
            34 => Self::Again(choices.u8(), Tampering::None),
            35 | 36 => {
                let choice = choices.u8();
                let how = choices.u8();
                Self::Release { choice, deliver: how & 1 == 0, keep: how & 2 != 0 }
            }
            37 => Self::ReleaseSome(choices.u8() % 16),
            38 => Self::Rule(Rule::Hold),
            42 if faults.hand_overs => Self::HandOver(host(choices)),
            still @ 40..=41 if faults.still_clocks => {
                Self::Clock { host: host(choices), still: still == 40 }
            }
            _ => Self::Rule(Rule::Pass),
        }
    }
}

/// Chooses two hosts, mostly different ones.
fn two(choices: &mut Choices<'_>, hosts: usize) -> (usize, usize) {
    let byte = usize::from(choices.u8());
    let from = byte % hosts;
    let away = byte / hosts % (2 * hosts);
    let others = 1 + away % (hosts - 1);
    (from, if away == 2 * hosts - 1 { from } else { (from + others) % hosts })
}

/// Chooses a length: nothing, about one symbol, up to one block, or more blocks.
fn length(choices: &mut Choices<'_>) -> usize {
    match choices.u8() {
        tiny @ 0..=31 => tiny.into(),
        small @ 32..=127 => 10 * usize::from(small),
        medium @ 128..=223 => 100 * (usize::from(medium) - 127),
        large => 59_000 + 2_300 * (usize::from(large) - 224),
    }
}

fn rule(choices: &mut Choices<'_>, hosts: usize, faults: &Faults) -> Rule {
    let kind = choices.below(2);
    let from = choices.below(hosts);
    let other = choices.u8();
    let third = choices.u8();
    let other_than =
        |host: usize, choice: u8| (host + 1 + usize::from(choice) % (hosts - 1)) % hosts;
    let to = other_than(from, other);
    let instead = other_than(to, third);
    match kind {
        0 if faults.mirrors => Rule::Mirror { from, to },
        1 if faults.relays && instead != from => Rule::Relay { from, meant: to, instead },
        _ => Rule::Pass,
    }
}

fn tampering(choices: &mut Choices<'_>, hosts: usize, egresses: u16, faults: &Faults) -> Tampering {
    let kind = choices.below(5);
    let who = choices.u8();
    let host = usize::from(who) % hosts;
    match kind {
        0 if faults.mirrors => Tampering::Reflect,
        1 if faults.relays => Tampering::Redirect(host),
        2 => Tampering::FromEgress(u16::from(who) % egresses),
        3 if faults.forged_addresses => Tampering::FromHost(host),
        _ => Tampering::FromStranger(who),
    }
}
