//! The packets that a switch receives.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Failure, Node, Target};
use libtest_mimic::Failed;

/// The payloads of the UDP datagrams among `packets`.
fn payloads(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().filter(|packet| packet[9] == 17).map(|packet| &packet[28..]).collect()
}

pub(crate) fn a_capture_has_incoming_packets_once_and_in_order() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let sender = bound(&from, false, 0)?;
    let receiver = bound(&to, false, PORT)?;
    let capture = fabric.namespace(Node::Spine(2))?.capture()?;
    for spine in 1..=4 {
        for number in 0..10 {
            sender.send_to(&[spine as u8, number], (to.path_address(spine)?, PORT))?;
        }
    }
    assert_eq!(arrivals(&receiver, 40), 40);
    let expected: Vec<[u8; 2]> = (0..10).map(|number| [2, number]).collect();
    assert_eq!(payloads(&capture.packets()?), expected);
    assert_eq!(payloads(&capture.packets()?), [[0; 2]; 0], "they were taken");

    fabric.fail(Target::Node(Node::Spine(2)), Failure::Silent)?;
    sender.send_to(b"lost", (to.path_address(2)?, PORT))?;
    sender.send_to(b"not lost", (to.path_address(1)?, PORT))?;
    assert_eq!((arrivals(&receiver, 1), survivors(&receiver)?), (1, 0));
    assert_eq!(payloads(&capture.packets()?), [[0; 2]; 0], "a black hole swallows them before");
    Ok(())
}
