//! How busy the processors were.

use core::ops::Sub;

/// Ticks of all processors, from `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Processors {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Processors {
    pub(crate) fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Self {
            all: ticks.iter().sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
            stolen: ticks.get(7).copied().unwrap_or_default(),
        }
    }

    /// The share of the time that was neither idle nor stolen.
    pub(crate) fn busy(&self) -> f64 {
        let other = self.idle + self.stolen;
        self.all.saturating_sub(other) as f64 / self.all.max(1) as f64
    }

    pub(crate) fn stolen(&self) -> f64 {
        self.stolen as f64 / self.all.max(1) as f64
    }
}

impl Sub for Processors {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_when_neither_idle_nor_stolen() {
        let before = Processors::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 ...");
        assert_eq!(before, Processors { all: 100, idle: 80, stolen: 0 });
        let since = Processors::parse("cpu  20 0 20 120 10 5 5 20 0 0\n") - before;
        assert_eq!((since.busy(), since.stolen()), (0.3, 0.2));
        assert_eq!(Processors::parse(""), Processors::default());
    }
}
