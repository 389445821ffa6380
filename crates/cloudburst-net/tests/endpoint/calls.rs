//! Each request gets its own response, or an error that says why there is none.

use crate::common::{TIMEOUT, behind_relay, builder, bytes, endpoint, eventually, log::Log};
use cloudburst_net::{Config, RequestParts, Role, SendError, SendOptions, Tuning};
use cloudburst_netem::{LinkConfig, Loss};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;
use tracing::Level;

fn within(deadline: Duration) -> SendOptions {
    SendOptions::default().deadline(deadline)
}

#[test]
fn blocking_calls_of_all_sizes_are_answered() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    let thread = thread::spawn(move || service.blocking_serve(1, |request| request.bytes));
    for len in [0, 1, 1_500, 93_000, 3_000_000] {
        let request = bytes(len, len as u64);
        assert!(client.call(to, request.clone()).wait().unwrap() == request, "{len} bytes changed");
    }
    server.blocking_shutdown(Duration::ZERO);
    thread.join().unwrap();
    assert_eq!(client.counters().calls.responses_received, 5);
    assert_eq!(server.counters().calls.requests_received, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_calls_gets_its_own_response_over_lossy_paths() {
    const CALLS: u64 = 300;
    let client = endpoint();
    let lossy = LinkConfig { loss: Loss::Independent(0.1), ..LinkConfig::default() };
    let links = vec![(lossy.clone(), lossy.clone()); 4];
    let (server, relay) = behind_relay(builder(), links, 7);
    let to = relay.addr();
    for _ in 0..3 {
        let server = server.clone();
        tokio::spawn(async move {
            let answer = |request: RequestParts| async move {
                let seed = u64::from_be_bytes(request.bytes[..8].try_into().unwrap());
                bytes(seed as usize * 40, seed)
            };
            server.serve(10, answer).await;
        });
    }
    let calls: Vec<_> = (0..CALLS)
        .map(|seed| {
            let client = client.clone();
            tokio::spawn(async move { (seed, client.call(to, seed.to_be_bytes().to_vec()).await) })
        })
        .collect();
    for call in calls {
        let (seed, response) = call.await.unwrap();
        assert!(response.unwrap() == bytes(seed as usize * 40, seed), "that is another's");
    }
    assert_eq!(client.counters().calls.responses_received, CALLS);
    assert_eq!(client.try_recv(), Ok(None));
}

#[tokio::test]
async fn calls_and_plain_messages_share_an_endpoint_and_do_not_mix() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let call = client.call(to, "request");
    let serving = async {
        let request = server.recv_request().await.unwrap();
        assert_eq!((request.peer(), &request.bytes()[..]), (client.local_addr(), &b"request"[..]));
        // Plain messages both ways while the call waits, one of them as a request would look.
        client.send(to, vec![0; 40]).await.unwrap();
        let plain = server.recv().await.unwrap();
        assert_eq!((plain.role, plain.bytes.len()), (Role::Plain, 40));
        server.send(plain.peer, vec![0; 9]).await.unwrap();
        request.reply("response").await.unwrap();
    };
    let (response, ()) = tokio::join!(call, serving);
    assert_eq!(response.unwrap(), "response");
    assert_eq!(client.recv().await.unwrap().bytes, vec![0; 9]);
    assert!(server.try_recv_request().unwrap().is_none() && server.try_recv() == Ok(None));
}

#[test]
fn an_application_that_never_receives_can_still_call() {
    let config = Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let server = endpoint();
    let here = client.local_addr();
    let stuck: Vec<_> = (0..3).map(|n| server.send(here, bytes(100, n)).begin().unwrap()).collect();
    eventually("its queue is full", || server.counters().sender.busy_received > 0);
    let service = server.clone();
    thread::spawn(move || service.blocking_serve(1, |request| request.bytes));
    assert_eq!(client.call(server.local_addr(), "request").wait().unwrap(), "request");
    drop(stuck);
}

#[test]
fn a_caller_learns_at_once_that_its_request_was_dropped() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let dropping = server.clone();
    let thread = thread::spawn(move || drop(dropping.recv_request().wait().unwrap()));
    assert_eq!(client.call(to, "request").wait(), Err(SendError::Unanswered));
    thread.join().unwrap();
    assert_eq!(server.counters().calls.requests_unanswered, 1);
}

#[tokio::test]
async fn a_handler_that_panics_stops_nothing_else() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    tokio::spawn(async move {
        let answer = |request: RequestParts| {
            assert!(request.bytes != "panic at once", "as asked");
            async move {
                tokio::task::yield_now().await;
                assert!(request.bytes != "panic later", "as asked");
                request.bytes
            }
        };
        service.serve(1, answer).await;
    });
    assert_eq!(client.call(to, "panic at once").await, Err(SendError::Unanswered));
    assert_eq!(client.call(to, "panic later").await, Err(SendError::Unanswered));
    assert_eq!(client.call(to, "answer").await.unwrap(), "answer");
    assert_eq!(server.counters().calls.handlers_panicked, 2);
}

#[test]
fn a_blocking_handler_that_panics_stops_nothing_else() {
    let client = endpoint();
    let server = endpoint();
    let service = server.clone();
    thread::spawn(move || {
        service.blocking_serve(1, |request| {
            assert!(request.bytes != "panic", "as asked");
            request.bytes
        });
    });
    assert_eq!(client.call(server.local_addr(), "panic").wait(), Err(SendError::Unanswered));
    assert_eq!(client.call(server.local_addr(), "answer").wait().unwrap(), "answer");
}

#[test]
fn errors_of_calls_say_whether_the_callee_has_the_request() {
    let client = endpoint();
    let server = endpoint();
    let deadline = Duration::from_millis(200);
    let late = client.call(server.local_addr(), "request").options(within(deadline)).wait();
    assert_eq!(late, Err(SendError::NoResponse), "nobody serves");

    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody =
        client.call(silent.local_addr().unwrap(), "request").options(within(deadline)).wait();
    let rejected = SendError::NoAnswer;
    assert_eq!(nobody, Err(rejected));

    let long = client.call(server.local_addr(), vec![0; 16 << 20]).wait();
    let len = 16 << 20;
    let max = (16 << 20) - 12;
    let refused = SendError::TooLarge { len, max };
    assert_eq!(long, Err(refused), "the header has its part of `max_message`");

    let not_started = SendError::NotStarted;
    let without_time =
        client.call(server.local_addr(), "request").options(within(Duration::ZERO)).wait();
    assert_eq!(without_time, Err(not_started));
}

#[test]
fn an_expired_request_is_counted_and_not_delivered() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gone = client.call(to, "one").options(within(Duration::from_millis(100))).wait();
    assert_eq!(gone, Err(SendError::NoResponse));
    // At the callee, it has been there for less than the deadline, to the next millisecond.
    thread::sleep(Duration::from_millis(101));
    // The first request is too late to be of use, and is not handed out.
    let caller = client.clone();
    let two = thread::spawn(move || caller.call(to, "two").wait());
    let request = server.recv_request().wait().unwrap();
    assert_eq!((&request.bytes()[..], server.counters().calls.requests_expired), (&b"two"[..], 1));
    request.reply("of two").wait().unwrap();
    assert_eq!(two.join().unwrap().unwrap(), "of two");
    assert_eq!(client.counters().calls.responses_received, 1);
}

#[test]
fn calls_end_with_their_endpoint() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let caller = client.clone();
    let call = thread::spawn(move || caller.call(to, "request").wait());
    let request = server.recv_request().wait().unwrap();
    client.blocking_shutdown(Duration::ZERO);
    assert_eq!(call.join().unwrap(), Err(SendError::Closed));
    assert_eq!(client.call(to, "request").wait(), Err(SendError::Closing), "it was not sent");
    server.blocking_shutdown(Duration::ZERO);
    assert!(request.reply("late").wait().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_flight_are_bounded_and_all_are_answered() {
    let config = Config {
        tuning: Tuning { send_messages: Some(3), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let server = endpoint();
    let to = server.local_addr();
    let calls: Vec<_> = (0..40_u8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.call(to, vec![n]).await })
        })
        .collect();
    let mut requests = Vec::new();
    for _ in 0..3 {
        requests.push(server.recv_request().await.unwrap());
    }
    // All calls that may be in flight are here. The others would have had time to arrive, had they
    // been sent.
    let another = tokio::time::timeout(Duration::from_millis(100), server.recv_request()).await;
    assert!(another.is_err());
    tokio::spawn(async move {
        for request in requests {
            request.reply("").await.unwrap();
        }
        server.serve(1, |request| async { request.bytes }).await;
    });
    for call in calls {
        let ended = tokio::time::timeout(TIMEOUT, call).await.expect("no wake-up is lost");
        ended.unwrap().unwrap();
    }
}

#[test]
fn blocking_callers_and_callees_receive_their_packets_themselves() {
    const CALLS: usize = 100;
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    // The log of the caller's thread, and that of the callee's.
    let logs = [Log::default(), Log::default()];
    let callee = logs[1].clone();
    let serving = thread::spawn(move || {
        tracing::subscriber::with_default(callee, || {
            while let Some(Ok(request)) = server.recv_request().wait_for(TIMEOUT) {
                let last = request.bytes() == "last";
                request.reply("response").wait().unwrap();
                if last {
                    return;
                }
            }
        });
    });
    tracing::subscriber::with_default(logs[0].clone(), || {
        for n in 1..=CALLS {
            let request = if n == CALLS { "last" } else { "request" };
            let results = client.call_many([(to, request)]).wait();
            assert_eq!(results[0].as_ref().unwrap(), "response");
        }
    });
    serving.join().unwrap();
    for log in logs {
        let taken = log.events(Level::DEBUG, "message received").len();
        assert!(taken > 0, "another thread took all of them");
    }
}

#[test]
fn one_endpoint_is_shared_by_threads_that_call_and_serve_each_other() {
    let endpoints: Vec<_> = (0..4).map(|_| endpoint()).collect();
    let addresses: Vec<_> = endpoints.iter().map(|endpoint| endpoint.local_addr()).collect();
    thread::scope(|scope| {
        for endpoint in &endpoints {
            scope.spawn(|| endpoint.blocking_serve(1, |request| request.bytes));
        }
        let callers: Vec<_> = (0..16_u64)
            .map(|caller| {
                let endpoint = &endpoints[caller as usize % 4];
                let addresses = &addresses;
                scope.spawn(move || {
                    for n in 0..20 {
                        let request = bytes(3_000, caller * 100 + n);
                        let to = addresses[n as usize % 4];
                        assert!(endpoint.call(to, request.clone()).wait().unwrap() == request);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        for endpoint in &endpoints {
            endpoint.blocking_shutdown(Duration::ZERO);
        }
    });
}
