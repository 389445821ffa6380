//! The results of the trials of one row.

use cloudburst_net::Receipt;
use cloudburst_testbed::Port;
use core::fmt;
use core::time::Duration;

#[derive(Default)]
pub(crate) struct RowResults {
    tried: usize,
    times: Vec<Duration>,
    packets: usize,
    needed: usize,
    dropped: u64,
    deepest: u64,
    samples: usize,
}

impl RowResults {
    /// Records a message, and how it ended.
    pub(crate) fn on_message(&mut self, receipt: Option<&Receipt>) {
        self.tried += 1;
        if let Some(receipt) = receipt {
            self.times.push(receipt.total());
            self.packets += receipt.packets;
            self.needed += receipt.source_symbols;
        }
    }

    /// Records packets that found tiny queues full.
    pub(crate) fn on_dropped(&mut self, packets: u64) {
        self.dropped += packets;
    }

    /// Records an observation of the ports of one switch.
    pub(crate) fn on_seen(&mut self, ports: &[Port]) {
        let deepest = ports.iter().map(|port| port.tiny.backlog).max();
        self.deepest = self.deepest.max(deepest.unwrap_or(0));
        self.samples += 1;
    }
}

impl fmt::Display for RowResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.times.clone();
        times.sort();
        let millis =
            |percent: usize| match times.get((times.len() * percent).div_ceil(100).max(1) - 1) {
                Some(time) => format!("{:.1}", time.as_secs_f64() * 1e3),
                None => "-".into(),
            };
        write!(
            f,
            "{} of {} | {} | {} | {:.3} | {:.2} | {} | {}",
            times.len(),
            self.tried,
            millis(50),
            millis(99),
            self.packets as f64 / self.needed.max(1) as f64,
            100.0 * self.dropped as f64 / self.packets.max(1) as f64,
            self.deepest,
            self.samples,
        )
    }
}
