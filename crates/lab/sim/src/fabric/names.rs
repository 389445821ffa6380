//! The names of links, for traces.

use super::Clos;

impl Clos {
    /// The name of a port: the nodes at the ends of its link, such as `leaf0->spine2`. Nodes of a kind are
    /// numbered over the whole network; the number of a core is that of its path.
    pub fn link_name(&self, port: usize) -> String {
        let (hosts, leaves) = (self.leaf_of.len(), usize::from(self.shape.leaves_per_pod));
        let (ways, ups) = (usize::from(self.shape.ways), usize::from(self.shape.ups));
        let is_two_layers = self.shape.layers() == 2;
        if port < hosts {
            return format!("host{port}->leaf{}", self.leaf_of[port]);
        }
        if port < self.leaf_ups {
            let host = port - hosts;
            return format!("leaf{}->host{host}", self.leaf_of[host]);
        }
        if port < self.agg_downs {
            let (leaf, way) = ((port - self.leaf_ups) / ways, (port - self.leaf_ups) % ways);
            return match self.pod_of.get(leaf) {
                Some(pod) if !is_two_layers => {
                    format!("leaf{leaf}->agg{}", usize::from(*pod) * ways + way)
                }
                _ => format!("leaf{leaf}->spine{way}"),
            };
        }
        if port < self.agg_ups {
            let (agg, leaf) = ((port - self.agg_downs) / leaves, (port - self.agg_downs) % leaves);
            return format!("agg{agg}->leaf{}", agg / ways * leaves + leaf);
        }
        if port < self.top_downs {
            let (agg, up) = ((port - self.agg_ups) / ups, (port - self.agg_ups) % ups);
            return format!("agg{agg}->core{}", agg % ways * ups + up);
        }
        if is_two_layers {
            let leaves = self.shape.leaves();
            let (spine, leaf) =
                ((port - self.top_downs) / leaves, (port - self.top_downs) % leaves);
            return format!("spine{spine}->leaf{leaf}");
        }
        let pods = usize::from(self.shape.pods);
        let (core, pod) = ((port - self.top_downs) / pods, (port - self.top_downs) % pods);
        format!("core{core}->agg{}", pod * ways + core / ups)
    }
}
