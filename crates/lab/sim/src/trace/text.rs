//! Text traces: a line for each packet at each port.

use super::{Log, Point, Tap, Written};
use crate::engine::{Ecn, Kind, Packet, Time, US};
use crate::fabric::Clos;
use core::fmt;
use std::io::{self, BufWriter, Write};

/// Writes a line for each observation, with these columns:
///
/// ```text
/// # us            event   place          from to  flow sequence size class kind   marks
/// 50000.000000    sent    host0->leaf0   0    143 0    5        1494 0     data   -
/// 50002.000000    dropped leaf0->spine2  0    143 0    5        1494 0     data   ce,trimmed
/// ```
///
/// Columns are separated by one space. Times are in microseconds and exact to the picosecond. With drop-tail queues,
/// the time of `sent` is that at which the packet enters the queue. `-` stands for no flow or no marks.
pub struct Text<W: Write> {
    out: BufWriter<W>,
    /// The names of ports.
    names: Vec<String>,
    has_begun: bool,
    log: Log,
}

impl<W: Write> Text<W> {
    /// A trace of the packets in `fabric`, written to `out` through a buffer.
    pub fn new(out: W, fabric: &Clos) -> Self {
        let names = (0..fabric.ports().len()).map(|port| fabric.link_name(port)).collect();
        Self { out: BufWriter::new(out), names, has_begun: false, log: Log::default() }
    }

    fn write(&mut self, now: Time, point: Point, packet: &Packet) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            let columns = "us event place from to flow sequence size class kind marks";
            writeln!(self.out, "# {columns}")?;
        }
        let Packet { source, destination, sequence, size, class, .. } = *packet;
        let out = &mut self.out;
        write!(out, "{}.{:06} ", now / US, now % US)?;
        match point {
            Point::Sent(port) => write!(out, "sent {}", self.names[port])?,
            Point::Dropped(port) => write!(out, "dropped {}", self.names[port])?,
            Point::Lost(port) => write!(out, "lost {}", self.names[port])?,
            Point::Arrived => write!(out, "arrived host{destination}")?,
        }
        write!(out, " {source} {destination} ")?;
        match packet.flow {
            Packet::NO_FLOW => write!(out, "-")?,
            flow => write!(out, "{flow}")?,
        }
        let kind = match packet.kind {
            Kind::Data => "data",
            Kind::Ack => "ack",
            Kind::Credit => "credit",
            Kind::Probe => "probe",
        };
        let marks = match (packet.ecn == Ecn::Marked, packet.trimmed) {
            (false, false) => "-",
            (true, false) => "ce",
            (false, true) => "trimmed",
            (true, true) => "ce,trimmed",
        };
        writeln!(out, " {sequence} {size} {class} {kind} {marks}")
    }
}

impl<W: Write> Tap for Text<W> {
    fn see(&mut self, now: Time, point: Point, packet: &Packet, _bytes: &[u8]) {
        if self.log.error.is_none() {
            let result = self.write(now, point, packet);
            self.log.note(result);
        }
    }

    fn has_failed(&self) -> bool {
        self.log.error.is_some()
    }

    fn finish(&mut self) -> io::Result<Written> {
        self.log.finish(|| self.out.flush())
    }
}

impl<W: Write> fmt::Debug for Text<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("log", &self.log).finish_non_exhaustive()
    }
}
