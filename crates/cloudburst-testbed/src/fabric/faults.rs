//! Failures and loss, while a fabric is up.

use super::Fabric;
use crate::state::{Failure, Lock, State};
use crate::topology::{Link, Node, Target, check_loss};
use crate::{Error, namespace, plan};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a fabric by now, on purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Faults {
    /// What has failed, and how.
    pub failed: BTreeMap<Target, Failure>,
    /// Links that lose packets: percent, each way.
    pub loss: BTreeMap<Link, f64>,
}

impl Fabric {
    /// Makes a link or a node fail. What has failed so already stays as it is.
    ///
    /// # Errors
    ///
    /// When there is no such thing, or the fabric is no longer there.
    pub fn fail(&self, target: Target, how: Failure) -> Result<(), Error> {
        self.topology.check_target(target)?;
        self.change_and_apply(|state| {
            state.failed.insert(target, how);
        })
    }

    /// Ends the failure of a link or a node; of all with `None`. Healing what is whole is fine.
    /// A link works again when neither it nor a node at its ends has failed.
    ///
    /// # Errors
    ///
    /// When there is no such thing, or the fabric is no longer there.
    pub fn heal(&self, target: Option<Target>) -> Result<(), Error> {
        if let Some(target) = target {
            self.topology.check_target(target)?;
        }
        self.change_and_apply(|state| match target {
            Some(target) => drop(state.failed.remove(&target)),
            None => state.failed.clear(),
        })
    }

    /// Makes a link lose `percent` of the packets, each way, in steps of 0.001.
    ///
    /// # Errors
    ///
    /// When there is no such link, `percent` is none, or the fabric is no longer there.
    pub fn loss(&self, link: Link, percent: f64) -> Result<(), Error> {
        self.topology.check_target(Target::Link(link))?;
        check_loss(percent)?;
        self.change_and_apply(|state| {
            state.loss.insert(link, percent);
        })
    }

    /// What has failed by now, and what loses packets.
    ///
    /// # Errors
    ///
    /// When the fabric is no longer there.
    pub fn faults(&self) -> Result<Faults, Error> {
        let state = self.state()?;
        let losses = self.topology.links().into_iter().map(|link| (link, state.loss(link)));
        let loss = losses.filter(|(_, percent)| *percent > 0.0).collect();
        Ok(Faults { failed: state.failed, loss })
    }

    /// Changes the state, and then the namespaces that it concerns.
    fn change_and_apply(&self, change: impl FnOnce(&mut State)) -> Result<(), Error> {
        let lock = Lock::take()?;
        let before = self.state()?;
        let mut state = before.clone();
        change(&mut state);
        state.write(&lock)?;
        self.apply(&before, &state)
    }

    fn apply(&self, before: &State, state: &State) -> Result<(), Error> {
        let mut changed = self.topology.links();
        changed.retain(|&link| {
            state.failure(link) != before.failure(link) || state.loss(link) != before.loss(link)
        });
        let is_down = |state: &State, link| state.failure(link) == Some(Failure::Down);
        let mut turned = changed.clone();
        turned.retain(|&link| is_down(state, link) != is_down(before, link));
        let ends = |links: &[Link]| -> BTreeSet<Node> {
            links.iter().flat_map(|link| [link.lower, link.upper]).collect()
        };
        self.at_each(ends(&changed).into_iter(), |node, place| {
            let rules = plan::loss_rules(&self.topology, node, state);
            namespace::run("nft", &["-f", "-"], &rules, place)
        })?;
        self.at_each(ends(&turned).into_iter(), |node, place| {
            let lines = plan::links_down(&turned, node, state)
                + &plan::addresses_and_routes(&self.topology, node, state);
            namespace::run("ip", &["-batch", "-"], &lines, place)
        })?;
        self.settle(ends(&turned).into_iter())
    }
}
