//! A fabric, from `up` to `down`.

mod checks;
mod faults;
mod forwarding;
mod host;
mod teardown;

pub use checks::available;
pub use faults::Faults;
pub use host::Host;
pub use teardown::Removed;

use crate::counters::{self, Port};
use crate::namespace::{self, Namespace};
use crate::state::{Lock, Process, State};
use crate::topology::{Link, Node, Queues, Target, Topology};
use crate::{Error, address, emulated, plan};
use checks::{check_name, check_privileges};
use forwarding::Forwarding;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use teardown::{namespaces_of, sweep, tear_down};

/// A running fabric.
///
/// The value that built the fabric takes it down when it is dropped, also in a panic. One that was
/// [attached](Self::attach) leaves it up.
#[derive(Debug)]
pub struct Fabric {
    name: String,
    topology: Topology,
    is_owned: bool,
    forwarding: Forwarding,
}

impl Fabric {
    /// Builds a fabric for this process, with a unique name: any number may be up side by side.
    /// Remains of processes that were killed are removed first.
    ///
    /// # Errors
    ///
    /// If a parameter is invalid, without root, without `ip`, `tc`, `nft`, `ethtool` and `nsenter`,
    /// or if the kernel refuses a request. A partly built fabric is taken down.
    pub fn up(topology: &Topology) -> Result<Self, Error> {
        Self::up_unless(topology, &AtomicBool::new(false))
    }

    /// As [`up`](Self::up), but stops if `interrupted` becomes true.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up), and [`Error::Interrupted`].
    pub fn up_unless(topology: &Topology, interrupted: &AtomicBool) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cbt{}x{number}", std::process::id());
        let mut state = State::new(&name, topology);
        state.owner = Some(Process::this());
        let mut fabric = Self::build(state, interrupted)?;
        fabric.forwarding = Forwarding::start(&name, topology)?;
        fabric.change(|state| state.builder = None)?;
        Ok(fabric)
    }

    /// Attaches to a fabric that another process has built.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or without root.
    pub fn attach(name: &str) -> Result<Self, Error> {
        check_name(name)?;
        check_privileges()?;
        let state = State::read(name)?.filter(|state| state.builder.is_none());
        let state = state.ok_or_else(|| Error::NotUp { name: name.into() })?;
        let name = state.name;
        let topology = state.topology;
        Ok(Self { name, topology, is_owned: false, forwarding: Forwarding::default() })
    }

    /// Builds a fabric that outlives this process. `finish` starts the forwarding process. Does nothing
    /// if the fabric is already up with the same parameters.
    pub(crate) fn up_to_stay(
        name: &str,
        topology: &Topology,
        interrupted: &AtomicBool,
        finish: impl FnOnce(&Self) -> Result<Process, Error>,
    ) -> Result<Option<Self>, Error> {
        check_name(name)?;
        topology.validate()?;
        check_privileges()?;
        {
            let lock = Lock::take()?;
            sweep(&lock)?;
            if let Some(state) = State::read(name)? {
                if let Some(master) = state.master() {
                    return Err(Error::Taken { name: name.into(), pid: master.pid });
                }
                if state.topology != *topology {
                    let different = state.topology.differences(topology);
                    return Err(Error::Different { name: name.into(), different });
                }
                if has_all_namespaces(&state) {
                    let is_forwarding = state.forwarder.as_ref().is_some_and(Process::is_alive);
                    drop(lock);
                    return if is_forwarding {
                        Ok(None)
                    } else {
                        Self::attach(name)?.forward_again(finish)
                    };
                }
                // Parts of it were removed: rebuild it.
                tear_down(name, Some(&state), &lock)?;
            }
        }
        let mut fabric = Self::build(State::new(name, topology), interrupted)?;
        let forwarder = finish(&fabric)?;
        fabric.change(|state| {
            state.forwarder = Some(forwarder);
            state.builder = None;
        })?;
        if interrupted.load(Ordering::SeqCst) {
            return Err(Error::Interrupted);
        }
        fabric.is_owned = false;
        Ok(Some(fabric))
    }

    /// Replaces the forwarding process, which has ended.
    fn forward_again(
        self,
        start: impl FnOnce(&Self) -> Result<Process, Error>,
    ) -> Result<Option<Self>, Error> {
        let forwarder = start(&self)?;
        self.change(|state| state.forwarder = Some(forwarder))?;
        Ok(None)
    }

    /// Builds everything except forwarding by programs. On failure the value is dropped, which takes
    /// down the partly built fabric.
    fn build(mut state: State, interrupted: &AtomicBool) -> Result<Self, Error> {
        state.topology.validate()?;
        check_privileges()?;
        state.builder = Some(Process::this());
        let name = state.name.clone();
        let topology = state.topology.clone();
        {
            let lock = Lock::take()?;
            sweep(&lock)?;
            if let Some(first) = namespaces_of(&name).into_iter().next() {
                return Err(Error::Leftover { name, first });
            }
            state.write(&lock)?;
        }
        let fabric = Self { name, topology, is_owned: true, forwarding: Forwarding::default() };
        fabric.wire(&state, interrupted).map_err(|error| {
            // If Ctrl-C has ended a program, its failure is not the cause.
            if interrupted.load(Ordering::SeqCst) { Error::Interrupted } else { error }
        })?;
        Ok(fabric)
    }

    fn wire(&self, state: &State, interrupted: &AtomicBool) -> Result<(), Error> {
        let go_on = || {
            if interrupted.load(Ordering::SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
        };
        let topology = &self.topology;
        let machine = "the machine";
        go_on()?;
        namespace::run("ip", &["-batch", "-"], &plan::namespaces(&self.name, topology), machine)?;
        go_on()?;
        namespace::run("ip", &["-batch", "-"], &plan::links(&self.name, topology), machine)?;
        self.at_each(topology.nodes(), |node, place| {
            go_on()?;
            write_sysctls(topology, node, place)?;
            for port in topology.neighbours(node) {
                let port = port.to_string();
                namespace::run("ethtool", &plan::offloads(topology, &port), "", place)?;
            }
            namespace::run("tc", &["-batch", "-"], &plan::queues(topology, node), place)?;
            let rules = plan::loss_table(topology, node) + &plan::loss_rules(topology, node, state);
            namespace::run("nft", &["-f", "-"], &rules, place)?;
            let routes = plan::addresses_and_routes(topology, node, state);
            namespace::run("ip", &["-batch", "-"], &routes, place)?;
            Ok(())
        })?;
        go_on()?;
        self.settle(topology.nodes())?;
        go_on()
    }

    /// Changes the limits and the weights of the queues of all ports. Queued packets stay, and
    /// counters continue.
    ///
    /// # Errors
    ///
    /// If a number is out of range, if the limit of emulated queues would change
    /// ([`Topology::trim`]), or if the fabric no longer exists.
    pub fn set_queues(&mut self, queues: Queues) -> Result<(), Error> {
        let Queues { tiny_packets, default_packets, weights } = queues;
        let topology = Topology { tiny_packets, default_packets, weights, ..self.topology.clone() };
        topology.validate()?;
        if topology.is_emulated() && tiny_packets != self.topology.tiny_packets {
            return Err(Error::Parameter {
                field: "tiny_packets",
                value: tiny_packets.to_string(),
                expected: format!("{} as before, of emulated queues", self.topology.tiny_packets),
            });
        }
        self.change(|state| state.topology = topology.clone())?;
        self.at_each(topology.nodes(), |node, place| {
            namespace::run("tc", &["-batch", "-"], &plan::requeue(&topology, node), place)
        })?;
        self.topology = topology;
        Ok(())
    }

    /// Waits until the ports whose other ends are up can send.
    fn settle(&self, nodes: impl Iterator<Item = Node>) -> Result<(), Error> {
        let settled = self.at_each(nodes, |node, place| {
            namespace::run("ip", &["-batch", "-"], &plan::settle(&self.topology, node), place)
        });
        settled.map(drop)
    }

    /// Runs a job at several nodes in parallel, each in its namespace.
    fn at_each<T: Send>(
        &self,
        nodes: impl Iterator<Item = Node>,
        job: impl Fn(Node, &str) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let job = &job;
        thread::scope(|scope| {
            let place = |node| {
                let namespace = Namespace::new(plan::namespace(&self.name, node));
                scope.spawn(move || {
                    namespace.enter()?;
                    job(node, namespace.name())
                })
            };
            let running: Vec<_> = nodes.map(place).collect();
            let done = running.into_iter().map(|thread| thread.join());
            let done: Vec<_> = done.collect();
            done.into_iter()
                .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// Returns its name, as for `--name`; its namespaces are `NAME-h1`, `NAME-l1`, `NAME-s1` and so on.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its parameters.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns host `index`, from 1.
    ///
    /// # Errors
    ///
    /// If there is no such host.
    pub fn host(&self, index: u16) -> Result<Host<'_>, Error> {
        let namespace = self.namespace(Node::Host(index))?;
        Ok(Host { topology: &self.topology, index, namespace })
    }

    /// Returns the namespace of a host or switch.
    ///
    /// # Errors
    ///
    /// If there is no such node.
    pub fn namespace(&self, node: Node) -> Result<Namespace, Error> {
        self.topology.check_node(node)?;
        Ok(Namespace::new(plan::namespace(&self.name, node)))
    }

    /// Returns the addresses of a leaf or spine; to that of a spine, packets can be bounced.
    ///
    /// # Errors
    ///
    /// If there is no such node.
    pub fn addresses(&self, node: Node) -> Result<(Ipv4Addr, Ipv6Addr), Error> {
        self.topology.check_node(node)?;
        Ok((address::v4(&self.topology, node), address::v6(&self.topology, node)))
    }

    /// Returns the counters of all ports: hosts, then leaves, then spines.
    ///
    /// # Errors
    ///
    /// If the fabric no longer exists.
    pub fn ports(&self) -> Result<Vec<Port>, Error> {
        let ports = self.at_each(self.topology.nodes(), |node, place| self.read(node, place))?;
        Ok(ports.into_iter().flatten().collect())
    }

    /// Returns the counters of the ports of `node`, in the order of [`Topology::neighbours`].
    ///
    /// # Errors
    ///
    /// If there is no such node, or the fabric no longer exists.
    pub fn ports_of(&self, node: Node) -> Result<Vec<Port>, Error> {
        let namespace = self.namespace(node)?;
        namespace.run(|| self.read(node, namespace.name()))?
    }

    /// Returns the counters of the port of `node` towards `neighbour`.
    ///
    /// # Errors
    ///
    /// If there is no such port, or the fabric no longer exists.
    pub fn port(&self, node: Node, neighbour: Node) -> Result<Port, Error> {
        let link = Link::between(node, neighbour);
        self.topology.check_target(Target::Link(link))?;
        let ports = self.ports_of(node)?.into_iter();
        ports.into_iter().find(|port| port.neighbour == neighbour).ok_or(Error::NoSuchLink { link })
    }

    fn read(&self, node: Node, place: &str) -> Result<Vec<Port>, Error> {
        let qdiscs = namespace::run("tc", &["-j", "-s", "qdisc", "show"], "", place)?;
        let losses = namespace::run("nft", &["-j", "list", "counters"], "", place)?;
        let neighbours = self.topology.neighbours(node);
        let low = self.topology.low_dscps.len();
        let mut ports = counters::parse(node, &neighbours, low, &qdiscs, &losses, place)?;
        if self.topology.emulates(node) {
            let doing = format!("cannot read the counters of emulated queues in {place}");
            let counts = emulated::read().map_err(Error::io(doing))?;
            for port in &mut ports {
                let counts = counts.get(&port.neighbour).copied().unwrap_or_default();
                port.tiny.emulated(self.topology.tiny_packets.into(), counts);
            }
        }
        Ok(ports)
    }

    /// Returns whether the process that decapsulates and emulates queues is alive.
    pub(crate) fn is_forwarding(&self) -> Result<bool, Error> {
        let state = self.state()?;
        let process = state.forwarder.or(state.owner);
        Ok(process.is_some_and(|process| process.is_alive()))
    }

    fn state(&self) -> Result<State, Error> {
        let state = State::read(&self.name)?;
        state.ok_or_else(|| Error::NotUp { name: self.name.clone() })
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), Error> {
        let lock = Lock::take()?;
        let mut state = self.state()?;
        change(&mut state);
        state.write(&lock)
    }

    /// Takes the fabric down, and reports errors.
    ///
    /// # Errors
    ///
    /// If something could not be removed.
    pub fn down(mut self) -> Result<Removed, Error> {
        self.is_owned = false;
        self.forwarding = Forwarding::default();
        let lock = Lock::take()?;
        tear_down(&self.name, State::read(&self.name)?.as_ref(), &lock)
    }

    /// Takes down a fabric or its remains. Succeeds if there is none.
    ///
    /// # Errors
    ///
    /// If the fabric belongs to another running process, or if something could not be removed.
    pub fn remove(name: &str) -> Result<Removed, Error> {
        check_name(name)?;
        check_privileges()?;
        let lock = Lock::take()?;
        sweep(&lock)?;
        // Even with a broken state file, the fabric must be removed.
        let state = State::read(name).ok().flatten();
        if let Some(master) = state.as_ref().and_then(State::master) {
            return Err(Error::Taken { name: name.into(), pid: master.pid });
        }
        tear_down(name, state.as_ref(), &lock)
    }

    /// Decapsulates and emulates queues while the fabric is up.
    pub(crate) fn forward(name: &str, ready: impl FnOnce()) -> Result<(), Error> {
        let state = State::read(name)?.ok_or_else(|| Error::NotUp { name: name.into() })?;
        let _forwarding = Forwarding::start(name, &state.topology)?;
        ready();
        while State::exists(name) {
            thread::sleep(std::time::Duration::from_secs(1));
        }
        Ok(())
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        self.forwarding = Forwarding::default();
        let removed = Lock::take().and_then(|lock| {
            tear_down(&self.name, State::read(&self.name).ok().flatten().as_ref(), &lock)
        });
        if let Err(error) = removed {
            eprintln!("cloudburst-testbed: {} could not be taken down: {error}", self.name);
        }
    }
}

fn write_sysctls(topology: &Topology, node: Node, place: &str) -> Result<(), Error> {
    for (key, value) in plan::sysctls(topology, node) {
        // The sysctl is that of the namespace of the thread that opens the file.
        let path = format!("/proc/sys/net/{key}");
        let written = fs::write(&path, &value);
        if key != plan::SEED {
            written.map_err(Error::io(format!("{path} = {value} in {place}")))?;
        }
    }
    Ok(())
}

fn has_all_namespaces(state: &State) -> bool {
    let there = namespaces_of(&state.name);
    let is_there = |node| there.contains(&plan::namespace(&state.name, node));
    state.topology.nodes().all(is_there)
}
