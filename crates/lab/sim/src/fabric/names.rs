//! The names of links, for traces.

use super::Clos;

impl Clos {
    /// The name of a port: the nodes at the ends of its link, such as `leaf0->spine2`. Nodes of a kind are
    /// numbered over the whole network; the number of a core is that of its path.
    pub fn link_name(&self, port: usize) -> String {
        let hosts = self.leaf_of.len();
        let leaves = usize::from(self.shape.leaves_per_pod);
        let ways = usize::from(self.shape.ways);
        let ups = usize::from(self.shape.ups);
        let is_two_layers = self.shape.layers() == 2;
        if port < hosts {
            return format!("host{port}->leaf{}", self.leaf_of[port]);
        }
        if port < self.leaf_ups {
            let host = port - hosts;
            return format!("leaf{}->host{host}", self.leaf_of[host]);
        }
        if port < self.agg_downs {
            let leaf = (port - self.leaf_ups) / ways;
            let way = (port - self.leaf_ups) % ways;
            return match self.pod_of.get(leaf) {
                Some(pod) if !is_two_layers => {
                    format!("leaf{leaf}->agg{}", usize::from(*pod) * ways + way)
                }
                _ => format!("leaf{leaf}->spine{way}"),
            };
        }
        if port < self.agg_ups {
            let agg = (port - self.agg_downs) / leaves;
            let leaf = (port - self.agg_downs) % leaves;
            return format!("agg{agg}->leaf{}", agg / ways * leaves + leaf);
        }
        if port < self.top_downs {
            let agg = (port - self.agg_ups) / ups;
            let up = (port - self.agg_ups) % ups;
            return format!("agg{agg}->core{}", agg % ways * ups + up);
        }
        if is_two_layers {
            let leaves = self.shape.leaves();
            let spine = (port - self.top_downs) / leaves;
            let leaf = (port - self.top_downs) % leaves;
            return format!("spine{spine}->leaf{leaf}");
        }
        let pods = usize::from(self.shape.pods);
        let core = (port - self.top_downs) / pods;
        let pod = (port - self.top_downs) % pods;
        format!("core{core}->agg{}", pod * ways + core / ups)
    }
}
