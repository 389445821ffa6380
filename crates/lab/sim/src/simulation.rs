//! The main loop, which connects workload, transports and network.

use crate::engine::Time;
use crate::fabric::Clos;
use crate::flow::NewFlow;
use crate::network::{Due, Network};
use crate::transport::Transport;
use crate::workload::Workload;

/// The transport number of the workload's timers.
const WORKLOAD: u8 = u8::MAX;

/// A network with transports and a workload.
pub struct Simulation {
    network: Network,
    transports: Vec<Box<dyn Transport>>,
    workload: Box<dyn Workload>,
    next: Option<NewFlow>,
}

impl Simulation {
    /// A simulation at time 0. Flows refer to transports by their index in `transports`. `seed` determines all
    /// random numbers of the transports.
    pub fn new(
        fabric: Clos,
        transports: Vec<Box<dyn Transport>>,
        workload: Box<dyn Workload>,
        seed: u64,
    ) -> Self {
        let mut simulation =
            Self { network: Network::new(fabric, seed), transports, workload, next: None };
        for (number, transport) in simulation.transports.iter_mut().enumerate() {
            transport.attach(number as u8, &mut simulation.network);
        }
        simulation.schedule_next();
        simulation
    }

    /// Runs until `from`, then in steps of `step` until `is_over`, but no further than the first step at or after
    /// `last`.
    pub(crate) fn run_until(
        &mut self,
        from: Time,
        step: Time,
        last: Time,
        is_over: impl Fn(&Network) -> bool,
    ) {
        let mut until = from;
        self.run(until);
        while until < last && !is_over(&self.network) {
            until += step;
            self.run(until);
        }
    }

    /// Runs until `until`, until no events are left, or until a [`Tap`](crate::trace::Tap) fails.
    pub fn run(&mut self, until: Time) {
        while !self.network.tap_has_failed()
            && let Some(due) = self.network.advance(until)
        {
            match due {
                Due::Arrival(handle) => {
                    let transport = self.network.packets[handle].transport;
                    self.transports[usize::from(transport)].receive(&mut self.network, handle);
                    self.network.release(handle);
                }
                Due::Timer { transport: WORKLOAD, .. } => {
                    if let Some(flow) = self.next.take() {
                        self.begin(flow);
                    }
                    self.schedule_next();
                }
                Due::Timer { transport, flow, token } => {
                    let transport = &mut self.transports[usize::from(transport)];
                    transport.expire(&mut self.network, flow, token);
                }
            }
            while let Some(flow) = self.network.flows_mut().next_delivered() {
                let record = self.network.flows()[flow];
                if let Some(next) = self.workload.on_delivered(self.network.now(), &record) {
                    self.begin(next);
                }
            }
        }
    }

    fn begin(&mut self, spec: NewFlow) {
        let now = self.network.now();
        let flow = self.network.flows_mut().begin(now, spec);
        self.transports[usize::from(spec.transport)].begin(&mut self.network, flow);
    }

    fn schedule_next(&mut self) {
        if let Some((at, flow)) = self.workload.next() {
            self.next = Some(flow);
            self.network.set_timer(WORKLOAD, at, 0, 0);
        }
    }

    /// The network.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// The network, for changing links and tracing packets.
    pub const fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}

impl core::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Simulation").field("network", &self.network).finish_non_exhaustive()
    }
}
