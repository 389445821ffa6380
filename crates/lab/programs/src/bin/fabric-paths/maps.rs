//! The path maps that are tested.

use cloudburst_bench_programs::rig::{Failure, TO};
use cloudburst_net::PathMap;
use cloudburst_testbed::{Fabric, Node};
use core::fmt::Display;
use std::net::IpAddr;

/// A path map in text form, and the settings that a sender to host 5 needs for it.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) text: String,
    /// The address that the sender is bound to, and the one that messages go to.
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// Whether the receiver's host must decapsulate packets.
    pub(crate) wrapped: bool,
}

/// Returns all path maps, for endpoints at `fabric` or any fabric like it.
pub(crate) fn all(fabric: &Fabric, sender: u16) -> Result<Vec<Map>, Failure> {
    let from = fabric.host(sender)?;
    let to = fabric.host(TO)?;
    let ids = list(to.path_addresses());
    let spines = (1..=fabric.topology().spines).map(Node::Spine);
    let spines: Result<Vec<_>, _> =
        spines.map(|spine| Ok::<_, Failure>(fabric.addresses(spine)?.0)).collect();
    let spines = list(spines?);
    let v4 =
        |text: String| Map { text, from: from.v4().into(), to: to.v4().into(), wrapped: false };
    let v6_from = from.v6().into();
    let v6_to = to.v6().into();
    Ok(vec![
        v4("ecmp:16".into()),
        Map { from: v6_from, to: v6_to, ..v4("flowlabel:16".into()) },
        Map { to: to.path_address(1)?.into(), ..v4(format!("xpath:{ids}")) },
        v4("ecmp:4x4".into()),
        v4("ecmp:64".into()),
        Map { wrapped: true, ..v4(format!("xpath-ipip:{ids}")) },
        v4(format!("bounce:{spines}")),
    ])
}

impl Map {
    pub(crate) fn parse(&self) -> Result<PathMap, Failure> {
        self.text.parse().map_err(|source| Failure::Map { map: self.text.clone(), source })
    }

    /// Returns a label that is short enough for a table.
    pub(crate) fn label(&self) -> String {
        match self.text.split_once(',') {
            Some((first, rest)) => {
                let kind = first.split(':').next().unwrap_or_default();
                format!("`{kind}`, {} addresses", rest.split(',').count() + 1)
            }
            None => format!("`{}`", self.text),
        }
    }
}

pub(crate) fn list(items: Vec<impl Display>) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
