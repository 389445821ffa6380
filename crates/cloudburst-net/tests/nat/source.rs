//! Senders whose address and ports a router replaces by its own.

use crate::Test;
use crate::rig::{
    Exchange, OTHER_SOURCE, PORT, SOON, answers_calls, client, converse, delivers, endpoint,
    replies, server, server_address, within,
};
use cloudburst_net::blocking;
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
                let test = Test::new(name(what), run(exchange));
                tests.push(test.ignore_if(here.starts_with("xpath"), OTHER_SOURCE));
            }
        }
    }
    let two = Test::new("two_behind_one_masquerade", two_behind_one_masquerade);
    let shared = Test::new("a_shared_port_from_behind_masquerade", a_shared_port);
    let second = Test::new("a_second_address_from_behind_masquerade", a_second_address);
    tests.push(two);
    tests.push(shared);
    tests.push(second.ignore_if(true, OTHER_SOURCE));
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
    // It takes packets to any of its addresses.
    let server = endpoint(&gateway.server, there, |on| on.bind(([0; 4], PORT).into()))?;
    exchange(&client, &server, server_address(&gateway))
}

/// They have the same ports, and the router has each only once.
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
    let (first, second) = (first?, second?);
    for client in [&first, &second, &first, &second] {
        converse(client, &server, to)?;
    }
    // Both at once.
    let service = server.clone();
    let serving = thread::spawn(move || service.serve(|_, request| request));
    thread::scope(|scope| {
        let call = move |client: &blocking::Endpoint, text: &'static str| {
            (0..20).try_for_each(|_| {
                assert_eq!(client.call_with(to, text, within(SOON))?, text);
                Ok::<(), Failed>(())
            })
        };
        let other = scope.spawn(move || call(&second, "second"));
        call(&first, "first").and(other.join().expect("it does not panic"))
    })?;
    server.close(SOON);
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

/// It is not the one that packets to clients leave from of themselves.
fn a_second_address() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(false)?;
    gateway.server.command("ip", "address add 10.9.3.3/24 dev wire")?;
    let client = client(&gateway.clients[0], "ecmp:1")?;
    let server = endpoint(&gateway.server, "ecmp:1", |on| on.bind(([0; 4], PORT).into()))?;
    converse(&client, &server, ([10, 9, 3, 3], PORT).into())
}
