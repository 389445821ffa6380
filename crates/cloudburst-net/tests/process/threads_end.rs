//! Endpoints leave no threads and no descriptors behind.

use crate::common::{builder, bytes, endpoint, eventually};
use cloudburst_net::{Config, Endpoint, SendOptions, Tuning};
use std::fs;
use std::future::Future;
use std::net::UdpSocket;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

fn count(what: &str) -> usize {
    fs::read_dir(format!("/proc/self/{what}")).expect("Linux has it").count()
}

pub(crate) fn an_endpoint_leaves_no_thread_and_no_descriptor() {
    let before = (count("task"), count("fd"));

    let one = endpoint();
    let other = endpoint();
    let clone = one.clone();
    one.send(other.local_addr(), bytes(5_000, 1)).wait().unwrap();
    assert_eq!(count("task"), before.0 + 2, "one thread an endpoint");
    drop(one);
    assert_eq!(count("task"), before.0 + 2, "a clone is left");
    drop((clone, other));
    assert_eq!((count("task"), count("fd")), before, "the last drop waits for the threads");

    let one = endpoint();
    let other = endpoint();
    let soon = SendOptions::default().deadline(Duration::from_millis(50));
    one.call(other.local_addr(), "nobody answers").options(soon).wait().unwrap_err();
    assert_eq!(count("task"), before.0 + 2, "calls need none");
    drop((one, other));
    assert_eq!((count("task"), count("fd")), before, "and the last drop waits for the threads");

    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let one = builder().config(config).build().unwrap();
    let other = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sending = one.send(silent.local_addr().unwrap(), "under way").begin().unwrap();
    one.send(other.local_addr(), "is never answered").options(soon).wait().unwrap_err();
    assert_eq!(count("task"), before.0 + 2, "nor do senders that wait for capacity");
    drop((one, other, sending, silent));
    assert_eq!((count("task"), count("fd")), before, "the last drop waits for the threads");

    let one = endpoint();
    let other = endpoint();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let to = other.local_addr();
    let sender = one.clone();
    let service = other.clone();
    runtime.spawn(async move { sender.send(to, bytes(1_000_000, 1)).await });
    runtime.spawn(async move { service.serve(1, |_| std::future::pending::<Vec<u8>>()).await });
    let caller = one.clone();
    runtime.spawn(async move { caller.call(to, "a request").await });
    eventually("it is being handled", || other.counters().calls.requests_received == 1);
    drop(runtime);
    drop((one, other));
    assert_eq!((count("task"), count("fd")), before, "no task of the runtime held them");

    // The last clone is dropped on a thread of the endpoint itself, in the callback for the end of
    // a send.
    let itself = endpoint();
    let addr = itself.local_addr();
    let sending = itself.send(addr, "to itself").begin().unwrap();
    let mut task = pin!(sending);
    let waker = Waker::from(Arc::new(DropsOnWake(Mutex::new(Some(itself)))));
    let mut context = Context::from_waker(&waker);
    if task.as_mut().poll(&mut context).is_ready() {
        // It ended before it was polled: nothing else will wake it.
        waker.wake_by_ref();
    }
    eventually("its threads end", || count("task") == before.0);

    let closing = endpoint();
    assert!(closing.blocking_shutdown(Duration::from_secs(5)));
    assert_eq!(count("task"), before.0);
    drop(closing);
    drop(waker);
    assert_eq!(count("fd"), before.1);
}

/// How often the threads that endpoints started have gone to sleep.
fn sleeps_of_threads() -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("Linux has it");
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok())
        .filter(|status| status.starts_with("Name:\tcbrst-"))
        .filter_map(|status| {
            let count =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count?.trim().parse::<u64>().ok()
        })
        .sum()
}

pub(crate) fn threads_of_idle_endpoints_sleep() {
    let one = endpoint();
    let other = endpoint();
    for _ in 0..3 {
        one.send(other.local_addr(), bytes(5_000, 1)).wait().unwrap();
        other.recv().wait().unwrap();
    }
    eventually("both sleep for a while", || {
        let before = sleeps_of_threads();
        thread::sleep(Duration::from_millis(100));
        before > 0 && sleeps_of_threads() == before
    });
}

struct DropsOnWake(Mutex<Option<Endpoint>>);

impl Wake for DropsOnWake {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("nobody else").take());
    }
}
