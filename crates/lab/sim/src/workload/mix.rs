//! Several workloads at once.

use super::Workload;
use crate::engine::Time;
use crate::flow::{Flow, NewFlow};

/// Tag bits of a workload; the number of the workload is above them.
const BITS: u32 = 28;

/// The index, within its [`Mix`], of the workload that a tag belongs to.
pub const fn part(tag: u32) -> usize {
    (tag >> BITS) as usize
}

/// The part of a tag that its workload in a [`Mix`] has set.
pub(crate) const fn own_tag(tag: u32) -> u32 {
    tag & ((1 << BITS) - 1)
}

/// Up to 16 workloads. The four highest bits of a flow's tag are the index of its workload, so the tags of the first
/// workload are unchanged.
pub struct Mix(Vec<Component>);

struct Component {
    workload: Box<dyn Workload>,
    next: Option<(Time, NewFlow)>,
}

impl Mix {
    /// A mix of `workloads`, whose tags are below 2^28.
    ///
    /// # Panics
    ///
    /// If there are more than 16 workloads.
    pub fn new(workloads: Vec<Box<dyn Workload>>) -> Self {
        assert!(workloads.len() <= 16, "workloads: got {}, expected 16 or fewer", workloads.len());
        let part = |mut workload: Box<dyn Workload>| Component { next: workload.next(), workload };
        Self(workloads.into_iter().map(part).collect())
    }
}

fn tagged(flow: NewFlow, number: usize) -> NewFlow {
    NewFlow { tag: flow.tag | (number as u32) << BITS, ..flow }
}

impl Workload for Mix {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        let due = |part: &Component| part.next.map(|(at, _)| at);
        let components = self.0.iter_mut().enumerate();
        let (number, part) =
            components.filter(|(_, part)| part.next.is_some()).min_by_key(|p| due(p.1))?;
        let (at, flow) = core::mem::replace(&mut part.next, part.workload.next())?;
        Some((at, tagged(flow, number)))
    }

    fn on_delivered(&mut self, now: Time, flow: &Flow) -> Option<NewFlow> {
        let number = part(flow.spec.tag);
        let tag = own_tag(flow.spec.tag);
        let alone = Flow { spec: NewFlow { tag, ..flow.spec }, ..*flow };
        let next = self.0.get_mut(number)?.workload.on_delivered(now, &alone)?;
        Some(tagged(next, number))
    }
}

impl core::fmt::Debug for Mix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mix").field("components", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Background, Peers, RequestConfig, Requests};
    use super::*;
    use crate::Simulation;
    use crate::engine::{MS, SECOND, US};
    use crate::fabric::{Clos, Link, Shape};
    use crate::queue::{Depth, DropTail};
    use crate::transport::burst::{Burst, Config};

    /// Requests and background flows on bursts that send at a share of the links: returns all flows, and
    /// the completed requests.
    fn run(rate: f64) -> (Vec<Flow>, Vec<super::super::Completed>) {
        let shape = Shape::leaf_spine(4, 2, 4);
        let link = Link { rate: 1_000_000_000, delay: 2 * US };
        let queue = |_| DropTail::new(Depth::Packets(20)).into();
        let fabric = Clos::new(shape, link, link, queue, queue).unwrap();
        let config = RequestConfig { until: 100 * MS, ..RequestConfig::default() };
        let requests = Requests::new(&shape, &config, [0, 0], 1).unwrap();
        let background =
            Background::new(&shape, 0..4, Peers::OtherRacks, 1_000_000, 1, 0, 1).unwrap();
        let all = requests.all();
        let mix = Mix::new(vec![Box::new(background), Box::new(requests)]);
        let burst = || Box::new(Burst::new(Config { link: link.rate, rate, ..Config::default() }));
        let mut simulation = Simulation::new(fabric, vec![burst(), burst()], Box::new(mix), 1);
        simulation.run(SECOND);
        let flows = simulation.network().flows().as_slice().to_vec();
        let completed = Requests::completed(&all, &flows, 1);
        (flows, completed)
    }

    #[test]
    fn each_workload_sees_its_own_flows() {
        let (flows, completed) = run(0.5);
        // 250 a second of each of 8 hosts in a tenth of a second.
        assert!((160..240).contains(&completed.len()), "{}", completed.len());
        assert!(completed.iter().all(|one| one.total > one.response));
        let responses: Vec<_> =
            flows.iter().filter(|f| part(f.spec.tag) == 1 && f.spec.bytes > 1_500).collect();
        assert_eq!(responses.len(), completed.len());
        assert!(responses.iter().all(|flow| flow.spec.transport == 0));
        let background: Vec<_> = flows.iter().filter(|f| part(f.spec.tag) == 0).collect();
        for host in 0..4 {
            let mine: Vec<_> = background.iter().filter(|f| f.spec.source == host).collect();
            assert!(mine.len() > 10, "{}", mine.len());
            assert!(mine.iter().all(|flow| flow.spec.destination >= 4));
            // Each flow starts as soon as the previous one has been delivered.
            for pair in mine.windows(2) {
                assert_eq!(pair[0].delivered, Some(pair[1].begun));
            }
        }
    }

    #[test]
    fn requests_start_at_the_same_times_whatever_the_transport() {
        let requests = |rate| -> Vec<(Time, NewFlow)> {
            let flows = run(rate).0.into_iter();
            let is_request =
                |flow: &Flow| part(flow.spec.tag) == 1 && flow.spec.tag.is_multiple_of(2);
            flows.filter(is_request).map(|flow| (flow.begun, flow.spec)).collect()
        };
        assert_eq!(requests(0.4), requests(0.5));
        // Background flows draw the same destinations, too, one after the other.
        let peers = |rate| -> Vec<u16> {
            let flows = run(rate).0.into_iter();
            let first = flows.filter(|flow| part(flow.spec.tag) == 0 && flow.spec.source == 2);
            first.map(|flow| flow.spec.destination).take(10).collect()
        };
        assert_eq!(peers(0.4), peers(0.5));
    }
}
