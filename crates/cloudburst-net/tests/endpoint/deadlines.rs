//! Deadlines bound the whole operation, the wait for capacity included.

use crate::common::{TIMEOUT, builder, bytes, endpoint};
use cloudburst_net::{Config, Endpoint, SendError, SendOptions, Sending, Tuning};
use futures_util::{FutureExt, SinkExt};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(50);

/// An endpoint whose capacity is taken by one message to nobody, until its deadline.
struct Full {
    endpoint: Endpoint,
    _occupant: Sending,
    _nobody: UdpSocket,
}

impl Full {
    fn with(config: Config, deadline: Duration) -> Self {
        let endpoint = builder().config(config).build().unwrap();
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = nobody.local_addr().unwrap();
        let occupant = endpoint.send(to, bytes(25_000, 1)).deadline(deadline).begin().unwrap();
        Self { endpoint, _occupant: occupant, _nobody: nobody }
    }
}

fn of_one_message() -> Config {
    Config { tuning: Tuning { send_messages: Some(1), ..Tuning::default() }, ..Config::default() }
}

fn of_few_bytes() -> Config {
    Config { tuning: Tuning { send_bytes: Some(30_000), ..Tuning::default() }, ..Config::default() }
}

#[test]
fn an_operation_without_capacity_by_its_deadline_was_not_delivered() {
    for config in [of_one_message(), of_few_bytes()] {
        let full = Full::with(config.clone(), TIMEOUT);
        let this = &full.endpoint;
        let other = endpoint();
        let to = other.local_addr();
        let start = Instant::now();
        // This runtime has neither timers nor I/O that anything could wait by.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = SendOptions::default().deadline(SOON);
        let at = start + 4 * SOON;
        let mut results = runtime.block_on(async {
            let mut sink = this.sink(to).options(options);
            sink.feed(bytes(10_000, 2).into()).await.unwrap();
            vec![
                this.send(to, bytes(10_000, 2)).deadline(SOON).await.map(drop),
                this.send(to, bytes(10_000, 2)).deadline_at(at).await.map(drop),
                this.call(to, bytes(10_000, 2)).deadline(SOON).await.map(drop),
                sink.flush().await,
            ]
        });
        results.push(this.send(to, bytes(10_000, 2)).options(options).wait().map(drop));
        results.push(this.call(to, bytes(10_000, 2)).options(options).wait().map(drop));
        if config.limits().send_messages == 1 {
            results.push(runtime.block_on(this.connect(to).deadline(SOON)));
            results.push(runtime.block_on(this.connect(to).deadline_at(Instant::now())));
            results.push(this.connect(to).deadline_at(Instant::now() + SOON).wait());
        }
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error, SendError::NotStarted);
            assert!(error.is_timeout() && !error.may_have_been_delivered());
        }
        assert!(start.elapsed() < TIMEOUT / 2, "not when there was capacity");
    }
}

#[test]
fn a_call_behind_another_ends_at_its_deadline() {
    let client = builder().config(of_one_message()).build().unwrap();
    let server = endpoint();
    let to = server.local_addr();
    let calls = client.call_many([(to, "slow")]).deadline(TIMEOUT).begin();
    let start = Instant::now();
    let late = client.call(to, "fast").options(SendOptions::default().deadline(SOON)).wait();
    assert_eq!(late, Err(SendError::NotStarted));
    assert!((SOON..TIMEOUT / 2).contains(&start.elapsed()));
    drop(calls);
}

/// Calls while there is no capacity for about `wait`, and checks how long the callee believes to have.
fn call_that_waits(client: &Endpoint, wait: Duration) {
    const DEADLINE: Duration = Duration::from_secs(60);
    let client = client.clone();
    let server = endpoint();
    let start = Instant::now();
    let to = server.local_addr();
    let caller = thread::spawn(move || client.call(to, bytes(10_000, 2)).deadline(DEADLINE).wait());
    let Some(Ok(request)) = server.recv_request().wait_for(TIMEOUT) else {
        panic!("no request: {:?}", caller.join());
    };
    assert!(start.elapsed() >= wait / 2, "there was no capacity");
    assert!(request.deadline() < start + DEADLINE + wait / 2, "the wait is part of the call");
    request.accept().wait().unwrap();
    assert_eq!(caller.join().unwrap().unwrap(), "");
}

#[test]
fn a_call_that_waited_for_capacity_has_the_rest_of_its_deadline() {
    const WAIT: Duration = Duration::from_secs(1);
    for config in [of_one_message(), of_few_bytes()] {
        call_that_waits(&Full::with(config, WAIT).endpoint, WAIT);
    }
    let client = builder().config(of_one_message()).build().unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let requests = [(nobody.local_addr().unwrap(), "first")];
    let first = client.call_many(requests).deadline(WAIT).begin();
    let caller = client.clone();
    let first = thread::spawn(move || caller.block_on(first.results()));
    call_that_waits(&client, WAIT);
    assert!(first.join().unwrap()[0].is_err());
}

#[test]
fn a_reply_without_capacity_ends_at_its_deadline() {
    let full = Full::with(of_one_message(), TIMEOUT);
    let client = endpoint();
    let server = full.endpoint.clone();
    let to = server.local_addr();
    let caller = thread::spawn(move || client.call(to, "a request").deadline(6 * SOON).wait());
    let start = Instant::now();
    let request = server.recv_request().wait().unwrap();
    let replied = request.reply("an answer").deadline(SOON).wait();
    assert_eq!(replied, Err(SendError::NotStarted));
    assert!(start.elapsed() < TIMEOUT / 2);
    assert!(caller.join().unwrap().unwrap_err().may_have_been_delivered());
}

#[tokio::test]
async fn a_message_begun_after_its_deadline_is_not_sent() {
    let client = endpoint();
    let server = endpoint();
    let past = Instant::now();
    let begun = client.send(server.local_addr(), "late").deadline_at(past).begin().unwrap();
    assert_eq!(begun.now_or_never(), Some(Err(SendError::NotStarted)));
    let at = past + TIMEOUT;
    client.send(server.local_addr(), "in time").deadline_at(at).await.unwrap();
    let results = client.call_many([(server.local_addr(), "late")]).deadline_at(past).begin();
    assert_eq!(results.results().await, [Err(SendError::NotStarted)]);
}

#[test]
fn a_call_that_waited_for_capacity_waits_for_its_response_until_its_deadline() {
    let full = Full::with(of_one_message(), SOON / 2);
    let silent = endpoint();
    let start = Instant::now();
    let caller = full.endpoint.clone();
    let call = thread::spawn({
        let to = silent.local_addr();
        move || caller.call(to, "a request").deadline(32 * SOON).wait().map(drop)
    });
    let _unanswered = silent.recv_request().wait().unwrap();
    assert_eq!(call.join().unwrap(), Err(SendError::NoResponse));
    assert!(start.elapsed() >= 32 * SOON, "{:?}", start.elapsed());
}
