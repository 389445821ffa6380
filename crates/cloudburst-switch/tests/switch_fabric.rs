//! Applies the files for Linux, as rendered, to a leaf of a fabric of network namespaces. Rendered files
//! first remove the leaf's own queues, hash and routes.
//!
//! Needs root, iproute2, nftables, ethtool and sysctl. Where they are missing the tests are ignored,
//! and the reason is printed.

mod common;

use cloudburst_testbed::{Fabric, Host, Node, Port, Topology, available};
use common::Rendered;
use libtest_mimic::{Arguments, Failed, Trial};
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 7000;
const DSCP: u32 = 43;
const LEAF: Node = Node::Leaf(1);

fn main() {
    let args = Arguments::from_args();
    let available = if args.list { Ok(()) } else { available() };
    let available = available.and_then(|()| Fabric::up(&small()).map(drop));
    if let Err(reason) = &available {
        println!("switch on a fabric: ignored: {reason}");
    }
    let trial = |name: &str, run: fn() -> Result<(), Failed>| {
        Trial::test(name, run).with_ignored_flag(available.is_err())
    };
    let trials = vec![
        trial(
            "one_dscp_has_the_tiny_queue_of_every_port",
            one_dscp_has_the_tiny_queue_of_every_port,
        ),
        trial("the_queue_never_exceeds_its_limit", the_queue_never_exceeds_its_limit),
        trial("a_limit_in_bytes_holds_too", a_limit_in_bytes_holds_too),
        trial(
            "several_dscps_have_strict_order_within_one_share",
            several_dscps_have_strict_order_within_one_share,
        ),
        trial("ecmp_hashes_the_ports", ecmp_hashes_the_ports),
        trial(
            "an_explicit_path_takes_its_rendered_route",
            an_explicit_path_takes_its_rendered_route,
        ),
        Trial::test("tc_accepts_selective_dropping", tc_accepts_selective_dropping)
            .with_ignored_flag(available.is_err() || (!args.list && !has_red())),
        trial("the_queues_can_be_set_again", the_queues_can_be_set_again),
        trial("the_rollback_removes_what_was_rendered", the_rollback_removes_what_was_rendered),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn small() -> Topology {
    Topology { hosts: 4, rate: 40_000_000, uplink_rate: Some(20_000_000), ..Topology::default() }
}

/// The parameters of leaf 1: two hosts, four spines, and each path of each host.
fn parameters(fabric: &Fabric, lines: &str) -> Result<String, Failed> {
    let topology = fabric.topology();
    let dscp = if lines.contains("dscps") { String::new() } else { format!("dscp = {DSCP}") };
    let mut text = format!(
        "platform = \"linux\"\nname = \"l1\"\nports = [\"h[1-2]\", \"s[1-4]\"]\nseed = 11\n\
         {dscp}\nrate = \"{}\"\n{lines}\n",
        topology.uplink_rate()
    );
    for index in 1..=topology.hosts {
        let host = fabric.host(index)?;
        for spine in 1..=topology.spines {
            let is_here = host.leaf() == LEAF;
            let via = if is_here { host.v4() } else { fabric.addresses(Node::Spine(spine))?.0 };
            let port = if is_here { format!("h{index}") } else { format!("s{spine}") };
            let to = host.path_address(spine)?;
            write!(text, "[[routes]]\nto = \"{to}/32\"\nvia = \"{via}\"\nport = \"{port}\"\n")?;
        }
    }
    Ok(text)
}

/// Runs a rendered script at leaf 1.
fn run(fabric: &Fabric, rendered: &Rendered, script: &str) -> Result<(), Failed> {
    let output = fabric.namespace(LEAF)?.command("sh").arg(rendered.path(script)).output()?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{script}: {printed}").into()) }
}

/// Leaf 1 as rendered. The lint must agree before anything is run.
fn configured(fabric: &Fabric, lines: &str) -> Result<Rendered, Failed> {
    let rendered = Rendered::of(&parameters(fabric, lines)?);
    let check = rendered.check();
    assert_eq!(check.code, Some(0), "{}", String::from_utf8_lossy(&check.stdout));
    for script in ["rollback.sh", "qos.sh", "ecmp.sh", "paths.sh"] {
        run(fabric, &rendered, script)?;
    }
    Ok(rendered)
}

fn bound(host: &Host<'_>, v6: bool, port: u16) -> Result<UdpSocket, Failed> {
    let address: IpAddr = if v6 { host.v6().into() } else { host.v4().into() };
    // At any of the host's addresses, since its paths are addresses, too.
    let any: IpAddr = if v6 { "::".parse()? } else { "0.0.0.0".parse()? };
    let address = SocketAddr::new(if port == 0 { address } else { any }, port);
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if v6 {
            // A program that another test is starting may still hold the socket of IPv4.
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        Ok::<UdpSocket, std::io::Error>(socket.into())
    };
    Ok(host.run(bind)??)
}

fn mark(socket: &UdpSocket, byte: u32) -> Result<(), Failed> {
    let v6 = socket.local_addr()?.is_ipv6();
    let socket = SockRef::from(socket);
    Ok(if v6 { socket.set_tclass_v6(byte) } else { socket.set_tos_v4(byte) }?)
}

/// Counts the packets that arrive within the longest time that a message takes.
fn arrivals(receiver: &UdpSocket, expected: usize) -> Result<usize, Failed> {
    receiver.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut buffer = [0; 2048];
    Ok((0..expected).take_while(|_| receiver.recv(&mut buffer).is_ok()).count())
}

fn one_dscp_has_the_tiny_queue_of_every_port() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    configured(&fabric, "limit = \"8 packets\"")?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let counts = |spine: u16| -> Result<(u64, u64), Failed> {
        let port = fabric.port(LEAF, Node::Spine(spine))?;
        Ok((port.tiny.sent, port.default.sent))
    };
    for v6 in [false, true] {
        let receiver = bound(&to, v6, PORT)?;
        let sender = bound(&from, v6, 0)?;
        for spine in 1..=4 {
            let before = counts(spine)?;
            let address: IpAddr =
                if v6 { to.path_address_v6(spine)?.into() } else { to.path_address(spine)?.into() };
            for byte in 0..=255 {
                mark(&sender, byte)?;
                sender.send_to(b"marked", (address, PORT))?;
                assert_eq!(arrivals(&receiver, 1)?, 1, "{byte:#x}, IPv6: {v6}");
            }
            let after = counts(spine)?;
            assert_eq!(after.0 - before.0, 4, "one DSCP with any ECN, and nothing else");
            // The kernel's own packets are there too.
            assert!(after.1 - before.1 >= 252);
        }
    }
    Ok(())
}

/// What was measured at the port to spine 1 while two hosts sent more than it carries, one of them
/// with the DSCP.
struct Flooded {
    deepest: u64,
    deepest_bytes: u64,
    /// Bits per second.
    tiny: f64,
    default: f64,
    dropped: u64,
}

/// Floods the port to spine 1 from both hosts, and samples its queues continuously.
fn flood(fabric: &Fabric) -> Result<Flooded, Failed> {
    let to = fabric.host(3)?;
    let _sink = bound(&to, false, PORT)?;
    let address = (to.path_address(1)?, PORT);
    let sockets = [(1, DSCP << 2), (2, 0)].map(|(index, byte)| -> Result<UdpSocket, Failed> {
        let socket = bound(&fabric.host(index)?, false, 0)?;
        mark(&socket, byte)?;
        Ok(socket)
    });
    let ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        for socket in sockets {
            let socket = socket?;
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&[0; 1400], address);
                }
            });
        }
        let watched = watch(fabric);
        ended.store(true, Ordering::Relaxed);
        watched
    })
}

fn watch(fabric: &Fabric) -> Result<Flooded, Failed> {
    let port = || -> Result<Port, Failed> { Ok(fabric.port(LEAF, Node::Spine(1))?) };
    // Both queues are full from here on, until the senders end.
    let patience = Instant::now() + Duration::from_secs(30);
    while port()?.tiny.dropped == 0 || port()?.default.dropped == 0 {
        assert!(Instant::now() < patience, "the port is never congested: {:?}", port()?);
    }
    let before = port()?;
    let start = Instant::now();
    let mut deepest = 0;
    let mut deepest_bytes = 0;
    while start.elapsed() < Duration::from_secs(2) {
        let now = port()?.tiny;
        deepest = deepest.max(now.backlog);
        deepest_bytes = deepest_bytes.max(now.backlog_bytes);
    }
    let after = port()?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = |after: u64, before: u64| (after - before) as f64 * 8.0 / seconds;
    Ok(Flooded {
        deepest,
        deepest_bytes,
        tiny: rate(after.tiny.bytes, before.tiny.bytes),
        default: rate(after.default.bytes, before.default.bytes),
        dropped: after.tiny.dropped - before.tiny.dropped,
    })
}

/// The tiny queue's share of the link.
fn share(flooded: &Flooded) -> f64 {
    flooded.tiny / (flooded.tiny + flooded.default)
}

fn the_queue_never_exceeds_its_limit() -> Result<(), Failed> {
    let mut shares = Vec::new();
    for (weights, expected) in [("1, default = 1", 0.5), ("1, default = 3", 0.25)] {
        let fabric = Fabric::up(&small())?;
        let lines = format!("limit = \"8 packets\"\nweights = {{ tiny = {weights} }}");
        configured(&fabric, &lines)?;
        let flooded = flood(&fabric)?;
        let share = share(&flooded);
        println!(
            "weights {weights}: tiny {:.1} Mb/s of {:.1}, {:.2} of {expected}, at most {} of 8 packets, \
             {} dropped",
            flooded.tiny / 1e6,
            (flooded.tiny + flooded.default) / 1e6,
            share,
            flooded.deepest,
            flooded.dropped
        );
        assert_eq!(flooded.deepest, 8, "full, and never deeper");
        assert!(flooded.dropped > 0);
        assert!((expected - 0.15..expected + 0.15).contains(&share), "{share} of {expected}");
        assert!(flooded.tiny + flooded.default < 22e6, "more than the link carries");
        shares.push(share);
    }
    assert!(shares[1] < shares[0], "{shares:?}");
    Ok(())
}

fn a_limit_in_bytes_holds_too() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    configured(&fabric, "limit = \"10192 bytes\"")?;
    let flooded = flood(&fabric)?;
    // Seven frames of 1,400 bytes and their headers.
    let seven = 7 * (1400 + 8 + 20 + 14);
    assert_eq!((flooded.deepest, flooded.deepest_bytes), (7, seven), "10,094 of 10,192 bytes");
    Ok(())
}

/// The packets that a queue of the port to spine 1 has sent and dropped, and those that wait in it.
#[derive(Clone, Copy, Debug)]
struct Queue {
    bytes: u64,
    dropped: u64,
    waiting: u64,
}

/// The queues with these handles, as `tc` counts them.
fn queues<const N: usize>(fabric: &Fabric, handles: [&str; N]) -> Result<[Queue; N], Failed> {
    let mut tc = fabric.namespace(LEAF)?.command("tc");
    let printed = tc.args(["-s", "-j", "qdisc", "show", "dev", "s1"]).output()?.stdout;
    let all: Vec<serde_json::Value> = serde_json::from_slice(&printed)?;
    Ok(handles.map(|handle| {
        let qdisc = all.iter().find(|qdisc| qdisc["handle"] == handle);
        let of = |key: &str| qdisc.and_then(|qdisc| qdisc[key].as_u64()).unwrap_or(0);
        Queue { bytes: of("bytes"), dropped: of("drops"), waiting: of("qlen") }
    }))
}

/// Three classes and the default queue, all of them with more to send than the port carries: each tiny queue is
/// full and never deeper, the first has nearly all of the share that they have together, and when it has
/// nothing to send, the next one has it.
fn several_dscps_have_strict_order_within_one_share() -> Result<(), Failed> {
    for (silent, weights, expected) in [
        (0, "1, default = 3", 0.25),
        (0, "1, default = 1", 0.5),
        (1, "1, default = 1", 0.5),
        (2, "1, default = 1", 0.5),
    ] {
        let fabric = Fabric::up(&small())?;
        let lines = format!(
            "dscps = [43, 45, 47]\nlimit = \"8 packets\"\nweights = {{ tiny = {weights} }}"
        );
        configured(&fabric, &lines)?;
        let FloodedClasses { deepest, bytes, dropped } = flood_classes(&fabric, silent)?;
        let tiny: u64 = bytes[..3].iter().sum();
        let share = tiny as f64 / (tiny + bytes[3]) as f64;
        let of_tiny: Vec<f64> = bytes[..3].iter().map(|&of| of as f64 / tiny as f64).collect();
        println!(
            "the first {silent} of three classes silent: together {share:.3} of {expected}, of that {:.4}, {:.4}, \
             {:.4}; at most {deepest:?} of 8 packets; dropped {dropped:?}",
            of_tiny[0], of_tiny[1], of_tiny[2]
        );
        assert!((expected - 0.15..expected + 0.15).contains(&share), "{share} of {expected}");
        for class in 0..3 {
            let expected = if class == silent { 0.95..=1.0 } else { 0.0..=0.05 };
            assert!(expected.contains(&of_tiny[class]), "class {class}: {of_tiny:?}");
            let is_full = class >= silent;
            assert_eq!(deepest[class], if is_full { 8 } else { 0 }, "full, and never deeper");
            assert_eq!(dropped[class] > 0, is_full);
        }
    }
    Ok(())
}

/// The measurements of three classes and, last, of the default queue.
struct FloodedClasses {
    deepest: [u64; 3],
    bytes: [u64; 4],
    dropped: [u64; 3],
}

/// Floods all classes but the first few, and the default queue.
fn flood_classes(fabric: &Fabric, silent: usize) -> Result<FloodedClasses, Failed> {
    const DSCPS: [u32; 3] = [43, 45, 47];
    const HANDLES: [&str; 4] = ["11:", "12:", "13:", "21:"];
    let to = fabric.host(3)?;
    let _sink = bound(&to, false, PORT)?;
    let address = (to.path_address(1)?, PORT);
    // Two classes that wait in one queue of their host are sent in turn, so neither is long without packets.
    let senders = [(1, &[43][..]), (1, &[45, 47]), (2, &[0])].map(|(host, dscps)| {
        let host = fabric.host(host)?;
        let is_loud = |dscp: &&u32| !DSCPS[..silent].contains(*dscp);
        let loud = dscps.iter().filter(is_loud).map(|dscp| {
            let socket = bound(&host, false, 0)?;
            mark(&socket, dscp << 2)?;
            Ok(socket)
        });
        loud.collect::<Result<Vec<UdpSocket>, Failed>>()
    });
    let ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        for sockets in senders {
            let sockets = sockets?;
            scope.spawn(move || {
                while !sockets.is_empty() && !ended.load(Ordering::Relaxed) {
                    sockets.iter().for_each(|socket| drop(socket.send_to(&[0; 1400], address)));
                }
            });
        }
        let watched = watch_classes(fabric, HANDLES, silent);
        ended.store(true, Ordering::Relaxed);
        watched
    })
}

fn watch_classes(
    fabric: &Fabric,
    handles: [&str; 4],
    silent: usize,
) -> Result<FloodedClasses, Failed> {
    let start = queues(fabric, handles)?;
    let is_congested =
        |now: &[Queue; 4]| (silent..4).all(|queue| now[queue].dropped > start[queue].dropped);
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_congested(&queues(fabric, handles)?) {
        assert!(Instant::now() < patience, "{:?}", queues(fabric, handles)?);
    }
    let before = queues(fabric, handles)?;
    let begun = Instant::now();
    let mut deepest = [0; 3];
    while begun.elapsed() < Duration::from_secs(2) {
        let now = queues(fabric, handles)?;
        for class in 0..3 {
            deepest[class] = now[class].waiting.max(deepest[class]);
        }
    }
    let after = queues(fabric, handles)?;
    let bytes = core::array::from_fn(|queue| after[queue].bytes - before[queue].bytes);
    let dropped = core::array::from_fn(|queue| after[queue].dropped - before[queue].dropped);
    Ok(FloodedClasses { deepest, bytes, dropped })
}

/// The spines that packets from 64 source ports take.
fn spines(fabric: &Fabric) -> Result<BTreeSet<u16>, Failed> {
    let from = fabric.host(1)?;
    let to = fabric.host(3)?;
    let receiver = bound(&to, false, PORT)?;
    let sent = || -> Result<Vec<u64>, Failed> {
        let port = |spine| Ok(fabric.port(LEAF, Node::Spine(spine))?.tiny.sent);
        (1..=4).map(port).collect()
    };
    let before = sent()?;
    for _ in 0..64 {
        let sender = bound(&from, false, 0)?;
        // The DSCP distinguishes them from packets that the kernel itself sends.
        mark(&sender, DSCP << 2)?;
        sender.send_to(b"hashed", (to.v4(), PORT))?;
        assert_eq!(arrivals(&receiver, 1)?, 1);
    }
    let after = sent()?;
    let counts: Vec<u64> =
        after.iter().zip(&before).map(|(after, before)| after - before).collect();
    println!("64 source ports over four spines: {counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 64);
    Ok((1..=4).filter(|spine| counts[usize::from(*spine) - 1] > 0).collect())
}

fn ecmp_hashes_the_ports() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let rendered = configured(&fabric, "limit = \"8 packets\"")?;
    let set = |setting: &str| -> Result<(), Failed> {
        let status = fabric.namespace(LEAF)?.command("sysctl").args(["-qw", setting]).status()?;
        assert!(status.success(), "{setting}");
        Ok(())
    };
    set("net.ipv4.fib_multipath_hash_policy=0")?;
    assert_eq!(spines(&fabric)?.len(), 1, "by addresses alone there is one way");
    run(&fabric, &rendered, "ecmp.sh")?;
    assert_eq!(spines(&fabric)?, BTreeSet::from([1, 2, 3, 4]));
    Ok(())
}

fn an_explicit_path_takes_its_rendered_route() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    configured(&fabric, "limit = \"8 packets\"")?;
    let from = fabric.host(2)?;
    let to = fabric.host(4)?;
    let receiver = bound(&to, false, PORT)?;
    let sender = bound(&from, false, 0)?;
    let sent =
        |spine| -> Result<u64, Failed> { Ok(fabric.port(LEAF, Node::Spine(spine))?.tiny.sent) };
    mark(&sender, DSCP << 2)?;
    for spine in 1..=4 {
        let before = sent(spine)?;
        for _ in 0..50 {
            sender.send_to(b"this way", (to.path_address(spine)?, PORT))?;
            assert_eq!(arrivals(&receiver, 1)?, 1);
        }
        assert_eq!(sent(spine)? - before, 50, "spine {spine}");
    }
    Ok(())
}

/// Not every kernel has RED.
fn has_red() -> bool {
    let has = || -> Result<bool, Failed> {
        let fabric = Fabric::up(&small())?;
        let red = "qdisc replace dev h1 root red limit 60000 min 15000 max 30000 avpkt 1000 burst 25 \
                   bandwidth 10mbit";
        let mut tc = fabric.namespace(LEAF)?.command("tc");
        let output = tc.args(red.split_whitespace()).output()?;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(!printed.contains("qdisc kind is unknown"))
    };
    // Any other error is left for the test to report.
    let has = has().unwrap_or(true);
    if !has {
        println!("selective dropping: ignored: this kernel has no RED (sch_red)");
    }
    has
}

fn tc_accepts_selective_dropping() -> Result<(), Failed> {
    for dscps in ["", "\ndscps = [43, 45]"] {
        let fabric = Fabric::up(&small())?;
        let lines = format!("limit = \"20 packets\"\naeolus = \"4 packets\"{dscps}");
        run(&fabric, &configured(&fabric, &lines)?, "aeolus.sh")?;
    }
    Ok(())
}

fn the_queues_can_be_set_again() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let rendered = configured(&fabric, "limit = \"8 packets\"")?;
    let queues = || -> Result<String, Failed> {
        let mut tc = fabric.namespace(LEAF)?.command("tc");
        let shown = String::from_utf8(tc.args(["qdisc", "show", "dev", "s1"]).output()?.stdout)?;
        // The counters include packets that the kernel itself sends between two commands.
        let is_count = |words: &&[&str]| words[0] == "direct_packets_stat";
        let words: Vec<&str> = shown.split_whitespace().collect();
        let count = words.windows(2).find(is_count).map(|words| words.join(" "));
        Ok(count.map_or_else(|| shown.clone(), |count| shown.replace(&count, "")))
    };
    let before = queues()?;
    assert!(before.contains("pfifo 11:"), "{before}");
    run(&fabric, &rendered, "qos.sh")?;
    assert_eq!(queues()?, before);
    Ok(())
}

fn the_rollback_removes_what_was_rendered() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let rendered = configured(&fabric, "limit = \"8 packets\"")?;
    run(&fabric, &rendered, "rollback.sh")?;
    let leaf = fabric.namespace(LEAF)?;
    let printed = |tool: &str, args: &[&str]| -> Result<String, Failed> {
        Ok(String::from_utf8(leaf.command(tool).args(args).output()?.stdout)?)
    };
    let qdiscs = printed("tc", &["qdisc", "show"])?;
    assert!(!qdiscs.contains("htb") && !qdiscs.contains("pfifo limit"), "{qdiscs}");
    let to = fabric.host(3)?.path_address(2)?.to_string();
    assert!(!printed("ip", &["route", "show"])?.contains(&to));
    Ok(())
}
