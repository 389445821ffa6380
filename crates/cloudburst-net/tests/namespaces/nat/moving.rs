//! Addresses that change in the middle of a call, at either end or in a translator between them.

use super::rig::{
    PORT, RESPONSE, SOON, answers_calls, client, endpoint, server, server_address, within,
};
use crate::Test;
use crate::common::bytes;
use cloudburst_net::{Builder, Endpoint};
use cloudburst_testbed::{End, Gateway};
use libtest_mimic::Failed;
use std::thread;
use std::time::{Duration, Instant};

/// How long a response may take after the addresses have changed: both ends notice by themselves, and
/// the system takes its time to make a new address known.
const MOVED: Duration = Duration::from_millis(500);

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("a_caller_is_renumbered_during_its_call", caller_is_renumbered),
        Test::new("a_callee_is_renumbered_during_a_call", callee_is_renumbered),
        Test::new("a_caller_fails_over_to_another_interface_during_its_call", caller_fails_over),
        Test::new("a_callee_fails_over_to_another_interface_during_a_call", callee_fails_over),
        Test::new("a_translator_forgets_its_ports_during_a_call", || {
            translator_changes("10.9.3.1")
        }),
        Test::new("a_translator_gets_another_address_during_a_call", || {
            translator_changes("10.9.3.9")
        }),
        Test::new("keep_alive_has_a_translator_remember_a_caller_that_waits", || {
            let took = response_after_silence(|on| on.keep_alive(Duration::from_secs(1)))?;
            assert!(took < MOVED, "{took:?}");
            Ok(())
        }),
        Test::new(
            "a_caller_that_its_translator_forgot_gets_its_response_after_its_next_check",
            || {
                let took = response_after_silence(|on| on)?;
                println!("without keep-alive, the response takes {took:?}");
                assert!(took > MOVED && took < Duration::from_secs(6), "{took:?}");
                Ok(())
            },
        ),
    ]
}

/// An endpoint at all addresses of a host.
fn anywhere(end: &End) -> Result<Endpoint, Failed> {
    endpoint(end, "ecmp:4", |on| on.bind(([0; 4], PORT).into()))
}

/// Has `client` call `server`, which replies once `change` has been made. Returns how long the response
/// took from then on.
fn call_across(
    gateway: &Gateway,
    client: &Endpoint,
    server: &Endpoint,
    change: impl FnOnce() -> Result<(), Failed>,
) -> Result<Duration, Failed> {
    let to = server_address(gateway);
    // A session, and the round trip.
    answers_calls(client, server, to)?;
    let took = thread::scope(|scope| {
        let call = scope.spawn(|| client.call(to, "request").options(within(SOON)).wait());
        let request = server.recv_request().wait_for(SOON).ok_or("no request")??;
        change()?;
        let began_at = Instant::now();
        // On that host, whose addresses the thread that waits looks up.
        let reply = move || request.reply(bytes(RESPONSE, 2)).options(within(SOON)).wait();
        let reply = gateway.server.run(reply);
        let response = call.join().expect("it does not panic");
        let response = response.map_err(|error| format!("the call: {error}"))?;
        assert!(response == bytes(RESPONSE, 2), "another response of {} bytes", response.len());
        reply.map_err(|error| format!("the response: {error}"))?;
        Ok::<_, Failed>(began_at.elapsed())
    })?;
    // And it is called under the same name.
    answers_calls(client, server, to)?;
    Ok(took)
}

/// Replaces the address 10.9.`net`.2 of a host by 10.9.`net`.7.
fn renumber(end: &End, net: u8) -> Result<(), Failed> {
    end.command("ip", &format!("address del 10.9.{net}.2/24 dev wire"))?;
    end.command("ip", &format!("address add 10.9.{net}.7/24 dev wire"))?;
    end.command("ip", &format!("route add default via 10.9.{net}.1"))?;
    Ok(())
}

fn caller_is_renumbered() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let caller = anywhere(&gateway.clients[0])?;
    let server = server(&gateway.server, "ecmp:4")?;
    let took = call_across(&gateway, &caller, &server, || renumber(&gateway.clients[0], 1))?;
    assert!(took < MOVED, "{took:?}");
    Ok(())
}

fn callee_is_renumbered() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let caller = client(&gateway.clients[0], "ecmp:4")?;
    let server = anywhere(&gateway.server)?;
    let took = call_across(&gateway, &caller, &server, || renumber(&gateway.server, 3))?;
    assert!(took < MOVED, "{took:?}");
    Ok(())
}

/// Gives a host a second interface, at 10.9.4.2.
fn second_interface(gateway: &Gateway, end: &End) -> Result<(), Failed> {
    gateway.router.join("second", "other", end)?;
    for (end, device, address) in
        [(&gateway.router, "second", "10.9.4.1"), (end, "other", "10.9.4.2")]
    {
        end.command("ip", &format!("address add {address}/24 dev {device}"))?;
        end.command("ip", &format!("link set {device} up"))?;
    }
    Ok(())
}

fn fail_over(end: &End) -> Result<(), Failed> {
    end.command("ip", "link set wire down")?;
    end.command("ip", "route add default via 10.9.4.1")?;
    Ok(())
}

fn caller_fails_over() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let end = &gateway.clients[0];
    second_interface(&gateway, end)?;
    let caller = anywhere(end)?;
    let server = server(&gateway.server, "ecmp:4")?;
    let took = call_across(&gateway, &caller, &server, || fail_over(end))?;
    assert!(took < MOVED, "{took:?}");
    Ok(())
}

fn callee_fails_over() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    second_interface(&gateway, &gateway.server)?;
    let caller = client(&gateway.clients[0], "ecmp:4")?;
    let server = anywhere(&gateway.server)?;
    let took = call_across(&gateway, &caller, &server, || fail_over(&gateway.server))?;
    assert!(took < MOVED, "{took:?}");
    Ok(())
}

/// The router forgets the ports of a masquerade with the address that they belong to.
fn translator_changes(public: &str) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(true)?;
    let caller = client(&gateway.clients[0], "ecmp:4")?;
    let server = server(&gateway.server, "ecmp:4")?;
    let to = server_address(&gateway);
    answers_calls(&caller, &server, to)?;
    let took = thread::scope(|scope| {
        let call = scope.spawn(|| caller.call(to, "request").options(within(SOON)).wait());
        let request = server.recv_request().wait_for(SOON).ok_or("no request")??;
        gateway.router.command("ip", "address del 10.9.3.1/24 dev server")?;
        gateway.router.command("ip", &format!("address add {public}/24 dev server"))?;
        let reply =
            scope.spawn(move || request.reply(bytes(RESPONSE, 2)).options(within(SOON)).wait());
        // The caller cannot know. The next packet from it tells the callee.
        let began_at = Instant::now();
        answers_calls(&caller, &server, to)?;
        let response = call.join().expect("it does not panic");
        let response = response.map_err(|error| format!("the call: {error}"))?;
        assert!(response == bytes(RESPONSE, 2), "another response of {} bytes", response.len());
        let reply = reply.join().expect("it does not panic");
        reply.map_err(|error| format!("the response: {error}"))?;
        Ok::<_, Failed>(began_at.elapsed())
    })?;
    // Beside other processes, a retry or two come late.
    assert!(took < 6 * MOVED, "{took:?}");
    Ok(())
}

/// Has a handler take twice as long as a translator remembers the caller. Returns how long the response took from
/// then on.
fn response_after_silence(settings: impl FnOnce(Builder) -> Builder) -> Result<Duration, Failed> {
    const REMEMBERS: Duration = Duration::from_secs(2);
    let gateway = Gateway::up()?;
    gateway.masquerade(true)?;
    gateway.forget_after(REMEMBERS)?;
    let caller = endpoint(&gateway.clients[0], "ecmp:4", settings)?;
    let server = server(&gateway.server, "ecmp:4")?;
    let to = server_address(&gateway);
    answers_calls(&caller, &server, to)?;
    thread::scope(|scope| {
        let patient = || within(Duration::from_secs(10));
        let call = scope.spawn(move || caller.call(to, "request").options(patient()).wait());
        let request = server.recv_request().wait_for(SOON).ok_or("no request")??;
        thread::sleep(2 * REMEMBERS);
        let began_at = Instant::now();
        let reply = request.reply(bytes(RESPONSE, 2)).options(patient()).wait();
        let response = call.join().expect("it does not panic");
        let response = response.map_err(|error| format!("the call: {error}"))?;
        assert!(response == bytes(RESPONSE, 2), "another response of {} bytes", response.len());
        reply.map_err(|error| format!("the response: {error}"))?;
        Ok(began_at.elapsed())
    })
}
