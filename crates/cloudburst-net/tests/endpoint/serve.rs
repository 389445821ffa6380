//! Handlers run concurrently, within a limit, and end when they are no longer awaited.

use crate::common::{TIMEOUT, endpoint, eventually, log::Log};
use cloudburst_net::{Config, Overloaded, RequestParts, SendError};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// Counts the handlers at work, and keeps the maximum.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct AtWork(Arc<Gauge>);

impl Gauge {
    fn enter(self: &Arc<Self>) -> AtWork {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        AtWork(self.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

#[tokio::test]
async fn serve_handles_at_most_limit_requests_at_a_time() {
    const LIMIT: usize = 4;
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gauge = Arc::new(Gauge::default());
    let gate = Arc::new(Semaphore::new(0));
    let seen = gauge.clone();
    let opened = gate.clone();
    // On the task of this test: handlers need be neither `Send` nor `'static`.
    let local = std::rc::Rc::new(());
    let handler = |request: RequestParts| {
        let seen = seen.clone();
        let opened = opened.clone();
        let _local = local.clone();
        async move {
            let _at_work = seen.enter();
            opened.acquire().await.unwrap().forget();
            request.bytes
        }
    };
    let calls: Vec<_> = (0..10_u8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.call(to, vec![n]).await.unwrap() == vec![n] })
        })
        .collect();
    let all = async {
        while gauge.now.load(SeqCst) < LIMIT {
            tokio::task::yield_now().await;
        }
        gate.add_permits(10);
        for call in calls {
            assert!(call.await.unwrap(), "each has its own response");
        }
    };
    tokio::select! {
        () = server.serve(LIMIT, handler) => panic!("nobody has shut it down"),
        ended = timeout(TIMEOUT, all) => ended.unwrap(),
    }
    assert_eq!(gauge.most.load(SeqCst), LIMIT);
}

#[test]
fn blocking_serve_runs_handlers_in_limit_threads() {
    const LIMIT: usize = 3;
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gauge = Arc::new(Gauge::default());
    // None passes before all three are there.
    let barrier = Barrier::new(LIMIT);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.blocking_serve(LIMIT, |request| {
                let _at_work = gauge.enter();
                barrier.wait();
                request.bytes
            });
        });
        let calls: Vec<_> = (0..3 * LIMIT)
            .map(|_| scope.spawn(|| client.call(to, "together").wait().unwrap()))
            .collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "together");
        }
        assert!(server.blocking_shutdown(TIMEOUT));
    });
    assert_eq!(gauge.most.load(SeqCst), LIMIT);
}

#[tokio::test]
async fn the_log_says_why_a_caller_gets_no_answer() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let log = Log::default();
    let _logged = tracing::subscriber::set_default(log.clone());
    let handler = async |request: RequestParts| match &request.bytes[..] {
        b"much" => vec![0; Config::default().max_message],
        _ => std::future::pending().await,
    };
    let calls = async {
        assert_eq!(client.call(to, "much").await, Err(SendError::Unanswered));
        assert_eq!(log.warnings("`max_message` leaves room for"), 1);
        let call = client.call(to, "forever");
        let stop = async {
            let taken = || server.counters().calls.requests_received == 2;
            while !taken() {
                tokio::task::yield_now().await;
            }
            server.shutdown(Duration::ZERO).await
        };
        assert_eq!(tokio::join!(call, stop), (Err(SendError::Unanswered), false));
    };
    tokio::join!(server.serve(1, handler), calls);
    assert_eq!(log.warnings("a handler was dropped: this endpoint shut down"), 1);
}

#[tokio::test]
async fn request_parts_are_cancelled_when_the_request_is_answered_or_dropped() {
    let client = endpoint();
    let server = endpoint();
    for answers in [true, false] {
        let caller = client.clone();
        let to = server.local_addr();
        let call = tokio::spawn(async move { caller.call(to, "a request").await });
        let request = server.recv_request().await.unwrap();
        let parts = request.parts();
        assert!(!parts.is_cancelled());
        if answers {
            request.reply("an answer").await.unwrap();
        } else {
            drop(request);
        }
        parts.cancelled().await;
        assert_eq!(call.await.unwrap().is_ok(), answers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_is_dropped_when_its_caller_is_gone() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gauge = Arc::new(Gauge::default());
    let (begun, mut begins) = mpsc::unbounded_channel();
    let service = server.clone();
    let seen = gauge.clone();
    tokio::spawn(async move {
        let handler = |request: RequestParts| {
            let at_work = seen.enter();
            begun.send(request).unwrap();
            async move {
                let _at_work = at_work;
                std::future::pending::<Vec<u8>>().await
            }
        };
        service.serve(1, handler).await;
    });
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.call(to, "a request").await });
    let request = begins.recv().await.unwrap();
    assert!(!request.is_cancelled());
    let left = request.deadline.saturating_duration_since(Instant::now());
    assert!(left > Duration::from_secs(5), "the default deadline, of which {left:?} is left");
    eventually("the caller knows that it is there", || client.counters().sender.delivered == 1);
    call.abort();
    eventually("it is dropped", || gauge.now.load(SeqCst) == 0);
    assert!(request.is_cancelled());
    assert_eq!(server.counters().calls.requests_withdrawn, 1);
    assert_eq!(server.counters().calls.requests_unanswered, 0, "no caller needs an answer");

    // The next call may begin, which ends with its deadline.
    let soon = Duration::from_millis(100);
    assert_eq!(client.call(to, "another").deadline(soon).await, Err(SendError::NoResponse));
    assert_eq!(begins.recv().await.unwrap().bytes, "another");
    eventually("it is dropped", || gauge.now.load(SeqCst) == 0);
}

#[test]
fn a_blocking_handler_can_check_whether_its_request_is_cancelled() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let (begun, begins) = std::sync::mpsc::channel();
    let noticed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.blocking_serve(1, |request| {
                begun.send(()).unwrap();
                eventually("its caller is gone", || request.is_cancelled());
                noticed.store(true, SeqCst);
                "nobody waits for this"
            });
        });
        let calls = client.call_many([(to, "a request")]).begin();
        begins.recv().unwrap();
        eventually("it is known to be there", || client.counters().sender.delivered == 1);
        assert_eq!(calls.left(), 1);
        drop(calls);
        eventually("it has noticed", || noticed.load(SeqCst));
        assert!(server.blocking_shutdown(TIMEOUT));
    });
    assert_eq!(client.counters().calls.responses_dropped, 0);
}

/// An error of a service, with what caused it.
#[derive(Debug)]
struct Caused(Overloaded);

impl std::fmt::Display for Caused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no connection to the database is free")
    }
}

impl std::error::Error for Caused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn an_overloaded_handler_refuses_its_request() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    let serving = tokio::spawn(async move {
        let handler = async |request: RequestParts| match &request.bytes[..] {
            b"full" => Err(Caused(Overloaded).into()),
            b"nonsense" => Err("that is nonsense".into()),
            _ => Ok::<_, Box<dyn std::error::Error + Send + Sync>>("an answer"),
        };
        service.try_serve(8, handler).await;
    });
    assert_eq!(client.call(to, "hello").await.unwrap(), "an answer");
    assert_eq!(client.call(to, "nonsense").await, Err(SendError::Unanswered));
    let error = client.call(to, "full").await.unwrap_err();
    assert_eq!(error, SendError::Overloaded);
    assert!(error.is_busy() && !error.may_have_been_delivered());
    let calls = server.counters().calls;
    assert_eq!((calls.requests_overloaded, calls.requests_unanswered), (1, 1));
    assert!(server.shutdown(TIMEOUT).await, "no request is under way");
    serving.await.unwrap();
}

#[test]
fn a_blocking_service_can_refuse_requests_too() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    thread::scope(|scope| {
        scope.spawn(|| {
            server.blocking_try_serve(2, |_| Err::<Vec<u8>, _>(io::Error::from(Overloaded)))
        });
        assert_eq!(client.call(to, "a request").wait(), Err(SendError::Overloaded));
        assert!(server.blocking_shutdown(TIMEOUT));
    });

    let server = endpoint();
    let to = server.local_addr();
    let caller = thread::spawn(move || client.call(to, "a request").wait());
    let receipt = server.recv_request().wait().unwrap().refuse().wait().unwrap();
    assert_eq!(caller.join().unwrap(), Err(SendError::Overloaded));
    assert_eq!((receipt.bytes, server.counters().calls.requests_overloaded), (9, 1));
}

/// Panics when it is dropped, unless its thread is panicking already.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        assert!(thread::panicking(), "as asked");
    }
}

/// An error that panics when it is printed.
#[derive(Debug)]
struct PanicsWhenPrinted;

impl fmt::Display for PanicsWhenPrinted {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("as asked");
    }
}

impl std::error::Error for PanicsWhenPrinted {}

#[tokio::test]
async fn an_error_that_panics_when_it_is_printed_stops_nothing_else() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    tokio::spawn(async move {
        let handler = |request: RequestParts| async move {
            if request.bytes == "fail" { Err(PanicsWhenPrinted) } else { Ok(request.bytes) }
        };
        service.try_serve(10, handler).await;
    });
    assert_eq!(client.call(to, "fail").await, Err(SendError::Unanswered));
    assert_eq!(client.call(to, "another").await.unwrap(), "another");
    assert_eq!(server.counters().calls.handlers_panicked, 1);
}

#[test]
fn an_error_that_panics_when_it_is_printed_ends_no_thread() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    thread::spawn(move || {
        service.blocking_try_serve(1, |request| {
            if request.bytes == "fail" { Err(PanicsWhenPrinted) } else { Ok(request.bytes) }
        });
    });
    assert_eq!(client.call(to, "fail").wait(), Err(SendError::Unanswered));
    assert_eq!(client.call(to, "another").wait().unwrap(), "another");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_when_it_is_dropped_stops_nothing_else() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    tokio::spawn(async move {
        let handler = |request: RequestParts| async move {
            if request.bytes == "wait" {
                let _fragile = PanicsWhenDropped;
                std::future::pending::<()>().await;
            }
            request.bytes
        };
        service.serve(10, handler).await;
    });
    let soon = Duration::from_millis(100);
    assert_eq!(client.call(to, "wait").deadline(soon).await, Err(SendError::NoResponse));
    eventually("it is counted", || server.counters().calls.handlers_panicked == 1);
    assert_eq!(client.call(to, "another").await.unwrap(), "another");
}
