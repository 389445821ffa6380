//! A service, and a client that measures how long its answers take.
//!
//! The service runs in threads of this program and answers with as many bytes as a request asks for;
//! the client sends one request after another, and prints percentiles of the response times. With
//! `--serve`, only the service runs, and with `--call`, only the client, so that they can be on two hosts.
//!
//!     cargo run --release --example request-response
//!     cargo run --release --example request-response -- --serve 10.0.0.2:7000
//!     cargo run --release --example request-response -- --call 10.0.0.2:7000

use cloudburst::{BuildError, Bytes, Endpoint, Security};
use std::env;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// Calls to measure.
const CALLS: usize = 1_000;
/// Bytes of each request, at least 4.
const REQUEST: usize = 1_500;
/// Bytes of each response.
const RESPONSE: u32 = 20_000;
/// Threads of the service, each of which handles one request at a time.
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => print(&run(CALLS, RESPONSE)?),
        ["--serve", address] => serve(address.parse()?)?,
        ["--call", service] => print(&call(service.parse()?, CALLS, RESPONSE)?),
        _ => return Err("usage: request-response [--serve ADDRESS | --call ADDRESS]".into()),
    }
    Ok(())
}

fn endpoint(bind: SocketAddr) -> Result<Endpoint, BuildError> {
    let security = Security::pre_shared([42; 32]); // both ends share this key, and keep it secret
    Endpoint::builder().bind(bind).security(security).build()
}

/// Serves until the program is ended.
fn serve(address: SocketAddr) -> Result<(), BuildError> {
    let service = endpoint(address)?;
    println!("serving at {}", service.local_addr());
    service.blocking_serve(THREADS, |request| answer(&request.bytes));
    Ok(())
}

/// Calls a service in this process.
fn run(calls: usize, response: u32) -> Result<Vec<Duration>, Box<dyn Error>> {
    let service = endpoint(([127, 0, 0, 1], 0).into())?;
    let server = service.clone();
    let serving =
        thread::spawn(move || server.blocking_serve(THREADS, |request| answer(&request.bytes)));
    let took = call(service.local_addr(), calls, response);
    service.blocking_shutdown(Duration::from_secs(1)); // ends the threads
    serving.join().map_err(|_| "the service panicked")?;
    took
}

/// Returns the time that each call took, in ascending order.
fn call(service: SocketAddr, calls: usize, response: u32) -> Result<Vec<Duration>, Box<dyn Error>> {
    let any: IpAddr =
        if service.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let client = endpoint((any, 0).into())?;
    let mut request = response.to_be_bytes().to_vec();
    request.resize(REQUEST, 0);
    let request = Bytes::from(request);
    client.connect(service).wait()?; // the first call need not wait for the handshake
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        let answer = client.call(service, request.clone()).wait()?;
        took.push(start.elapsed());
        if answer.len() != response as usize {
            return Err(format!("got {} bytes, not {response}", answer.len()).into());
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
        assert_eq!(run(20, 93_000).unwrap().len(), 20);
    }

    #[test]
    fn a_request_cannot_make_the_service_allocate_more_than_its_limit() {
        assert_eq!(answer(&[0xff; 4]).len(), 1 << 20);
        assert_eq!(answer(&[1, 2]).len(), 0);
    }
}
