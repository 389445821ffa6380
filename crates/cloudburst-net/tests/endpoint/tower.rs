//! `tower` services: calls beyond the limit wait in line, and errors are reported.

use crate::common::{TIMEOUT, builder, endpoint};
use cloudburst_net::{Bytes, Config, Overloaded, RequestParts, SendError, Tuning};
use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, load_shed, service_fn};

/// Waits until a condition holds, while the other tasks go on.
async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.expect("it happens soon");
}

fn is_ready(service: &mut impl Service<Bytes>) -> bool {
    service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn a_client_is_ready_until_its_endpoint_closes_and_its_calls_wait() {
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let caller = builder().config(config).build().unwrap();
    let callee = endpoint();
    let mut one = caller.client(callee.local_addr());
    let mut two = one.clone();
    let calls = [one.call("a request".into()), two.call("another".into())];
    let [first, second] = calls.map(tokio::spawn);
    let request = callee.recv_request().await.unwrap();
    assert!(is_ready(&mut one) && is_ready(&mut two), "whatever waits");
    assert!(callee.try_recv_request().unwrap().is_none(), "one is in flight");
    request.reply("an answer").await.unwrap();
    assert_eq!(first.await.unwrap().unwrap(), "an answer");
    let serving = tokio::spawn(async move { callee.serve(1, async |it| it.bytes).await });
    assert_eq!(second.await.unwrap().unwrap(), "another");

    // A layer makes it ready for fewer.
    let mut limited = ServiceBuilder::new().concurrency_limit(1).service(one);
    let call = limited.ready().await.unwrap().call("a request".into());
    assert!(!is_ready(&mut limited));
    assert_eq!(call.await.unwrap(), "a request");
    caller.shutdown(Duration::ZERO).await;
    assert_eq!(two.ready().await.map(drop), Err(SendError::Closing));
    serving.abort();
}

#[tokio::test]
async fn a_service_that_fails_leaves_only_its_own_callers_unanswered() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = service_fn(async |request: RequestParts| match &request.bytes[..] {
        b"nonsense" => Err("that is nonsense"),
        b"panic" => panic!("the handler panics"),
        _ => Ok(request.bytes),
    });
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve_with(8, service).await }
    });
    assert_eq!(client.call(to, "nonsense").await, Err(SendError::Unanswered));
    assert_eq!(client.call(to, "panic").await, Err(SendError::Unanswered));
    assert_eq!(client.call(to, "hello").await.unwrap(), "hello");
    assert!(server.shutdown(Duration::from_secs(20)).await);
    assert_eq!(serving.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn callers_of_a_service_that_sheds_load_may_call_again() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let overloaded = |error: BoxError| {
        if error.is::<load_shed::error::Overloaded>() { Overloaded.into() } else { error }
    };
    let service =
        ServiceBuilder::new().map_err(overloaded).load_shed().concurrency_limit(1).service(
            service_fn(async |_: RequestParts| pending::<Result<Bytes, Infallible>>().await),
        );
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve_with(8, service).await }
    });
    let mut calls = client.call_many([(to, "one"), (to, "two"), (to, "three")]).begin();
    for _ in 0..2 {
        assert_eq!(calls.next().await.unwrap().result, Err(SendError::Overloaded));
    }
    assert_eq!(server.counters().calls.requests_overloaded, 2);
    drop(calls);
    assert!(server.shutdown(TIMEOUT).await);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn stacks_of_closures_serve_and_call_in_tasks() {
    let client = endpoint();
    let server = endpoint();
    let greeting = String::from("hello, ");
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let service = ServiceBuilder::new()
        .map_err(|error: BoxError| -> BoxError { error.to_string().into() })
        .map_request(move |request: RequestParts| {
            counted.fetch_add(1, SeqCst);
            request.bytes
        })
        .map_response(move |name: Bytes| [greeting.as_bytes(), &name].concat())
        .load_shed()
        .service(service_fn(async |name: Bytes| Ok::<_, Infallible>(name)));
    let serving = tokio::spawn(server.serve_with(8, service));
    let suffix = String::from("!");
    let stack = ServiceBuilder::new()
        .map_request(move |name: &'static str| Bytes::from([name, &suffix].concat()))
        .map_err(|error: SendError| error.to_string())
        .service(client.client(server.local_addr()));
    let answer = tokio::spawn(stack.oneshot("world")).await.unwrap();
    assert_eq!(answer.unwrap(), "hello, world!");
    assert_eq!(count.load(SeqCst), 1);
    assert!(server.shutdown(TIMEOUT).await);
    serving.await.unwrap().unwrap();
}

/// Is ready for as many requests as it is told, and broken after the last.
struct Gate(Arc<AtomicU64>);

const BROKEN: u64 = u64::MAX;

impl Service<RequestParts> for Gate {
    type Response = Bytes;
    type Error = &'static str;
    type Future = Ready<Result<Bytes, &'static str>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        match self.0.load(SeqCst) {
            0 => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            BROKEN => Poll::Ready(Err("broken")),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: RequestParts) -> Self::Future {
        self.0.fetch_sub(1, SeqCst);
        ready(Ok(request.bytes))
    }
}

#[tokio::test]
async fn a_service_that_is_not_ready_takes_only_one_request() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gate = Arc::new(AtomicU64::new(0));
    let serving = tokio::spawn({
        let server = server.clone();
        let gate = Gate(gate.clone());
        async move { server.serve_with(8, gate).await }
    });
    let mut calls = client.call_many([(to, "one"), (to, "two"), (to, "three")]).begin();
    let received = || server.counters().calls.requests_received;
    until(|| received() == 1).await;
    gate.store(3, SeqCst);
    for _ in 0..3 {
        assert!(calls.next().await.unwrap().result.is_ok());
    }
    assert_eq!(gate.load(SeqCst), 0);

    let caller = client.clone();
    let left = tokio::spawn(async move { caller.call(to, "a caller that leaves").await });
    until(|| received() == 4 && client.counters().sender.delivered >= 4).await;
    left.abort();
    let stuck = tokio::spawn(async move { client.call(to, "a caller that stays").await });
    until(|| received() == 5).await;
    assert_eq!(server.counters().calls.requests_withdrawn, 1);
    gate.store(BROKEN, SeqCst);
    assert_eq!(serving.await.unwrap(), Err("broken"));
    assert_eq!(stuck.await.unwrap(), Err(SendError::Unanswered));
}

#[tokio::test]
async fn a_service_that_is_never_ready_ends_with_its_endpoint() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let serving = tokio::spawn({
        let server = server.clone();
        let gate = Gate(Arc::default());
        async move { server.serve_with(8, gate).await }
    });
    let stuck = tokio::spawn(async move { client.call(to, "a request").await });
    until(|| server.counters().calls.requests_received == 1).await;
    assert!(!server.shutdown(Duration::ZERO).await, "a request was under way");
    assert_eq!(serving.await.unwrap(), Ok(()));
    assert_eq!(stuck.await.unwrap(), Err(SendError::Unanswered));
}
