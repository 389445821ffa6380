//! A firewall in between that admits packets to clients only if they answer packets of the clients.

use super::rig::{
    Exchange, PORT, SOON, answers_calls, client, converse, delivers, endpoint, open, replies,
    server, server_address, within,
};
use crate::Test;
use cloudburst_net::SendError;
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (here, there) in [
        ("ecmp:1", "ecmp:1"),
        ("ecmp:16", "ecmp:16"),
        ("ecmp:16", "ecmp:1"),
        ("ecmp:1", "ecmp:16"),
        ("ecmp:4x4", "ecmp:4x4"),
    ] {
        let name = |what| format!("{what}_through_a_firewall_{here}_to_{there}");
        let run = move |exchange| move || through(here, there, exchange);
        tests.push(Test::new(name("sends"), run(delivers)));
        for (what, exchange) in [("calls", answers_calls as Exchange), ("is_replied_to", replies)] {
            let test = Test::new(name(what), run(exchange));
            tests.push(test);
        }
    }
    for there in ["ecmp:1", "ecmp:16"] {
        let name = format!("a_second_address_through_a_firewall_to_{there}");
        tests.push(Test::new(name, move || a_second_address(there)));
    }
    tests.push(Test::new("ports_without_an_answer_are_replaced_by_others", replaced_ports));
    tests.push(Test::new(
        "a_peer_outside_a_firewall_cannot_send_first",
        a_peer_outside_a_firewall_cannot_send_first,
    ));
    tests
}

fn through(here: &str, there: &str, exchange: Exchange) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.wall()?;
    let client = client(&gateway.clients[0], here)?;
    let server = server(&gateway.server, there)?;
    exchange(&client, &server, server_address(&gateway))
}

/// By default, packets to clients leave from another address.
fn a_second_address(there: &str) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.wall()?;
    gateway.server.command("ip", "address add 10.9.3.3/24 dev wire")?;
    let client = client(&gateway.clients[0], "ecmp:1")?;
    let server = endpoint(&gateway.server, there, |on| on.bind(([0; 4], PORT).into()))?;
    let to = ([10, 9, 3, 3], PORT).into();
    replies(&client, &server, to)?;
    converse(&client, &server, to)
}

/// All ports in use are dropped on the way, as if switches hashed them onto dead paths.
fn replaced_ports() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let client = open(&gateway.clients[0], "ecmp:8", |on| on)?;
    let used = client.local_addrs()[..8].iter().map(|addr| addr.port().to_string());
    let used = used.collect::<Vec<_>>().join(", ");
    let client = client.clone();
    let server = server(&gateway.server, "ecmp:8")?;
    let to = server_address(&gateway);
    let rules = format!(
        "table inet holes {{ chain output {{ type filter hook output priority 0; \
         udp sport {{ {used} }} drop; }}; chain input {{ type filter hook input priority 0; \
         udp dport {{ {used} }} drop; }}; }}"
    );
    delivers(&client, &server, to)?;
    gateway.clients[0].command("nft", &rules)?;
    delivers(&client, &server, to)?;
    let paths = client.paths(to);
    assert_eq!(paths.iter().filter(|path| !path.removed && path.sent > 0).count(), 8, "{paths:?}");
    Ok(())
}

/// The sender gets the error at the deadline; the firewall says nothing.
fn a_peer_outside_a_firewall_cannot_send_first() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.wall()?;
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let server = server(&gateway.server, "ecmp:4")?;
    let sent = server
        .send(client.local_addr(), "hello")
        .options(within(Duration::from_millis(300)))
        .wait();
    assert_eq!(sent, Err(SendError::NoAnswer));
    assert!(gateway.dropped()? > 0);
    delivers(&client, &server, server_address(&gateway))?;
    // The same address, which can be reached now.
    let sent = server.send(client.local_addr(), "hello").options(within(SOON)).wait();
    sent.map_err(|error| format!("to a client that has sent: {error}"))?;
    Ok(())
}
