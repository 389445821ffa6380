//! The contents of traces, and simulations whose trace cannot be written.

use super::*;
use cloudburst_sim::trace::{Capture, Tap, Text, Written};
use cloudburst_sim::transport::burst::{self, Burst};
use cloudburst_sim::transport::cloudburst::{Cloudburst, Sessions, Settings};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A file that accepts `capacity` bytes.
#[derive(Clone)]
struct File {
    bytes: Arc<Mutex<Vec<u8>>>,
    capacity: usize,
}

impl File {
    fn new(capacity: usize) -> Self {
        Self { bytes: Arc::default(), capacity }
    }

    fn contents(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.bytes.lock().unwrap();
        if file.len() + bytes.len() > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn cloudburst(pairs: &[(u16, u16)]) -> Cloudburst {
    let sessions = Sessions::Between(pairs.to_vec());
    let settings = Settings { sessions, ..Settings::ours(10_000_000_000) };
    Cloudburst::new(settings, &SHAPE).unwrap()
}

/// Simulates flows with a trace. Returns the simulation and the result of writing the trace.
fn traced(
    transport: impl Transport + 'static,
    depth: Depth,
    list: &[(u16, u16, u64)],
    tap: impl FnOnce(&Clos) -> Box<dyn Tap>,
) -> (Simulation, io::Result<Written>) {
    let mut simulation = common::simulation(fabric(depth), transport, flows(list));
    let tap = tap(simulation.network().fabric());
    simulation.network_mut().set_tap(Some(tap));
    simulation.run(BEGIN + 1_000 * MS);
    let written = simulation.network_mut().set_tap(None).unwrap().finish();
    (simulation, written)
}

#[test]
fn a_line_of_a_trace_gives_the_time_and_place_of_a_packet() {
    let file = File::new(usize::MAX);
    let out = file.clone();
    let burst = Burst::new(burst::Config::default());
    let list = [(0, 143, 1_460)];
    let (_, written) =
        traced(burst, Depth::Unlimited, &list, |clos| Box::new(Text::new(out, clos)));
    let text = String::from_utf8(file.contents()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(written.unwrap(), Written { packets: lines.len() as u64 - 1, left_out: 0 });
    assert_eq!(lines[0], "# us event place from to flow sequence size class kind marks");
    let first: Vec<&str> =
        lines.iter().filter(|line| line.contains(" 0 143 0 0 ")).copied().collect();
    let spine = first[1].split("spine").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(
        first,
        [
            "50000.000000 sent host0->leaf0 0 143 0 0 1500 0 data -".to_string(),
            format!("50003.200000 sent leaf0->spine{spine} 0 143 0 0 1500 0 data -"),
            format!("50005.500000 sent spine{spine}->leaf8 0 143 0 0 1500 0 data -"),
            "50007.800000 sent leaf8->host143 0 143 0 0 1500 0 data -".into(),
            "50011.000000 arrived host143 0 143 0 0 1500 0 data -".into(),
        ]
    );
}

#[test]
fn a_capture_has_a_valid_frame_for_each_packet_on_each_link() {
    let file = File::new(usize::MAX);
    let out = file.clone();
    let list = [(16, 0, 93_000), (32, 0, 93_000), (48, 0, 93_000)];
    let pairs = [(16, 0), (32, 0), (48, 0)];
    let (simulation, written) = traced(cloudburst(&pairs), Depth::Packets(8), &list, |clos| {
        Box::new(Capture::new(out, clos))
    });
    let contents = file.contents();
    let mut reader = PcapNgReader::new(contents.as_slice()).unwrap();
    let mut frames = 0;
    let mut dropped = 0;
    let mut names = Vec::new();
    let mut before = core::time::Duration::ZERO;
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                names.extend(interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(frame) => {
                frames += 1;
                dropped += usize::from(
                    frame.options.contains(&EnhancedPacketOption::Comment("dropped".into())),
                );
                assert!(frame.timestamp >= before);
                before = frame.timestamp;
                let packet = SlicedPacket::from_ethernet(&frame.data).unwrap();
                let Some(NetSlice::Ipv4(ip)) = &packet.net else { panic!("{packet:?}") };
                let header = ip.header().to_header();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                assert_eq!(usize::from(header.total_len) + 14, frame.data.len());
                let Some(TransportSlice::Udp(udp)) = &packet.transport else {
                    panic!("{packet:?}")
                };
                assert_eq!(udp.destination_port(), 7_000);
                assert_eq!(usize::from(udp.length()) + 34, frame.data.len());
            }
            _ => {}
        }
    }
    let ports = simulation.network().fabric().ports();
    let sent: u64 = ports.iter().map(|port| port.stats().packets).sum();
    let lost: u64 = ports.iter().map(|port| port.stats().dropped).sum();
    assert!(lost > 0);
    assert_eq!((frames, dropped as u64), (sent + lost, lost));
    assert_eq!(written.unwrap(), Written { packets: frames, left_out: 0 });
    assert!(names.contains(&"leaf0->host0".into()) && names.contains(&"host48->leaf3".into()));
    let unique: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn packets_without_bytes_are_left_out_of_a_capture_and_counted() {
    let burst = Burst::new(burst::Config::default());
    let (simulation, written) = traced(burst, Depth::Unlimited, &[(1, 0, 1)], |clos| {
        Box::new(Capture::new(io::sink(), clos))
    });
    let ports = simulation.network().fabric().ports();
    let sent = ports.iter().map(|port| port.stats().packets).sum();
    assert_eq!(written.unwrap(), Written { packets: 0, left_out: sent });
}

#[test]
fn a_full_disk_ends_the_simulation_with_one_error() {
    type Trace = fn(File, &Clos) -> Box<dyn Tap>;
    let taps: [Trace; 2] = [
        |file, clos| Box::new(Text::new(file, clos)),
        |file, clos| Box::new(Capture::new(file, clos)),
    ];
    for tap in taps {
        for capacity in [0, 100_000] {
            let file = File::new(capacity);
            let out = file.clone();
            let list = [(16, 0, 10_000_000)];
            let (simulation, written) =
                traced(cloudburst(&[(16, 0)]), Depth::Unlimited, &list, |clos| tap(out, clos));
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert!(file.contents().len() <= capacity);
            assert_eq!(
                simulation.network().flows().as_slice().first().and_then(|f| f.delivered),
                None
            );
        }
    }
}
