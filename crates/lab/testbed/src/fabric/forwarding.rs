//! Forwarding by threads of this program, in place of the kernel.

use crate::Error;
use crate::bounce::Bouncer;
use crate::emulated::Emulator;
use crate::namespace::Namespace;
use crate::plan;
use crate::topology::Topology;

/// The threads that decapsulate, and those that emulate queues, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    _bouncers: Vec<Bouncer>,
    _emulators: Vec<Emulator>,
}

impl Forwarding {
    pub(super) fn start(name: &str, topology: &Topology) -> Result<Self, Error> {
        let place = |node| Namespace::new(plan::namespace(name, node));
        let bouncers = topology.decapsulating().map(|node| Bouncer::start(&place(node)));
        let emulating = topology.nodes().filter(|&node| topology.emulates(node));
        let emulators = emulating.map(|node| Emulator::start(topology, node, &place(node)));
        Ok(Self {
            _bouncers: bouncers.collect::<Result<_, _>>()?,
            _emulators: emulators.collect::<Result<_, _>>()?,
        })
    }
}
