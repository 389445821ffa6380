//! `cbrst-send` and TCP flows on a link that is slower than its interface claims.

use crate::common::{RECV, Running, command, listening, sender};
use cloudburst_testbed::Star;
use libtest_mimic::Failed;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The link's bits per second. The interface claims 10 Gb/s.
const RATE: f64 = 50e6;
const WARM_UP: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(6);

/// Two hosts with CUBIC, and a router that forwards 50 Mb/s to the second, from a queue of 100 packets.
// A queue of the host itself would limit TCP before it is full ("TCP small queues").
fn slow() -> Result<Star, Failed> {
    let star = Star::up(2)?;
    for host in &star.hosts {
        host.command("ip", "route replace default via 10.9.0.1 dev wire onlink congctl cubic")?;
    }
    let port = Star::port(2);
    for command in [
        "qdisc add dev PORT root handle 1: htb default 1",
        "class add dev PORT parent 1: classid 1:1 htb rate 50mbit burst 4k cburst 4k quantum 1600",
        "qdisc add dev PORT parent 1:1 pfifo limit 100",
    ] {
        star.router.command("tc", &command.replace("PORT", &port))?;
    }
    Ok(star)
}

/// Starts a TCP flow from the first host to the second. Returns the bytes received.
pub(crate) fn tcp(star: &Star, port: u16, protocol: Protocol) -> Result<Arc<AtomicU64>, Failed> {
    let to = SocketAddr::from((star.hosts[1].address(), port));
    let listener = star.hosts[1].run(move || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.bind(&to.into())?;
        socket.listen(1)?;
        Ok(socket.into())
    })?;
    let received = Arc::new(AtomicU64::new(0));
    let count = received.clone();
    thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            count.fetch_add(read as u64, Ordering::Relaxed);
        }
    });
    let mut stream = star.hosts[0].run(move || -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.connect(&to.into())?;
        Ok(socket.into())
    })?;
    thread::spawn(move || while stream.write_all(&[7; 16_384]).is_ok() {});
    Ok(received)
}

/// Bits per second by which `bytes` rises.
pub(crate) fn rate_of(bytes: impl Fn() -> u64, time: Duration) -> f64 {
    let before = bytes();
    thread::sleep(time);
    (bytes() - before) as f64 * 8.0 / time.as_secs_f64()
}

/// Bytes that have left the queue of the router, and packets that it has dropped.
pub(crate) fn passed(star: &Star) -> Result<(u64, u64), Failed> {
    let text = star.router.command("tc", &format!("-s qdisc show dev {} root", Star::port(2)))?;
    let after = |word: &str| {
        let number = text.split_once(word)?.1.split([' ', ',']).next()?;
        number.parse::<u64>().ok()
    };
    let counts = after("Sent ").zip(after("dropped "));
    counts.ok_or_else(|| format!("no counts in {text}").into())
}

/// A transfer by the programs from the first host to the second, under way until it is dropped.
pub(crate) struct Transfer {
    _programs: [Running; 2],
    _directory: tempfile::TempDir,
}

impl Transfer {
    /// Starts it with further options of `cbrst-send` and of both programs.
    pub(crate) fn start(star: &Star, options: &[&str], of_both: &[&str]) -> Result<Self, Failed> {
        let directory = tempfile::tempdir()?;
        let source = directory.path().join("source");
        let out = directory.path().join("out");
        fs::create_dir(&out)?;
        File::create(&source)?.set_len(200_000_000)?;
        let listen = format!("{}:7000", star.hosts[1].address());
        let mut recv = command(RECV, &["--once", "--listen", &listen, "--out"]);
        recv.arg(&out).args(of_both);
        let (receiver, addr, key) = listening(star.hosts[1].run(move || Running::start(&mut recv)));
        let options = [&["--quiet"], options, of_both].concat();
        let mut send = sender(&addr, &key, &options, &[&source]);
        let sender = star.hosts[0].run(move || Running::start(&mut send));
        Ok(Self { _programs: [sender, receiver], _directory: directory })
    }
}

/// The bits per second of a TCP flow, if it is to be `beside` a transfer, and of everything on the wire.
fn transfer(options: &[&str], beside: bool) -> Result<[f64; 2], Failed> {
    let star = slow()?;
    let flow = if beside { Some(tcp(&star, 5000, Protocol::TCP)?) } else { None };
    let transfer = Transfer::start(&star, options, &[])?;
    thread::sleep(WARM_UP);
    let (bytes, drops) = passed(&star)?;
    let load = || flow.as_ref().map_or(0, |bytes| bytes.load(Ordering::Relaxed));
    let tcp = rate_of(load, TIME);
    let (bytes_then, drops_then) = passed(&star)?;
    drop(transfer);
    let all = (bytes_then - bytes) as f64 * 8.0 / TIME.as_secs_f64();
    println!(
        "cbrst-send {options:?}: TCP {:.1} Mb/s, all on the wire {:.1}; {} packets dropped",
        tcp / 1e6,
        all / 1e6,
        drops_then - drops
    );
    Ok([tcp, all])
}

pub(crate) fn a_tcp_flow_keeps_its_share() -> Result<(), Failed> {
    let star = slow()?;
    let flows = [tcp(&star, 5000, Protocol::TCP)?, tcp(&star, 5001, Protocol::TCP)?];
    thread::sleep(WARM_UP);
    let both = || flows.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
    let fair = rate_of(both, TIME) / 2.0;
    println!("two TCP flows: {:.1} Mb/s each", fair / 1e6);
    let [flooded, _] = transfer(&["--rate", "1", "--capacity", "10G"], true)?;
    // On a loaded machine, the flood itself is slower.
    if flooded > fair / 2.0 {
        return Err("a fixed rate of 10 Gb/s does not flood the link".into());
    }
    let [_, alone] = transfer(&[], false)?;
    if alone < 0.8 * RATE {
        return Err(format!("a file alone has {alone} b/s").into());
    }
    let [beside, all] = transfer(&[], true)?;
    if beside < 0.8 * fair || all < 0.8 * RATE {
        return Err(format!("{beside} of {fair} b/s, {all} in all").into());
    }
    Ok(())
}
