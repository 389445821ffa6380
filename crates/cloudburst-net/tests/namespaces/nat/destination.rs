//! Receivers that peers know by the address of another device, which forwards packets to them.

use super::rig::{PORT, client, converse, endpoint, replies, server_v4, within};
use crate::Test;
use cloudburst_net::{Endpoint, SendError};
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// An address that no interface but the server's has, if any.
const VIRTUAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (here, there) in [("ecmp:1", "ecmp:1"), ("ecmp:16", "ecmp:16")] {
        let name = |what| format!("{what}_{here}_to_{there}");
        let both = move |random| move || forwarded(here, there, random);
        tests.push(Test::new(name("a_forwarded_port"), both(None)));
        let both = Test::new(name("a_forwarded_port_from_behind_masquerade"), both(Some(true)));
        tests.push(both);
        tests.push(Test::new(name("a_virtual_address"), move || at_a_virtual_address(here, there)));
    }
    let nobody =
        Test::new("a_server_that_does_not_know_its_public_address_does_not_answer", unaware);
    let firewall = Test::new("a_virtual_address_through_a_firewall", through_a_firewall);
    tests.push(nobody);
    tests.push(firewall);
    tests
}

/// A server behind the router, which forwards packets to [`PUBLIC`] to it. The server learns the
/// addresses that its peers send to by `known_as`.
fn behind_a_forwarded_port(
    gateway: &Gateway,
    paths: &str,
    known_as: &[SocketAddr],
) -> Result<Endpoint, Failed> {
    gateway.forward(PUBLIC.port(), server_v4(gateway))?;
    let bind = server_v4(gateway).into();
    endpoint(&gateway.server, paths, |on| on.bind(bind).known_as(known_as.iter().copied()))
}

const PUBLIC: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Gateway::INSIDE), 443);

fn forwarded(here: &str, there: &str, masquerade: Option<bool>) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    if let Some(random) = masquerade {
        gateway.masquerade(random)?;
    }
    let server = behind_a_forwarded_port(&gateway, there, &[PUBLIC])?;
    let client = client(&gateway.clients[0], here)?;
    converse(&client, &server, PUBLIC)?;
    replies(&client, &server, PUBLIC)
}

/// The server cannot know that handshakes to its public address are meant for it.
fn unaware() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let server = behind_a_forwarded_port(&gateway, "ecmp:1", &[])?;
    let client = client(&gateway.clients[0], "ecmp:1")?;
    // Long enough for a network that has just come up.
    let sent = client.send(PUBLIC, "hello").options(within(Duration::from_millis(2500))).wait();
    assert_eq!(sent, Err(SendError::NotAccepted));
    assert_eq!(server.try_recv(), Ok(None));
    // Its own address works.
    converse(&client, &server, server_v4(&gateway).into())
}

/// A server that has a virtual address, and answers at all of its addresses.
fn with_a_virtual_address(gateway: &Gateway, paths: &str) -> Result<Endpoint, Failed> {
    gateway.server.command("ip", &format!("address add {VIRTUAL}/32 dev lo"))?;
    let via = gateway.server.address();
    gateway.router.command("ip", &format!("route add {VIRTUAL}/32 via {via}"))?;
    endpoint(&gateway.server, paths, |on| on.bind(([0; 4], PORT).into()))
}

fn at_a_virtual_address(here: &str, there: &str) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let server = with_a_virtual_address(&gateway, there)?;
    let client = client(&gateway.clients[0], here)?;
    let to = (VIRTUAL, PORT).into();
    converse(&client, &server, to)?;
    replies(&client, &server, to)
}

/// The router lets in packets from addresses that the client has sent to.
fn through_a_firewall() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.wall()?;
    let server = with_a_virtual_address(&gateway, "ecmp:1")?;
    let client = client(&gateway.clients[0], "ecmp:1")?;
    converse(&client, &server, (VIRTUAL, PORT).into())
}
