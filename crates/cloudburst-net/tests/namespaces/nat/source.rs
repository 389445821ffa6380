//! Senders behind source NAT: a router replaces their address and ports.

use super::rig::{
    Exchange, PORT, RESPONSE, SOON, answers_calls, client, converse, delivers, endpoint, replies,
    server, server_address, within,
};
use crate::Test;
use crate::common::bytes;
use cloudburst_net::Endpoint;
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use std::thread;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for random in [false, true] {
        for (here, there) in [
            ("ecmp:1", "ecmp:1"),
            ("ecmp:16", "ecmp:16"),
            ("ecmp:16", "ecmp:1"),
            ("ecmp:1", "ecmp:16"),
            ("ecmp:4x4", "ecmp:4x4"),
            ("xpath:10.9.3.2,10.9.3.3", "ecmp:4"),
            ("ecmp:4", "xpath:10.9.3.1"),
        ] {
            let ports = if random { "random" } else { "kept" };
            let name = |what| format!("{what}_behind_masquerade_{ports}_ports_{here}_to_{there}");
            let run = move |test| move || behind_masquerade(random, here, there, test);
            tests.push(Test::new(name("sends"), run(delivers)));
            for (what, exchange) in
                [("calls", answers_calls as Exchange), ("is_replied_to", replies)]
            {
                tests.push(Test::new(name(what), run(exchange)));
            }
        }
    }
    let two = Test::new("two_behind_one_masquerade", two_behind_one_masquerade);
    let shared = Test::new("a_shared_port_from_behind_masquerade", a_shared_port);
    let second = Test::new("a_second_address_from_behind_masquerade", a_second_address);
    tests.push(two);
    tests.push(shared);
    tests.push(second);
    tests.push(Test::new("a_server_loses_the_address_that_it_is_known_by", loses_an_address));
    tests
}

fn behind_masquerade(
    random: bool,
    here: &str,
    there: &str,
    exchange: Exchange,
) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(random)?;
    gateway.server.command("ip", "address add 10.9.3.3/24 dev wire")?;
    let client = client(&gateway.clients[0], here)?;
    // The server takes packets to any of its addresses.
    let server = endpoint(&gateway.server, there, |on| on.bind(([0; 4], PORT).into()))?;
    exchange(&client, &server, server_address(&gateway))
}

/// Both use the same ports, and the router has each port only once.
fn two_behind_one_masquerade() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(false)?;
    let to = server_address(&gateway);
    let clients = gateway.clients.each_ref().map(|end| {
        let bind = (end.address(), 7001).into();
        endpoint(end, "ecmp:4x4", |on| on.bind(bind))
    });
    let server = server(&gateway.server, "ecmp:4")?;
    let [first, second] = clients;
    let first = first?;
    let second = second?;
    for client in [&first, &second, &first, &second] {
        converse(client, &server, to)?;
    }
    // Both at once.
    let service = server.clone();
    let serving = thread::spawn(move || service.blocking_serve(1, |request| request.bytes));
    thread::scope(|scope| {
        let call = move |client: &Endpoint, text: &'static str| {
            (0..20).try_for_each(|_| {
                assert_eq!(client.call(to, text).options(within(SOON)).wait()?, text);
                Ok::<(), Failed>(())
            })
        };
        let other = scope.spawn(move || call(&second, "second"));
        call(&first, "first").and(other.join().expect("it does not panic"))
    })?;
    server.blocking_shutdown(SOON);
    serving.join().expect("it does not panic");
    Ok(())
}

fn a_shared_port() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(true)?;
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let bind = server_address(&gateway);
    let server = endpoint(&gateway.server, "ecmp:4", |on| on.bind(bind).reuse_port(true))?;
    converse(&client, &server, bind)
}

/// It is not the address that packets to clients leave from by default.
fn a_second_address() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(false)?;
    gateway.server.command("ip", "address add 10.9.3.3/24 dev wire")?;
    let client = client(&gateway.clients[0], "ecmp:1")?;
    let server = endpoint(&gateway.server, "ecmp:1", |on| on.bind(([0; 4], PORT).into()))?;
    converse(&client, &server, ([10, 9, 3, 3], PORT).into())
}

/// The peer is still there, and takes packets of the session from any address.
fn loses_an_address() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.server.command("ip", "address add 10.9.3.3/24 dev wire")?;
    let client = client(&gateway.clients[0], "ecmp:4")?;
    let server = endpoint(&gateway.server, "ecmp:4", |on| on.bind(([0; 4], PORT).into()))?;
    converse(&client, &server, ([10, 9, 3, 3], PORT).into())?;
    gateway.server.command("ip", "address del 10.9.3.3/24 dev wire")?;
    let sent = server.send(client.local_addr(), bytes(RESPONSE, 3)).options(within(SOON)).wait();
    sent.map_err(|error| format!("from another address: {error}"))?;
    let message = client.recv().wait_for(SOON).ok_or("delivered, and not there")??;
    assert!(message.bytes == bytes(RESPONSE, 3), "another message");
    let counters = server.counters().io;
    assert_eq!(counters.send_errors.total(), 0, "{counters:?}");
    Ok(())
}
