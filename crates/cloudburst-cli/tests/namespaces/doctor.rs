//! What `cbrst-doctor` reports of a router between it and the receiver.

use crate::common::*;
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

const PORT: u16 = 7000;

/// The same as [`ask`], where an examination is possible.
fn examine(gateway: &Gateway, listen: &str, more: &[&str], peer: &str) -> Result<Value, Failed> {
    examined(ask(gateway, listen, more, &[], peer)?)
}

/// Runs the doctor with these options.
fn examine_with(gateway: &Gateway, options: &[&str], peer: &str) -> Result<Value, Failed> {
    examined(ask(gateway, peer, &[], options, peer)?)
}

fn examined(report: Value) -> Result<Value, Failed> {
    if report["error"].is_string() { Err(report["error"].to_string().into()) } else { Ok(report) }
}

/// Runs a receiver at the server, and returns the report of a doctor at the first client, which asks at `peer`.
fn ask(
    gateway: &Gateway,
    listen: &str,
    more: &[&str],
    options: &[&str],
    peer: &str,
) -> Result<Value, Failed> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().to_str().ok_or("the path is not UTF-8")?;
    let mut receiver = command(RECV, &["--insecure", "--listen", listen, "--out", out]);
    receiver.args(more);
    let (receiver, _, _) = listening(gateway.server.run(move || Running::start(&mut receiver)));
    let mut doctor = command(DOCTOR, &["--insecure", "--json", "--ports", "4"]);
    // Packets that do not arrive, as the tests expect, take the whole deadline.
    doctor.args(["--capacity", "1G", "--deadline", "2"]).args(options).arg(peer);
    let ended = gateway.clients[0].run(move || Running::start(&mut doctor).end());
    drop(receiver);
    serde_json::from_slice(&ended.stdout).map_err(|error| {
        format!("{error}: {}, {}", String::from_utf8_lossy(&ended.stdout), ended.stderr).into()
    })
}

fn notes(report: &Value) -> Vec<&str> {
    report["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Problems and remedies that speak of it.
fn problems<'a>(report: &'a Value, of: &str) -> Vec<(&'a str, &'a str)> {
    let all = report["problems"].as_array().into_iter().flatten();
    let both = all.filter_map(|one| Some((one["what"].as_str()?, one["remedy"].as_str()?)));
    both.filter(|(what, _)| what.contains(of)).collect()
}

fn address(report: &Value, which: &str) -> Result<SocketAddr, Failed> {
    let text = report["addresses"][which].as_str().ok_or_else(|| report.to_string())?;
    Ok(text.parse()?)
}

fn here(gateway: &Gateway) -> SocketAddrV4 {
    SocketAddrV4::new(gateway.server.address(), PORT)
}

pub(crate) fn of_a_router() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let server = here(&gateway).to_string();
    let report = examine(&gateway, &server, &[], &server)?;
    assert_eq!(notes(&report), [""; 0], "{report}");
    assert_eq!(report["addresses"]["naming"], "own", "{report}");
    assert_eq!(report["addresses"]["unasked_arrive"], true, "{report}");
    assert_eq!(address(&report, "local")?, address(&report, "seen")?);
    Ok(())
}

pub(crate) fn of_a_closed_port() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    // The server limits the rate at which it reports closed ports.
    let [one, other] = [PORT, PORT + 1].map(|port| format!("{}:{port}", gateway.server.address()));
    for hosts in [vec![&one], vec![&one, &other]] {
        let mesh = hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>().join(",");
        let args = ["--insecure", "--json", "--deadline", "0.5", "--mesh", &mesh];
        let mut doctor = command(DOCTOR, &args);
        let ended = gateway.clients[0].run(move || Running::start(&mut doctor).end());
        let report: Value = serde_json::from_slice(&ended.stdout)?;
        for (at, host) in hosts.iter().enumerate() {
            let error =
                report["receivers"][at]["error"].as_str().ok_or_else(|| report.to_string())?;
            assert!(error.starts_with(&format!("no receiver listens at {host}")), "{report}");
        }
    }
    Ok(())
}

pub(crate) fn of_source_nat() -> Result<(), Failed> {
    behind_masquerade(false)
}

pub(crate) fn of_translated_ports() -> Result<(), Failed> {
    behind_masquerade(true)
}

fn behind_masquerade(random: bool) -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.masquerade(random)?;
    let server = here(&gateway).to_string();
    let report = examine(&gateway, &server, &[], &server)?;
    let local = address(&report, "local")?;
    let seen = address(&report, "seen")?;
    assert_eq!(
        (local.ip(), seen.ip()),
        (gateway.clients[0].address().into(), Gateway::OUTSIDE.into())
    );
    assert_eq!(local.port() == seen.port(), !random, "{report}");
    let expected = format!(
        "this host is behind source NAT: the peer sees {local} as {seen}, and can send here"
    );
    assert!(notes(&report).len() == 1 && notes(&report)[0].starts_with(&expected), "{report}");
    assert_eq!(report["addresses"]["naming"], "own", "{report}");
    Ok(())
}

pub(crate) fn of_destination_nat() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let public = SocketAddrV4::new(Gateway::INSIDE, 443).to_string();
    let server = here(&gateway);
    gateway.forward(443, server)?;
    let server = server.to_string();
    // A receiver that does not know the address does not accept a handshake to it.
    let report = ask(&gateway, &server, &[], &[], &public)?;
    let error = report["error"].as_str().ok_or_else(|| report.to_string())?;
    assert!(error.starts_with(&format!("a receiver with this key answers at {public}")), "{error}");
    assert!(error.contains(&format!("cbrst-recv --known-as {public}")), "{error}");

    let report = examine(&gateway, &server, &["--known-as", &public], &public)?;
    assert_eq!(report["addresses"]["naming"], "translated", "{report}");
    assert_eq!(problems(&report, "destination NAT"), [], "{report}");
    assert!(notes(&report)[0].contains("and knows that it is known as"), "{report}");
    Ok(())
}

pub(crate) fn of_a_virtual_address() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let ip = Ipv4Addr::new(192, 0, 2, 7);
    gateway.server.command("ip", &format!("address add {ip}/32 dev lo"))?;
    gateway.router.command("ip", &format!("route add {ip}/32 via {}", gateway.server.address()))?;
    let peer = SocketAddrV4::new(ip, PORT).to_string();
    let report = examine(&gateway, "0.0.0.0:7000", &[], &peer)?;
    assert_eq!(report["addresses"]["naming"], "own", "{report}");
    assert_eq!(notes(&report), [""; 0], "{report}");
    Ok(())
}

pub(crate) fn of_a_firewall() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.wall()?;
    let server = here(&gateway).to_string();
    let report = examine(&gateway, &server, &[], &server)?;
    assert_eq!(report["addresses"]["unasked_arrive"], false, "{report}");
    let expected = "a stateful firewall drops unsolicited packets";
    assert!(notes(&report).len() == 1 && notes(&report)[0].starts_with(expected), "{report}");
    Ok(())
}

pub(crate) fn of_a_narrow_link() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.router.command("ip", "link set server mtu 1400")?;
    let server = here(&gateway).to_string();
    let report = examine(&gateway, &server, &[], &server)?;
    assert_eq!((&report["mtu"], &report["path_mtu"]), (&1500.into(), &1400.into()), "{report}");
    let found = problems(&report, "1400 bytes");
    assert!(found.len() == 1 && found[0].1.contains("--mtu 1400"), "{report}");
    assert_eq!(problems(&report, "GSO"), [], "{report}");

    let report = examine_with(&gateway, &["--mtu", "1400"], &server)?;
    assert_eq!(problems(&report, "bytes, but"), [], "{report}");
    Ok(())
}

pub(crate) fn of_a_narrow_link_without_icmp() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    gateway.router.command("ip", "link set server mtu 1300")?;
    let silence = "table ip silence { chain in { type filter hook input priority 0; \
                   icmp type destination-unreachable drop; }; }";
    gateway.clients[0].command("nft", silence)?;
    let server = here(&gateway).to_string();
    let report = examine(&gateway, &server, &[], &server)?;
    assert_eq!(report["full_packets_arrive"], false, "{report}");
    let found = problems(&report, "packets of 1500 bytes do not arrive");
    assert!(found.len() == 1 && found[0].1.contains("--mtu"), "{report}");
    assert_eq!(problems(&report, "source ports ("), [], "{report}");

    let report = examine_with(&gateway, &["--mtu", "1300"], &server)?;
    assert_eq!(problems(&report, "do not arrive"), [], "{report}");
    Ok(())
}
