//! Failures and loss in a running fabric.

use super::Fabric;
use crate::state::{Failure, Lock, State};
use crate::topology::{Link, Node, Target, check_loss};
use crate::{Error, namespace, plan};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The present faults of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Faults {
    /// The nodes and links that have failed, and how.
    pub failed: BTreeMap<Target, Failure>,
    /// Links that lose packets: percent, in each direction.
    pub loss: BTreeMap<Link, f64>,
}

impl Fabric {
    /// Makes a link or a node fail. Has no effect if it has already failed in this way.
    ///
    /// # Errors
    ///
    /// If there is no such link or node, or the fabric no longer exists.
    pub fn fail(&self, target: Target, how: Failure) -> Result<(), Error> {
        self.topology.check_target(target)?;
        self.change_and_apply(|state| {
            state.failed.insert(target, how);
        })
    }

    /// Ends the failure of a link or a node, or all failures if `None`. Has no effect without a
    /// failure. A link works again when neither it nor a node at its ends has failed.
    ///
    /// # Errors
    ///
    /// If there is no such link or node, or the fabric no longer exists.
    pub fn heal(&self, target: Option<Target>) -> Result<(), Error> {
        if let Some(target) = target {
            self.topology.check_target(target)?;
        }
        self.change_and_apply(|state| match target {
            Some(target) => drop(state.failed.remove(&target)),
            None => state.failed.clear(),
        })
    }

    /// Makes a link lose `percent` of the packets in each direction, in steps of 0.001.
    ///
    /// # Errors
    ///
    /// If there is no such link, `percent` is invalid, or the fabric no longer exists.
    pub fn loss(&self, link: Link, percent: f64) -> Result<(), Error> {
        self.topology.check_target(Target::Link(link))?;
        check_loss(percent)?;
        self.change_and_apply(|state| {
            state.loss.insert(link, percent);
        })
    }

    /// Returns the present failures, and the links that lose packets.
    ///
    /// # Errors
    ///
    /// If the fabric no longer exists.
    pub fn faults(&self) -> Result<Faults, Error> {
        let state = self.state()?;
        let losses = self.topology.links().into_iter().map(|link| (link, state.loss(link)));
        let loss = losses.filter(|(_, percent)| *percent > 0.0).collect();
        Ok(Faults { failed: state.failed, loss })
    }

    /// Changes the state, and then the affected namespaces.
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
