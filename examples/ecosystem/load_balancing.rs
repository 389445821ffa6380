//! A client made of `tower` layers: timeout, retry, concurrency limit and load balancing.
//!
//! Three servers answer requests, and one of them begins to shut down meanwhile, as in a rolling
//! restart. It refuses new requests: these were certainly not delivered, so it is safe to send them
//! to another server. A request whose outcome is unknown is not retried, since it might run twice.
//!
//!     cargo run --release --example load-balancing -- --help

use clap::Parser;
use cloudburst::{Bytes, Endpoint, RequestParts, Security, SendError};
use futures_util::stream::{self, StreamExt};
use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PendingRequests};
use tower::retry::Policy;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

const SERVERS: usize = 3;
/// Requests that keep a server busy while it shuts down.
const LONG: &[u8] = b"a long request";

/// Sends requests to three servers, one of which shuts down meanwhile.
#[derive(Parser)]
struct Args {
    /// Requests to send.
    #[arg(long, default_value_t = 1_000)]
    requests: usize,
}

/// The outcome of all requests.
#[derive(Debug)]
struct Total {
    answered: usize,
    retried: usize,
    drained: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(Total { answered, retried, drained }) => {
            println!("{answered} requests answered, {retried} retries, drained: {drained}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("load-balancing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn endpoint() -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
    let security = Security::pre_shared([42; 32]); // all endpoints share this key, and keep it secret
    Ok(Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?)
}

async fn run(args: &Args) -> Result<Total, BoxError> {
    let client = endpoint()?;
    let end_of_long = Arc::new(Notify::new());
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        let server = endpoint()?;
        tokio::spawn(serve(server.clone(), end_of_long.clone()));
        servers.push(server);
    }

    // One server gets a long request, and shuts down while it handles it.
    let leaving = servers[0].clone();
    let address = leaving.local_addr();
    let long = tokio::spawn({
        let client = client.clone();
        async move { client.call(address, LONG).await }
    });
    while leaving.counters().calls.requests_received == 0 {
        tokio::task::yield_now().await;
    }
    let shutdown = tokio::spawn(async move { leaving.shutdown(Duration::from_secs(30)).await });
    while client.call(address, "still there?").await.is_ok() {}

    let retried = Arc::new(AtomicUsize::new(0));
    let services = servers.iter().map(|server| client.client(server.local_addr()));
    let with_load = |service| PendingRequests::new(service, CompleteOnResponse::default());
    let services: Vec<_> = services.map(with_load).collect();
    let service = ServiceBuilder::new()
        .timeout(Duration::from_secs(10))
        .retry(WhereSafe { attempts: 100, retried: retried.clone() })
        .concurrency_limit(32)
        .buffer(32)
        .service(Balance::new(ServiceList::new::<Bytes>(services)));
    let requests = (0..args.requests).map(|number| Bytes::from(format!("request {number}")));
    let mut answers = service.call_all(stream::iter(requests)).unordered();
    let mut answered = 0;
    while let Some(answer) = answers.next().await {
        if answer?.starts_with(b"REQUEST") {
            answered += 1;
        }
    }

    end_of_long.notify_one();
    long.await??;
    Ok(Total { answered, retried: retried.load(Relaxed), drained: shutdown.await? })
}

/// Answers in capital letters, at most 100 requests at a time.
async fn serve(server: Endpoint, end_of_long: Arc<Notify>) -> Result<(), Infallible> {
    let service = service_fn(move |request: RequestParts| {
        let end_of_long = end_of_long.clone();
        async move {
            if request.bytes == LONG {
                end_of_long.notified().await;
            }
            Ok(request.bytes.to_ascii_uppercase())
        }
    });
    server.serve_with(100, service).await
}

/// Retries requests that certainly had no effect.
#[derive(Clone)]
struct WhereSafe {
    attempts: usize,
    retried: Arc<AtomicUsize>,
}

impl Policy<Bytes, Bytes, BoxError> for WhereSafe {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Bytes, result: &mut Result<Bytes, BoxError>) -> Option<Ready<()>> {
        let error = result.as_ref().err()?.downcast_ref::<SendError>()?;
        if error.may_have_been_delivered() || self.attempts == 0 {
            return None;
        }
        self.attempts -= 1;
        self.retried.fetch_add(1, Relaxed);
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Bytes) -> Option<Bytes> {
        Some(request.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_requests_are_answered_while_a_server_leaves() {
        let total = run(&Args { requests: 200 }).await.unwrap();
        assert_eq!((total.answered, total.drained), (200, true));
        assert!(total.retried > 0, "the balancer tries the one that leaves, too");
    }

    #[test]
    fn a_request_that_may_have_been_delivered_is_not_retried() {
        let mut policy = WhereSafe { attempts: 1, retried: Arc::default() };
        let mut retry =
            |error: SendError| policy.retry(&mut Bytes::new(), &mut Err(error.into())).is_some();
        assert!(!retry(SendError::Unanswered) && !retry(SendError::NoResponse));
        assert!(retry(SendError::TooManyCalls { calls: 1 }));
        assert!(!retry(SendError::TooManyCalls { calls: 1 }), "that was the last attempt");
    }
}
