//! Routers in front of a link that carries less than 1,500 bytes. They drop what is longer, and their
//! ICMP is filtered.

use super::rig::{SOON, answers_calls, client, server, server_address, within};
use crate::common::{bytes, eventually};
use crate::{Named, Test};
use cloudburst_net::{BurstPolicy, Endpoint, SendError, SendOptions};
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use std::net::SocketAddr;
use std::time::Duration;

pub(super) fn tests() -> Vec<Test> {
    let tests: [Named; _] = [
        ("messages_and_calls_cross_a_black_hole", messages_and_calls_cross_a_black_hole),
        ("a_path_that_shrinks_under_way_delivers", a_path_that_shrinks_under_way_delivers),
        ("a_jumbo_path_is_used", a_jumbo_path_is_used),
        ("a_path_that_is_too_narrow_is_named", a_path_that_is_too_narrow_is_named),
    ];
    tests.into_iter().map(|(name, run)| Test::new(format!("narrow::{name}"), run)).collect()
}

/// A router whose ICMP arrives nowhere, and whose link to the server carries `mtu` bytes.
fn black_hole(mtu: usize) -> Result<Gateway, Failed> {
    let gateway = Gateway::up()?;
    let silence = "table ip silence { chain out { type filter hook output priority 0; \
                   meta l4proto icmp drop; }; }";
    gateway.router.command("nft", silence)?;
    set_mtu(&gateway, mtu)?;
    Ok(gateway)
}

fn set_mtu(gateway: &Gateway, mtu: usize) -> Result<(), Failed> {
    gateway.router.command("ip", &format!("link set server mtu {mtu}"))?;
    Ok(())
}

/// The MTU that `endpoint` has found for `peer`.
fn found(endpoint: &Endpoint, peer: SocketAddr) -> usize {
    endpoint.peer(peer).map_or(0, |stats| stats.sent.mtu)
}

/// Has `client` send `len` bytes to `server`. Returns how long that took.
fn deliver(
    client: &Endpoint,
    server: &Endpoint,
    to: SocketAddr,
    len: usize,
    options: SendOptions,
) -> Result<Duration, Failed> {
    let sent = bytes(len, 1);
    let receipt = client.send(to, sent.clone()).options(options).wait();
    let receipt = receipt.map_err(|error| format!("{len} bytes: {error}"))?;
    let message = server.recv().wait_for(SOON).ok_or("delivered, and not there")??;
    assert!(message.bytes == sent, "another message of {} bytes", message.bytes.len());
    Ok(receipt.total())
}

fn messages_and_calls_cross_a_black_hole() -> Result<(), Failed> {
    for mtu in [1_280, 1_400] {
        let gateway = black_hole(mtu)?;
        let to = server_address(&gateway);
        let pulled = BurstPolicy::Pulled { window: None };
        for policy in [BurstPolicy::default(), BurstPolicy::Oblivious, pulled] {
            let client = client(&gateway.clients[0], "ecmp:4")?;
            let server = server(&gateway.server, "ecmp:4")?;
            for len in [1_400, 5_000, 93_000, 600_000] {
                let took = deliver(&client, &server, to, len, within(SOON).policy(policy))?;
                println!("{mtu} {policy:?} {len}: {took:?}");
            }
            answers_calls(&client, &server, to)?;
            eventually("the search ends", || found(&client, to).abs_diff(mtu) < 80);
            assert!(client.counters().sender.mtu_lowered > 0);
        }
    }
    Ok(())
}

fn a_path_that_shrinks_under_way_delivers() -> Result<(), Failed> {
    let gateway = black_hole(1_500)?;
    let to = server_address(&gateway);
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let server = server(&gateway.server, "ecmp:4")?;
    let message = bytes(3_000_000, 1);
    let sending = client.send(to, message.clone()).begin()?;
    eventually("it bursts", || client.counters().sender.symbols_sent > 200);
    set_mtu(&gateway, 1_300)?;
    sending.wait()?;
    let came = server.recv().wait_for(SOON).ok_or("delivered, and not there")??;
    assert!(came.bytes == message);
    Ok(())
}

fn a_jumbo_path_is_used() -> Result<(), Failed> {
    let gateway = black_hole(9_000)?;
    gateway.router.command("ip", "link set client1 mtu 9000")?;
    for end in [&gateway.clients[0], &gateway.server] {
        end.command("ip", "link set wire mtu 9000")?;
    }
    let to = server_address(&gateway);
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let server = server(&gateway.server, "ecmp:4")?;
    for _ in 0..5 {
        deliver(&client, &server, to, 93_000, within(SOON))?;
    }
    eventually("the search ends", || found(&client, to) == 9_000);
    let symbols = client.counters().sender.symbols_sent;
    deliver(&client, &server, to, 93_000, within(SOON))?;
    let packets = client.counters().sender.symbols_sent - symbols;
    assert!(packets < 20, "{packets}");
    Ok(())
}

fn a_path_that_is_too_narrow_is_named() -> Result<(), Failed> {
    let gateway = black_hole(1_000)?;
    let to = server_address(&gateway);
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let server = server(&gateway.server, "ecmp:4")?;
    deliver(&client, &server, to, 500, within(SOON))?;
    let error = client.send(to, bytes(93_000, 1)).options(within(SOON)).wait();
    assert!(matches!(error, Err(SendError::PathMtu(_))), "{error:?}");
    Ok(())
}
