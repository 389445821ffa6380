//! Traces for Wireshark: pcapng with an interface for each link.

use super::{Log, Point, Tap, Written};
use crate::engine::{NS, Packet, Time};
use crate::fabric::Clos;
use crate::wire;
use core::fmt;
use core::time::Duration;
use etherparse::{EtherType, Ethernet2Header};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::io::{self, BufWriter, Write};

/// The `if_tsresol` of nanoseconds.
const NANOSECONDS: u8 = 9;

/// Writes a frame for each packet with bytes at each port: Ethernet, IPv4 and UDP headers, and the sealed payload.
/// Dropped and lost packets have a comment that says so.
///
/// Timestamps are in nanoseconds; with drop-tail queues they are those at which packets enter the queue. Packets
/// without bytes are counted and skipped.
pub struct Capture<W: Write> {
    writer: Option<PcapNgWriter<BufWriter<W>>>,
    /// The name and rate of each port, and its interface if a packet was captured there.
    links: Vec<(String, u64, Option<u32>)>,
    interfaces: u32,
    frame: Vec<u8>,
    log: Log,
}

impl<W: Write> Capture<W> {
    /// A trace of the packets in `fabric`, written to `out` through a buffer.
    pub fn new(out: W, fabric: &Clos) -> Self {
        let ports = fabric.ports().iter().enumerate();
        let links = ports.map(|(number, port)| (fabric.link_name(number), port.rate(), None));
        let mut log = Log::default();
        let writer = PcapNgWriter::new(BufWriter::new(out));
        let writer = writer.map_err(|error| log.error = Some(io_error(error))).ok();
        Self { writer, links: links.collect(), interfaces: 0, frame: Vec::new(), log }
    }

    fn write(
        &mut self,
        now: Time,
        port: usize,
        fate: Option<&'static str>,
        packet: &Packet,
        bytes: &[u8],
    ) -> Result<(), PcapError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let (name, rate, interface) = &mut self.links[port];
        let interface_id = match *interface {
            Some(known) => known,
            None => {
                writer.write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::ETHERNET,
                    snaplen: 0,
                    options: vec![
                        InterfaceDescriptionOption::IfName(name.as_str().into()),
                        InterfaceDescriptionOption::IfSpeed(*rate),
                        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                    ],
                })?;
                let new = self.interfaces;
                self.interfaces += 1;
                *interface = Some(new);
                new
            }
        };
        let ethernet = Ethernet2Header {
            source: hardware_address(packet.source),
            destination: hardware_address(packet.destination),
            ether_type: EtherType::IPV4,
        };
        self.frame.clear();
        self.frame.extend_from_slice(&ethernet.to_bytes());
        wire::write_marked(bytes, packet.ecn, &mut self.frame);
        let original_len = self.frame.len() as u32;
        if packet.trimmed {
            self.frame.truncate(Ethernet2Header::LEN + usize::from(packet.size));
        }
        let comment = |fate: &'static str| EnhancedPacketOption::Comment(fate.into());
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(now / NS),
            original_len,
            data: self.frame.as_slice().into(),
            options: fate.map(comment).into_iter().collect(),
        })?;
        Ok(())
    }
}

/// A locally administered MAC address.
fn hardware_address(host: u16) -> [u8; 6] {
    let [high, low] = host.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write> Tap for Capture<W> {
    fn see(&mut self, now: Time, point: Point, packet: &Packet, bytes: &[u8]) {
        let (port, fate) = match point {
            Point::Sent(port) => (port, None),
            Point::Dropped(port) => (port, Some("dropped")),
            Point::Lost(port) => (port, Some("lost")),
            // It was captured on its last link.
            Point::Arrived => return,
        };
        if self.log.error.is_some() {
            return;
        }
        if bytes.is_empty() {
            self.log.written.left_out += 1;
            return;
        }
        let result = self.write(now, port, fate, packet, bytes).map_err(io_error);
        self.log.note(result);
    }

    fn has_failed(&self) -> bool {
        self.log.error.is_some()
    }

    fn finish(&mut self) -> io::Result<Written> {
        let writer = self.writer.as_mut();
        self.log.finish(|| writer.map_or(Ok(()), |writer| writer.get_mut().flush()))
    }
}

impl<W: Write> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("log", &self.log).finish_non_exhaustive()
    }
}
