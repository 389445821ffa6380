//! One host of a fabric: its addresses, and jobs that run there.

use crate::namespace::Namespace;
use crate::topology::{Node, Topology};
use crate::{Error, address};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

/// A host of a fabric.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    pub(super) topology: &'a Topology,
    pub(super) index: u16,
    pub(super) namespace: Namespace,
}

impl Host<'_> {
    /// Returns its IPv4 address.
    #[must_use]
    pub fn v4(&self) -> Ipv4Addr {
        address::v4(self.topology, Node::Host(self.index))
    }

    /// Returns its IPv6 address.
    #[must_use]
    pub fn v6(&self) -> Ipv6Addr {
        address::v6(self.topology, Node::Host(self.index))
    }

    /// Returns the XPath address by which hosts of other leaves reach it through `spine` only: the
    /// first, if it has more than one path ID.
    ///
    /// # Errors
    ///
    /// If there is no such spine.
    pub fn path_address(&self, spine: u16) -> Result<Ipv4Addr, Error> {
        self.topology.check_node(Node::Spine(spine))?;
        Ok(address::path_v4(self.topology, self.index, (spine, 1)))
    }

    /// As [`path_address`](Self::path_address), for IPv6.
    ///
    /// # Errors
    ///
    /// If there is no such spine.
    pub fn path_address_v6(&self, spine: u16) -> Result<Ipv6Addr, Error> {
        self.topology.check_node(Node::Spine(spine))?;
        Ok(address::path_v6(self.topology, self.index, (spine, 1)))
    }

    /// Returns all of its XPath path IDs, grouped by spine.
    #[must_use]
    pub fn path_addresses(&self) -> Vec<Ipv4Addr> {
        let paths = self.topology.paths();
        paths.map(|path| address::path_v4(self.topology, self.index, path)).collect()
    }

    /// As [`path_addresses`](Self::path_addresses), for IPv6.
    #[must_use]
    pub fn path_addresses_v6(&self) -> Vec<Ipv6Addr> {
        let paths = self.topology.paths();
        paths.map(|path| address::path_v6(self.topology, self.index, path)).collect()
    }

    /// Returns its leaf.
    #[must_use]
    pub fn leaf(&self) -> Node {
        Node::Leaf(self.topology.leaf_of(self.index))
    }

    /// Returns its namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Runs `job` on this host: see [`Namespace::run`].
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    ///
    /// If `job` panics.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.namespace.run(job)
    }

    /// Returns a command that runs on this host: see [`Namespace::command`].
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }
}
