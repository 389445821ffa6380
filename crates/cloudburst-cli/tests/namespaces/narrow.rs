//! A file, over a router whose link to the receiver drops long packets, and whose ICMP is filtered.

use crate::common::*;
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use std::fs;
use std::time::{Duration, Instant};

/// Sends a file over a link of `mtu` bytes with these options. Returns how the sender ended, after which
/// time, and whether the file is there.
fn send(mtu: usize, options: &[&str]) -> Result<(Ended, Duration, bool), Failed> {
    let gateway = Gateway::up()?;
    let silence = "table ip silence { chain out { type filter hook output priority 0; \
                   meta l4proto icmp drop; }; }";
    gateway.router.command("nft", silence)?;
    gateway.router.command("ip", &format!("link set server mtu {mtu}"))?;
    let dir = tempfile::tempdir()?;
    let out = tempfile::tempdir()?;
    let file = dir.path().join("file");
    let bytes = noise(2_000_000, 1);
    fs::write(&file, &bytes)?;
    let listen = format!("{}:7000", gateway.server.address());
    let taken = out.path().to_str().ok_or("the path is not UTF-8")?;
    let mut receiver = command(RECV, &["--insecure", "--listen", &listen, "--out", taken]);
    let (receiver, _, _) = listening(gateway.server.run(move || Running::start(&mut receiver)));
    let mut sender = command(SEND, &["--insecure", "--capacity", "1G"]);
    sender.args(options).arg(&listen).arg(&file);
    let began = Instant::now();
    let ended = gateway.clients[0].run(move || Running::start(&mut sender).end());
    let took = began.elapsed();
    drop(receiver);
    let arrived = fs::read(out.path().join("file")).is_ok_and(|arrived| arrived == bytes);
    Ok((ended, took, arrived))
}

pub(crate) fn a_file_crosses_a_link_that_drops_long_packets() -> Result<(), Failed> {
    for mtu in [1_280, 1_400] {
        let (ended, took, arrived) = send(mtu, &[])?;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(arrived && took < Duration::from_secs(5), "{took:?}");
    }
    Ok(())
}

pub(crate) fn a_transfer_of_which_nothing_arrives_ends_though_signs_of_life_do()
-> Result<(), Failed> {
    let (ended, took, _) = send(1_000, &["--deadline", "6"])?;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(took < Duration::from_secs(10), "{took:?}: {}", ended.stderr);
    let lines: Vec<_> =
        ended.stderr.lines().filter(|line| line.contains("stalled: nothing")).collect();
    assert!(lines.len() == 2, "once while it stalls, once at the end: {}", ended.stderr);
    assert!(lines.iter().all(|line| line.contains(" bytes")), "the MTU is named: {lines:?}");
    Ok(())
}
