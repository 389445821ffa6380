//! The queue of a switch that trims (NDP, SIGCOMM 2017, section 3.1): what overflows loses its payload, and the
//! header overtakes.

use super::config::Trim;
use std::collections::VecDeque;

/// A data queue, and a header queue that is served first. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Trimming {
    data: VecDeque<(u64, Vec<u8>)>,
    headers: VecDeque<(u64, Vec<u8>)>,
    /// When the packet in service will have left, and whether it is a header.
    busy_until: u64,
    sends_header: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    Whole,
    Trimmed,
    Dropped,
}

impl Trimming {
    /// Queues a packet at `now`, to which everything has been [served](Self::serve). The data queue holds
    /// `limit` packets. The one in service counts in its queue.
    pub(super) fn push(&mut self, now: u64, packet: &[u8], limit: usize, trim: Trim) -> Queued {
        let is_busy = self.busy_until > now;
        if self.data.len() + usize::from(is_busy && !self.sends_header) < limit {
            self.data.push_back((now, packet.to_vec()));
            return Queued::Whole;
        }
        let headers = self.headers.len() + usize::from(is_busy && self.sends_header);
        if headers >= trim.queue {
            return Queued::Dropped;
        }
        let left = packet.len().min(trim.header);
        self.headers.push_back((now, packet[..left].to_vec()));
        if left < packet.len() { Queued::Trimmed } else { Queued::Whole }
    }

    /// When service of the next packet begins, or `None` if none waits.
    pub(super) fn next_at(&self) -> Option<u64> {
        let (since, _) = self.headers.front().or_else(|| self.data.front())?;
        Some(self.busy_until.max(*since))
    }

    /// Begins to send the next packet, if that is by `now`: when it has left entirely, and the packet.
    /// `time` is the transmission time of some bytes.
    pub(super) fn serve(
        &mut self,
        now: u64,
        time: impl Fn(usize) -> u64,
    ) -> Option<(u64, Vec<u8>)> {
        let starts = self.next_at().filter(|&at| at <= now)?;
        self.sends_header = !self.headers.is_empty();
        let queue = if self.sends_header { &mut self.headers } else { &mut self.data };
        let (_, packet) = queue.pop_front()?;
        self.busy_until = starts.saturating_add(time(packet.len()));
        Some((self.busy_until, packet))
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.data.len() + self.headers.len()
    }
}
