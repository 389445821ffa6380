//! What `cbrst-send` reports of a receiver that is killed while many packets are on their way to it: its host soon no
//! longer answers each of them by an ICMP message.

use crate::common::*;
use cloudburst_testbed::Gateway;
use libtest_mimic::Failed;
use nix::sys::signal::Signal;

pub(crate) fn a_killed_receiver_is_reported_by_its_closed_port() -> Result<(), Failed> {
    let gateway = Gateway::up()?;
    let (_files, paths) = files(&[("file", &noise(60_000_000, 1))]);
    let dir = tempfile::tempdir()?;
    let listen = format!("{}:7000", gateway.server.address());
    let mut receiver = command(RECV, &["--insecure", "--listen", &listen, "--out"]);
    receiver.arg(dir.path());
    let (running, addr, key) = listening(gateway.server.run(move || Running::start(&mut receiver)));
    let receiver = Receiver { running, addr, key, dir };
    // Half of it is less than the second that passes between two ICMP messages.
    let args = ["--insecure", "--capacity", "40M", "--deadline", "1.8"];
    let mut sending = sender(&listen, "", &args, &[&paths[0]]);
    let sending = gateway.clients[0].run(move || Running::start(&mut sending));
    wait_until("part of the file has arrived", || !receiver.partial().is_empty());
    receiver.running.signal(Signal::SIGKILL);
    let sent = sending.end();
    assert_eq!(sent.code, Some(1), "{}", sent.stderr);
    let expected = format!("no receiver listens at {listen}");
    assert!(sent.stderr.contains(&expected), "{}", sent.stderr);
    Ok(())
}
