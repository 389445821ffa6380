//! Metrics of an endpoint for Prometheus, over HTTP.
//!
//! Two endpoints send each other messages over loopback; what the first one counts is at
//! `http://127.0.0.1:9464/metrics`. `text` turns an endpoint into Prometheus' text format, and can
//! be taken into a program of your own as it is; `http` is as much of a web server as a scrape
//! needs.
//!
//!     cargo run --release --example metrics-export
//!     curl http://127.0.0.1:9464/metrics

mod http;
#[cfg(test)]
mod tests;
mod text;

use clap::Parser;
use cloudburst_net::{Endpoint, Security, blocking};
use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Sends messages over loopback and serves metrics of the sender.
#[derive(Parser)]
struct Args {
    /// Where to serve /metrics.
    #[arg(long, default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Bytes in each message.
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    /// At most so many messages a second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("metrics-export: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (one, other) = (endpoint()?, endpoint()?);
    let (asking, to, size) = (one.clone(), other.local_addr(), args.size);
    let pause = Duration::from_secs(1) / args.rate.max(1);
    thread::spawn(move || answer(&other));
    thread::spawn(move || {
        loop {
            // What becomes of them is in the metrics.
            let _ = asking.send(to, vec![0; size]);
            let _ = asking.recv_timeout(Duration::from_secs(1));
            thread::sleep(pause);
        }
    });
    let listener = TcpListener::bind(args.listen)?;
    println!("http://{}/metrics", listener.local_addr()?);
    http::serve(&listener, || text::render(one.as_async()))
}

fn endpoint() -> Result<blocking::Endpoint, Box<dyn Error>> {
    let security = Security::pre_shared([42; 32]);
    let builder = Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security);
    Ok(builder.build()?.blocking())
}

/// Sends each message back, until the endpoint is closed.
fn answer(endpoint: &blocking::Endpoint) {
    while let Ok(message) = endpoint.recv() {
        let _ = endpoint.send(message.peer, message.bytes);
    }
}
