//! One host of a fabric: its addresses, and work done there.

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
    /// Its IPv4 address.
    #[must_use]
    pub fn v4(&self) -> Ipv4Addr {
        address::v4(self.topology, Node::Host(self.index))
    }

    /// Its IPv6 address.
    #[must_use]
    pub fn v6(&self) -> Ipv6Addr {
        address::v6(self.topology, Node::Host(self.index))
    }

    /// XPath: the address by which other leaves' hosts reach it by way of `spine` only; the first
    /// of them, if it has more than one path ID.
    ///
    /// # Errors
    ///
    /// When there is no such spine.
    pub fn path_address(&self, spine: u16) -> Result<Ipv4Addr, Error> {
        self.topology.check_node(Node::Spine(spine))?;
        Ok(address::path_v4(self.topology, self.index, (spine, 1)))
    }

    /// The same for IPv6.
    ///
    /// # Errors
    ///
    /// When there is no such spine.
    pub fn path_address_v6(&self, spine: u16) -> Result<Ipv6Addr, Error> {
        self.topology.check_node(Node::Spine(spine))?;
        Ok(address::path_v6(self.topology, self.index, (spine, 1)))
    }

    /// XPath: all of its path IDs, those of a spine together.
    #[must_use]
    pub fn path_addresses(&self) -> Vec<Ipv4Addr> {
        let paths = self.topology.paths();
        paths.map(|path| address::path_v4(self.topology, self.index, path)).collect()
    }

    /// The same for IPv6.
    #[must_use]
    pub fn path_addresses_v6(&self) -> Vec<Ipv6Addr> {
        let paths = self.topology.paths();
        paths.map(|path| address::path_v6(self.topology, self.index, path)).collect()
    }

    /// Its leaf.
    #[must_use]
    pub fn leaf(&self) -> Node {
        Node::Leaf(self.topology.leaf_of(self.index))
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// [`Namespace::run`].
    ///
    /// # Errors
    ///
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    ///
    /// When `job` does.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.namespace.run(job)
    }

    /// [`Namespace::command`].
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }
}
