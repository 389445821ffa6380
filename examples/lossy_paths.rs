//! Sends real messages over loopback sockets, through paths that lose packets.
//!
//! There is a receiver, a sender with one socket for each path, and between them a relay that gives
//! each path an emulated link. One path is perfect, two lose packets, one is a black hole. Every
//! message arrives nevertheless; its receipt states the cost. Arguments set the loss of each path, in
//! percent, both ways:
//!
//!     cargo run --release --example lossy-paths
//!     cargo run --release --example lossy-paths 0 10 30 50 100

use cloudburst::{Config, Endpoint, PathId, PathMap, Receipt, Security};
use cloudburst_netem::{LinkConfig, Loss, Relay};
use std::env;
use std::error::Error;
use std::net::UdpSocket;
use std::time::Duration;

/// Loss of each path, in percent, without arguments.
const LOSS: [f64; 4] = [0.0, 5.0, 20.0, 100.0];
/// Bytes of the messages: the sizes of the paper's evaluation.
const SIZES: [usize; 6] = [1_500, 5_000, 10_000, 20_000, 50_000, 93_000];
/// Messages of each size.
const REPEAT: usize = 3;
/// Rate up to which the endpoints send, in bits per second.
const CAPACITY: u64 = 1_000_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut loss = Vec::new();
    for argument in env::args().skip(1) {
        loss.push(argument.parse()?);
    }
    if loss.is_empty() {
        loss.extend(LOSS);
    }
    run(&loss).await
}

async fn run(loss: &[f64]) -> Result<(), Box<dyn Error>> {
    let paths = u16::try_from(loss.len())?;
    let security = Security::pre_shared([42; 32]); // both ends share this key, and keep it secret
    let front = UdpSocket::bind("127.0.0.1:0")?;
    let receiver = Endpoint::builder()
        .bind("127.0.0.1:0".parse()?)
        // The relay translates addresses: the sender knows the receiver by this one.
        .known_as([front.local_addr()?])
        .security(security.clone())
        .config(Config { capacity: CAPACITY.into(), ..Config::default() })
        .build()?;
    let links = loss.iter().map(|percent| (link(*percent), link(*percent))).collect();
    let relay = Relay::start_at(front, receiver.local_addr(), links, 1)?;
    let sender = Endpoint::builder()
        .bind("127.0.0.1:0".parse()?)
        .paths(PathMap::ecmp(paths))
        .security(security)
        .config(Config { capacity: CAPACITY.into(), ..Config::default() })
        .build()?;

    // The relay numbers clients in the order of their first packets; this message uses all paths.
    sender.send(relay.addr(), vec![0; 2_000 * loss.len()]).await?;
    receiver.recv().await?;
    print!("loss by path, both ways:");
    for address in &sender.local_addrs()[..loss.len()] {
        match relay.path_of(*address) {
            Some(path) => print!(" {} %", loss[path]),
            None => print!(" ?"),
        }
    }
    println!("\n    bytes   n  packets  sent/n  arrived by path       time to STOP");

    for size in SIZES {
        let bytes: Vec<u8> = (0..size).map(|i| (i * 31) as u8).collect();
        for _ in 0..REPEAT {
            let receipt = sender.send(relay.addr(), bytes.clone()).await?;
            let message = receiver.recv().await?;
            assert_eq!(message.bytes, bytes, "a message is delivered byte for byte");
            print(&receipt, paths);
        }
    }
    println!("every message was delivered once, byte for byte");
    sender.shutdown(Duration::from_secs(1)).await;
    receiver.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

fn link(percent: f64) -> LinkConfig {
    LinkConfig {
        loss: Loss::Independent(percent / 100.0),
        delay: Duration::from_micros(100),
        ..LinkConfig::default()
    }
}

fn print(receipt: &Receipt, paths: u16) {
    let arrived: Vec<String> =
        (0..paths).map(|path| receipt.arrived_on(PathId(path)).to_string()).collect();
    println!(
        "{:>9} {:>3} {:>8} {:>7.2}  {:<20} {:>9.2} ms",
        receipt.bytes,
        receipt.source_symbols,
        receipt.packets,
        receipt.redundancy(),
        arrived.join(" "),
        receipt.completed_in.as_secs_f64() * 1e3,
    );
}
