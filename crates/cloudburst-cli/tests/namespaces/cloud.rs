//! The limits of clouds, scaled down: a cap of each flow, and a cap of the packets of a host.

use crate::shared::{Transfer, passed, rate_of, tcp};
use cloudburst_testbed::Star;
use libtest_mimic::Failed;
use socket2::Protocol;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(4);
const CLOUD: [&str; 2] = ["--fabric", "cloud"];

/// Drops what exceeds 10 Mb/s of a flow, by addresses, protocol and ports.
const OF_A_FLOW: &str = "table inet cloud { \
    set flows { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; \
        flags dynamic; size 4096; }; \
    chain forward { type filter hook forward priority 0; \
        update @flows { ip saddr . ip daddr . meta l4proto . th sport . th dport \
            limit rate over 1250 kbytes/second burst 64 kbytes } counter drop; }; }";
/// Drops what exceeds 4,000 packets a second from the first host.
const OF_A_HOST: &str = "table inet cloud { chain forward { type filter hook forward priority 0; \
    ip saddr 10.9.1.0/24 limit rate over 4000/second burst 100 packets counter drop; }; }";

/// Two hosts of a cloud whose links carry 100 Mb/s, and whose router limits as `rules` say.
fn cloud(rules: &str) -> Result<Star, Failed> {
    let star = Star::up(2)?;
    for host in &star.hosts {
        host.command("ip", "route replace default via 10.9.0.1 dev wire onlink congctl cubic")?;
        host.command("ip", "mptcp limits set subflow 3 add_addr_accepted 3")?;
    }
    for number in 3..6 {
        let address = Star::address(1, number);
        star.hosts[0].command("ip", &format!("address add {address}/32 dev wire"))?;
        star.hosts[0].command("ip", &format!("mptcp endpoint add {address} dev wire subflow"))?;
    }
    let port = Star::port(2);
    for command in [
        "qdisc add dev PORT root handle 1: htb default 1",
        "class add dev PORT parent 1: classid 1:1 htb rate 100mbit burst 8k cburst 8k quantum 1600",
        "qdisc add dev PORT parent 1:1 pfifo limit 200",
    ] {
        star.router.command("tc", &command.replace("PORT", &port))?;
    }
    star.router.command("nft", rules)?;
    Ok(star)
}

/// Megabits per second on the wire.
fn on_wire(star: &Star) -> Result<f64, Failed> {
    let (before, _) = passed(star)?;
    thread::sleep(TIME);
    let (after, _) = passed(star)?;
    Ok((after - before) as f64 * 8e-6 / TIME.as_secs_f64())
}

/// What each transport has alone, in megabits per second: TCP, MPTCP of four subflows, and `cbrst-send`.
fn alone(rules: &str) -> Result<[f64; 3], Failed> {
    let mut rates = [0.0; 3];
    for (rate, protocol) in rates.iter_mut().zip([Protocol::TCP, Protocol::MPTCP]) {
        let star = cloud(rules)?;
        let _flow = tcp(&star, 5000, protocol)?;
        thread::sleep(WARM_UP);
        *rate = on_wire(&star)?;
    }
    let star = cloud(rules)?;
    let _transfer = Transfer::start(&star, &[], &CLOUD)?;
    thread::sleep(WARM_UP);
    rates[2] = on_wire(&star)?;
    Ok(rates)
}

/// What a TCP flow has beside another one, and beside `cbrst-send`.
fn beside(rules: &str) -> Result<[f64; 2], Failed> {
    let mut rates = [0.0; 2];
    for (with_transfer, rate) in rates.iter_mut().enumerate() {
        let star = cloud(rules)?;
        let flow = tcp(&star, 5000, Protocol::TCP)?;
        let _other = if with_transfer == 0 { Some(tcp(&star, 5001, Protocol::TCP)?) } else { None };
        let _transfer =
            if with_transfer == 1 { Some(Transfer::start(&star, &[], &CLOUD)?) } else { None };
        thread::sleep(WARM_UP);
        *rate = rate_of(|| flow.load(Ordering::Relaxed), TIME) / 1e6;
    }
    Ok(rates)
}

/// What the transports have under a limit: a row of the table.
struct Row {
    alone: [f64; 3],
    beside: [f64; 2],
}

fn row(name: &str, rules: &str) -> Result<Row, Failed> {
    let row = Row { alone: alone(rules)?, beside: beside(rules)? };
    let numbers: Vec<String> =
        row.alone.iter().chain(&row.beside).map(|rate| format!("{rate:.1}")).collect();
    println!("| {name} | {} |", numbers.join(" | "));
    Ok(row)
}

pub(crate) fn tcp_keeps_its_share_of_capped_flows_and_some_of_capped_packets() -> Result<(), Failed>
{
    println!(
        "| limit | TCP alone | MPTCP alone | `cbrst-send` alone | TCP beside TCP | TCP beside `cbrst-send` |"
    );
    println!("|---|---|---|---|---|---|");
    let of_a_flow = row("10 Mb/s of each flow", OF_A_FLOW)?;
    let of_a_host = row("4,000 packets/s of the host", OF_A_HOST)?;

    let [tcp, _, send] = of_a_flow.alone;
    assert!(send > 4.0 * tcp, "several ports have little more than one flow");
    let [beside_tcp, beside_send] = of_a_flow.beside;
    assert!(beside_send > 0.8 * beside_tcp, "a TCP flow does not keep its share");

    let [tcp, _, send] = of_a_host.alone;
    assert!(send > 1.5 * tcp, "what drops packets stops it as it stops one TCP flow");
    // This limit drops packets instead of queueing them, which slows TCP down more.
    let [beside_tcp, beside_send] = of_a_host.beside;
    assert!(beside_send > 0.04 * beside_tcp, "a TCP flow is left with nothing");
    Ok(())
}
