//! A service, and a client that measures how long its answers take.
//!
//! The service runs in threads of this program and answers with as many bytes as a request asks for;
//! the client sends one request after another, and prints percentiles of the response times. With
//! `--serve`, only the service runs, and with `--call`, only the client, so that they can be on two hosts.
//!
//!     cargo run --release --example request-response -- --help
//!     cargo run --release --example request-response -- --serve 10.0.0.2:7000
//!     cargo run --release --example request-response -- --call 10.0.0.2:7000

use clap::Parser;
use cloudburst::blocking::Endpoint;
use cloudburst::{BuildError, Bytes, Endpoint as Async, Security};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Calls a service, by default one on this machine, and prints how long the responses took.
#[derive(Parser)]
struct Args {
    /// Calls to measure.
    #[arg(long, default_value_t = 1000)]
    calls: usize,
    /// Bytes of each request, at least 4.
    #[arg(long, default_value_t = 1500)]
    request: usize,
    /// Bytes of each response.
    #[arg(long, default_value_t = 20_000)]
    response: u32,
    /// Threads of the service, each of which handles one request at a time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Only serve, at this address, until the program is ended.
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
    /// Only call the service at this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "serve")]
    call: Option<SocketAddr>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (args.serve, args.call) {
        (Some(address), _) => serve(address, args.threads),
        (None, Some(service)) => call(service, &args).map(|took| print(&took)),
        (None, None) => run(&args).map(|took| print(&took)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("request-response: {error}");
            ExitCode::FAILURE
        }
    }
}

fn endpoint(bind: SocketAddr) -> Result<Endpoint, BuildError> {
    let security = Security::pre_shared([42; 32]); // both ends share this key, and keep it secret
    Ok(Async::builder().bind(bind).security(security).build()?.blocking())
}

fn serve(address: SocketAddr, threads: usize) -> Result<(), Box<dyn Error>> {
    let service = endpoint(address)?;
    println!("serving at {}", service.local_addr());
    service.serve(threads, |request| answer(&request.bytes));
    Ok(())
}

/// Calls a service in this process.
fn run(args: &Args) -> Result<Vec<Duration>, Box<dyn Error>> {
    let service = endpoint(([127, 0, 0, 1], 0).into())?;
    let (server, threads) = (service.clone(), args.threads);
    let serving = thread::spawn(move || server.serve(threads, |request| answer(&request.bytes)));
    let took = call(service.local_addr(), args);
    service.shutdown(Duration::from_secs(1)); // ends the threads
    serving.join().map_err(|_| "the service panicked")?;
    took
}

/// Returns the time that each call took, in ascending order.
fn call(service: SocketAddr, args: &Args) -> Result<Vec<Duration>, Box<dyn Error>> {
    let any: IpAddr =
        if service.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let client = endpoint((any, 0).into())?;
    let mut request = args.response.to_be_bytes().to_vec();
    request.resize(args.request.max(4), 0);
    let request = Bytes::from(request);
    client.connect(service)?; // the first call need not wait for the handshake
    let mut took = Vec::with_capacity(args.calls);
    for _ in 0..args.calls {
        let start = Instant::now();
        let response = client.call(service, request.clone())?;
        took.push(start.elapsed());
        if response.len() != args.response as usize {
            return Err(format!("got {} bytes, not {}", response.len(), args.response).into());
        }
    }
    took.sort();
    Ok(took)
}

/// Returns as many bytes as the first four bytes of the request say.
fn answer(request: &[u8]) -> Vec<u8> {
    const LONGEST: u32 = 1 << 20;
    let asked = request.first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
    vec![0; asked.min(LONGEST) as usize]
}

fn print(took: &[Duration]) {
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let at = (took.len() as f64 * share).ceil() as usize;
        if let Some(time) = took.get(at.saturating_sub(1)) {
            println!("{name} {:>9.1} us", time.as_secs_f64() * 1e6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_answered_in_full() {
        let args =
            Args { calls: 20, request: 100, response: 93_000, threads: 2, serve: None, call: None };
        assert_eq!(run(&args).unwrap().len(), 20);
    }

    #[test]
    fn nobody_makes_the_service_allocate_what_it_likes() {
        assert_eq!(answer(&[0xff; 4]).len(), 1 << 20);
        assert_eq!(answer(&[1, 2]).len(), 0);
    }
}
