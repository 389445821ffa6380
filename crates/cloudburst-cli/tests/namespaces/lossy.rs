//! Messages and a file, over a wire that loses packets both ways.

use bytes::Bytes;
use cloudburst_net::{Endpoint, PathMap, Security};
use cloudburst_testbed::{End, Wire};
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often each message was seen, by its BLAKE3.
type Counts = BTreeMap<[u8; 32], u32>;

/// A wire that loses `percent` of the packets, each way.
fn lossy(percent: u32) -> Result<Wire, Failed> {
    let wire = Wire::up()?;
    wire.lose(percent)?;
    Ok(wire)
}

/// Sends `count` messages of 1 to 93,000 bytes and compares what was sent with what arrived.
pub(crate) fn messages(percent: u32, count: u64) -> Result<(), Failed> {
    let wire = lossy(percent)?;
    let receiver = endpoint(&wire.right, 7000)?;
    let sender = endpoint(&wire.left, 0)?;
    let to = SocketAddr::from((wire.right.address(), 7000));

    let start = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let sent = Arc::new(Mutex::new(Counts::new()));
    let senders: Vec<_> = (0..32)
        .map(|_| {
            let sender = sender.clone();
            let next = next.clone();
            let sent = sent.clone();
            thread::spawn(move || -> Result<u64, String> {
                let mut packets = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok(packets);
                    }
                    let bytes = message(number, count);
                    let digest = *blake3::hash(&bytes).as_bytes();
                    *sent
                        .lock()
                        .expect("no thread panics while it holds the lock")
                        .entry(digest)
                        .or_default() += 1;
                    let receipt = sender.send(to, bytes).wait();
                    packets +=
                        receipt.map_err(|e| format!("message {number}: {e}"))?.packets as u64;
                }
            })
        })
        .collect();
    let mut arrived = Counts::new();
    for _ in 0..count {
        let message = receiver.recv().wait_for(Duration::from_secs(60)).transpose()?;
        let Some(message) = message else {
            return Err(format!("{} of {count} arrived", arrived.values().sum::<u32>()).into());
        };
        *arrived.entry(*blake3::hash(&message.bytes).as_bytes()).or_default() += 1;
    }
    let mut packets = 0;
    for sender in senders {
        packets += sender.join().map_err(|_| "a sending thread panicked")??;
    }
    let again = receiver.recv().wait_for(Duration::from_millis(500)).transpose()?;
    println!(
        "{count} messages, {percent} % loss each way: {packets} packets, {} and {} lost, {:.1} s",
        wire.right.lost()?,
        wire.left.lost()?,
        start.elapsed().as_secs_f64(),
    );
    if again.is_some() {
        return Err("a message arrived twice".into());
    }
    if arrived != *sent.lock().expect("no thread panics while it holds the lock") {
        return Err("what arrived is not what was sent".into());
    }
    if wire.right.lost()? == 0 || wire.left.lost()? == 0 {
        return Err("the wire lost nothing".into());
    }
    sender.blocking_shutdown(Duration::from_secs(5));
    receiver.blocking_shutdown(Duration::from_secs(5));
    Ok(())
}

/// Message `number` of `count`: lengths from 1 to 93,000 bytes, as many short as long ones on a
/// logarithmic scale, the ends included.
fn message(number: u64, count: u64) -> Bytes {
    let share = number as f64 / (count - 1) as f64;
    let length = 93_000_f64.powf(share).round() as usize;
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

fn endpoint(on: &End, port: u16) -> Result<Endpoint, Failed> {
    let address = SocketAddr::from((on.address(), port));
    let built = on.run(move || {
        Endpoint::builder()
            .bind(address)
            .paths(PathMap::ecmp(4))
            .security(Security::pre_shared([7; 32]))
            .build()
    });
    Ok(built?)
}

/// Sends a file of 100 MB with the programs.
pub(crate) fn file() -> Result<(), Failed> {
    let wire = lossy(5)?;
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("source");
    let out = directory.path().join("out");
    std::fs::create_dir(&out)?;
    let mut bytes = vec![0; 100_000_000];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    std::fs::write(&source, &bytes)?;
    let key = directory.path().join("key");
    std::fs::write(&key, "07".repeat(32))?;

    let listen = SocketAddr::from((wire.right.address(), 7000)).to_string();
    let mut recv = Command::new(env!("CARGO_BIN_EXE_cbrst-recv"));
    recv.args(["--listen", &listen, "--once", "--out"]).arg(&out).arg("--key-file").arg(&key);
    recv.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut receiver = wire.right.run(move || recv.spawn())?;
    let mut status = BufReader::new(receiver.stderr.take().ok_or("no standard error")?);
    let mut first = String::new();
    status.read_line(&mut first)?;

    let start = Instant::now();
    let mut send = Command::new(env!("CARGO_BIN_EXE_cbrst-send"));
    send.arg("--json").arg("--key-file").arg(&key).arg(&listen).arg(&source);
    send.stdin(Stdio::null());
    let sent = wire.left.run(move || send.output())?;
    let seconds = start.elapsed().as_secs_f64();
    if !sent.status.success() {
        let _ = receiver.kill();
    }
    let mut rest = String::new();
    status.read_to_string(&mut rest)?;
    let received = receiver.wait()?;
    println!("{first}{rest}{}", String::from_utf8_lossy(&sent.stderr));
    println!("{}100 MB in {seconds:.1} s", String::from_utf8_lossy(&sent.stdout));
    if !sent.status.success() || !received.success() {
        return Err(format!("cbrst-send: {}, cbrst-recv: {received}", sent.status).into());
    }
    if std::fs::read(out.join("source"))? != bytes {
        return Err("the file arrived with other bytes".into());
    }
    if wire.right.lost()? == 0 || wire.left.lost()? == 0 {
        return Err("the wire lost nothing".into());
    }
    Ok(())
}
