//! Sends real messages over loopback sockets, through paths that lose packets.
//!
//! There is a receiver, a sender with one socket for each path, and between them a relay that gives
//! each path an emulated link. One path is perfect, two lose packets, one is a black hole. Every
//! message arrives nevertheless; its receipt states the cost.
//!
//!     cargo run --release --example lossy-paths -- --help

use clap::Parser;
use cloudburst::{Code, Endpoint, PathMap, Receipt, Security, SendError};
use cloudburst_netem::{LinkConfig, Loss, Relay};
use std::error::Error;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::time::Duration;

/// Sends messages over lossy loopback paths and prints each receipt.
#[derive(Parser)]
struct Args {
    /// Loss of each path, in percent, both ways; 100 is a black hole.
    #[arg(long, value_delimiter = ',', default_value = "0,5,20,100")]
    loss: Vec<f64>,
    /// Sizes of the messages, in bytes; the default is the paper's.
    #[arg(long, value_delimiter = ',', default_value = "1500,5000,10000,20000,50000,93000")]
    sizes: Vec<usize>,
    /// How often to send each size.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// The code: rlf256, lt, lt:robust, lt-systematic, ...
    #[arg(long, default_value = "rlf256")]
    code: Code,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lossy-paths: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let paths = u16::try_from(args.loss.len())?;
    let security = Security::pre_shared([42; 32]);
    let front = UdpSocket::bind("127.0.0.1:0")?;
    let receiver = Endpoint::builder()
        .bind("127.0.0.1:0".parse()?)
        // The relay translates addresses: the sender knows the receiver by this one.
        .known_as([front.local_addr()?])
        .security(security.clone())
        .capacity(1_000_000_000)
        .build()?;
    let links = args.loss.iter().map(|percent| (link(*percent), link(*percent))).collect();
    let relay = Relay::start_at(front, receiver.local_addr(), links, 1)?;
    let sender = Endpoint::builder()
        .bind("127.0.0.1:0".parse()?)
        .paths(PathMap::ecmp(paths))
        .security(security)
        .capacity(1_000_000_000)
        .build()?;

    // The relay numbers clients in the order of their first packets; this message uses all paths.
    sender.send(relay.addr(), vec![0; 1000 * args.loss.len() * 2]).code(args.code).await?;
    receiver.recv().await?;
    let loss_of = |path| relay.path_of(path).map_or("?".into(), |at| args.loss[at].to_string());
    let losses: Vec<String> =
        sender.local_addrs()[..usize::from(paths)].iter().copied().map(loss_of).collect();
    println!("loss by path, both ways: {} %", losses.join(" "));
    println!("    bytes   n  packets  sent/n  arrived by path       time to STOP");
    let mut failed = 0;
    for size in args.sizes.iter().flat_map(|size| std::iter::repeat_n(*size, args.repeat)) {
        let sent: Vec<u8> = (0..size).map(|i| (i * 31) as u8).collect();
        let outcome = sender.send(relay.addr(), sent.clone()).code(args.code).await;
        match outcome {
            Ok(receipt) => {
                let message = receiver.recv().await?;
                assert_eq!(message.bytes, sent, "a message is delivered byte for byte");
                print(&receipt, paths);
            }
            Err(error) => {
                failed += 1;
                report(size, &error);
            }
        }
    }
    sender.shutdown(Duration::from_secs(1)).await;
    receiver.shutdown(Duration::from_secs(1)).await;
    if failed > 0 {
        return Err(format!("{failed} messages were not delivered").into());
    }
    println!("every message was delivered once, byte for byte");
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
        (0..paths).map(|path| receipt.arrived_on(cloudburst::PathId(path)).to_string()).collect();
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

fn report(size: usize, error: &SendError) {
    println!("{size:>9}  {error}");
}
