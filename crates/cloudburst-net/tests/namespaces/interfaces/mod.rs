//! Faults of interfaces, addresses, queues and firewalls: an endpoint survives them, and blames
//! this host if it is at fault. Each test has a wire of its own.

mod trains;
mod wire;

use crate::common::{TIMEOUT, bytes, eventually};
use crate::{Named, Test};
use cloudburst_net::{Endpoint, LocalError, RefusedDatagrams, SendError, SendOptions};
use cloudburst_testbed::Wire;
use libtest_mimic::Failed;
use std::time::Duration;
use wire::{endpoint, expect};

pub(crate) fn tests() -> Vec<Test> {
    let tests: [Named; _] = [
        ("a_send_outlives_its_interface", || outlives("link set wire down", UP)),
        ("a_send_outlives_its_address", || outlives("address flush dev wire", ADDRESS)),
        ("a_send_outlives_the_interface_of_its_receiver", outlives_that_of_the_receiver),
        ("an_interface_that_stays_down_is_named", an_interface_that_stays_down_is_named),
        ("a_firewall_of_this_host_is_named", a_firewall_of_this_host_is_named),
        ("a_send_outlives_a_smaller_mtu", a_send_outlives_a_smaller_mtu),
        ("a_full_socket_buffer_is_loss", a_full_socket_buffer_is_loss),
        ("a_full_queue_is_loss", a_full_queue_is_loss),
        ("long_trains_outlive_a_smaller_mtu", trains::outlive_a_smaller_mtu),
        ("long_trains_outlive_a_full_socket_buffer", trains::outlive_a_full_socket_buffer),
        (
            "long_trains_reach_a_device_that_joins_nothing",
            trains::reach_a_device_that_joins_nothing,
        ),
    ];
    tests.into_iter().map(|(name, run)| Test::new(name, run)).collect()
}

const UP: &str = "link set wire up";
const ADDRESS: &str = "address add 10.9.0.1/24 dev wire";

fn within(deadline: Duration) -> SendOptions {
    SendOptions::default().deadline(deadline)
}

fn soon() -> SendOptions {
    within(Duration::from_millis(300))
}

fn errors(endpoint: &Endpoint) -> RefusedDatagrams {
    endpoint.counters().io.send_errors
}

/// A send that is under way is delivered if the thing that `ip` takes away comes back before the
/// deadline.
fn outlives(down: &str, up: &str) -> Result<(), Failed> {
    let wire = Wire::up()?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let message = bytes(3_000_000, 1);
    let sending =
        sender.send(receiver.local_addr(), message.clone()).options(within(TIMEOUT)).begin()?;
    eventually("it bursts", || sender.counters().sender.symbols_sent > 200);
    wire.left.command("ip", down)?;
    eventually("nothing leaves any more", || errors(&sender).unreachable > 0);
    assert_eq!(receiver.counters().receiver.messages_delivered, 0, "it was in the middle");
    wire.left.command("ip", up)?;
    sending.wait()?;
    expect(&receiver, &message)?;
    assert_eq!(errors(&sender).total(), errors(&sender).unreachable);
    sender.send(receiver.local_addr(), "another").wait()?;
    expect(&receiver, b"another")?;
    assert!(sender.blocking_shutdown(TIMEOUT), "nothing is left under way");
    Ok(())
}

fn outlives_that_of_the_receiver() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let to = receiver.local_addr();
    let message = bytes(3_000_000, 1);
    let sending = sender.send(to, message.clone()).options(within(TIMEOUT)).begin()?;
    eventually("it bursts", || sender.counters().sender.symbols_sent > 200);
    wire.right.command("ip", "link set wire down")?;
    let lost = sender.send(to, "into the void").options(soon()).wait();
    // The link has no carrier, so the queue of this host may drop all that enters it.
    let in_queue = SendError::PartlySent(LocalError::NoBuffer);
    assert!(lost == Err(SendError::Deadline) || lost == Err(in_queue), "{lost:?}");
    assert_eq!(receiver.counters().receiver.messages_delivered, 0);
    wire.right.command("ip", UP)?;
    sending.wait()?;
    // Packets from this host's queues may still arrive.
    let came = receiver.recv().wait_for(TIMEOUT).ok_or("delivered, and not there")??;
    if came.bytes == "into the void" {
        return expect(&receiver, &message);
    }
    assert!(came.bytes == message);
    Ok(())
}

fn an_interface_that_stays_down_is_named() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let known = receiver.local_addr();
    let unknown = "10.9.0.2:9".parse()?;
    sender.send(known, "hello").wait()?;
    expect(&receiver, b"hello")?;
    wire.left.command("ip", "link set wire down")?;
    let rejected = SendError::NotSent(LocalError::Unreachable);
    assert_eq!(sender.send(unknown, "hello").options(soon()).wait(), Err(rejected.clone()));
    let line = rejected.to_string();
    assert!(line.contains("this host") && line.contains("interface"), "{line}");
    let indeterminate = SendError::PartlySent(LocalError::Unreachable);
    assert_eq!(sender.send(known, "hello again").options(soon()).wait(), Err(indeterminate));
    // Nothing begins to a peer that does not answer.
    assert_eq!(sender.call(known, "request").options(soon()).wait(), Err(rejected.clone()));
    let results = sender.call_many([(unknown, "request")]).options(soon()).wait();
    assert_eq!(results, [Err(rejected)]);
    assert!(errors(&sender).unreachable > 0);
    wire.left.command("ip", UP)?;
    sender.send(known, "back").wait()?;
    expect(&receiver, b"back")?;
    assert!(sender.blocking_shutdown(TIMEOUT), "nothing is left under way");
    Ok(())
}

fn a_firewall_of_this_host_is_named() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let to = receiver.local_addr();
    wire.left.command("nft", "add table inet wall")?;
    wire.left.command(
        "nft",
        "add chain inet wall output { type filter hook output priority 0 ; policy drop ; }",
    )?;
    let rejected = SendError::NotSent(LocalError::Denied);
    assert_eq!(sender.send(to, "hello").options(soon()).wait(), Err(rejected));
    assert!(errors(&sender).denied > 0);
    wire.left.command("nft", "delete table inet wall")?;
    sender.send(to, "hello").wait()?;
    expect(&receiver, b"hello")
}

/// Packets that have become too long for the interface are cut again.
fn a_send_outlives_a_smaller_mtu() -> Result<(), Failed> {
    let wire = Wire::up()?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let message = bytes(3_000_000, 1);
    let sending =
        sender.send(receiver.local_addr(), message.clone()).options(within(TIMEOUT)).begin()?;
    eventually("it bursts", || sender.counters().sender.symbols_sent > 200);
    wire.left.command("ip", "link set wire mtu 1000")?;
    assert_eq!(receiver.counters().receiver.messages_delivered, 0, "it was in the middle");
    sending.wait()?;
    expect(&receiver, &message)
}

fn a_full_socket_buffer_is_loss() -> Result<(), Failed> {
    let wire = Wire::up()?;
    // Packets in this queue fill the buffer of the socket.
    wire.left.command("tc", "qdisc add dev wire root tbf rate 50mbit burst 5000 limit 10000000")?;
    let sender = endpoint(&wire.left, |on| on.socket_buffers(10_000))?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let message = bytes(1_000_000, 1);
    sender.send(receiver.local_addr(), message.clone()).wait()?;
    expect(&receiver, &message)?;
    assert!(errors(&sender).no_buffer > 0, "{:?}", errors(&sender));
    assert_eq!(errors(&sender).total(), errors(&sender).no_buffer);
    Ok(())
}

fn a_full_queue_is_loss() -> Result<(), Failed> {
    let wire = Wire::up()?;
    wire.left.command("tc", "qdisc add dev wire root tbf rate 50mbit burst 5000 limit 5000")?;
    let sender = endpoint(&wire.left, |on| on)?;
    let receiver = endpoint(&wire.right, |on| on)?;
    let message = bytes(1_000_000, 1);
    let receipt = sender.send(receiver.local_addr(), message.clone()).wait()?;
    expect(&receiver, &message)?;
    assert!(receipt.packets > receipt.source_symbols, "it lost nothing: {receipt:?}");
    Ok(())
}
