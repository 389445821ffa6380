//! A real fork of a process whose endpoint is busy: nothing hangs in the child, and nothing is lost
//! in the parent.

use crate::common::{TIMEOUT, blocking, bytes, eventually};
use cloudburst_net::{Closed, Counters, PathMap, PathMapError, SendError, blocking};
use fork::{Fork, fork};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const FORKS: usize = 20;

pub(crate) fn an_endpoint_fails_in_a_fork_and_does_not_hang() {
    let one = blocking();
    let other = blocking();
    let to = other.local_addr();
    let done = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        // Keeps locks held when the process is forked.
        let senders: Vec<_> = (0..2)
            .map(|seed| {
                let one = &one;
                let done = &done;
                scope.spawn(move || {
                    let mut sent = 0;
                    while !done.load(Ordering::SeqCst) {
                        one.send(to, bytes(20_000, seed)).expect("the parent's endpoint lives");
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        let taking = scope.spawn(|| {
            let mut taken = 0;
            while other.recv_timeout(TIMEOUT).is_ok_and(|came| came.is_some()) {
                taken += 1;
            }
            taken
        });
        for _ in 0..FORKS {
            fork_once(&one);
        }
        done.store(true, Ordering::SeqCst);
        let sent: usize = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
        assert!(other.shutdown(TIMEOUT));
        assert_eq!(taking.join().unwrap(), sent, "each once");
        sent
    });
    assert_eq!(one.counters().sender.delivered, sent as u64);
    assert!(one.shutdown(TIMEOUT), "nothing is left under way");
}

/// Forks, and has the child try everything.
fn fork_once(endpoint: &blocking::Endpoint) {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let nobody = silent.local_addr().expect("it is bound");
    let sending = endpoint.try_send(nobody, "under way").expect("there is capacity");
    let calls = endpoint.call_many([(nobody, "under way")]);
    let idle = blocking();
    match fork().expect("the system forks") {
        Fork::Child => {
            let tried = catch_unwind(AssertUnwindSafe(|| {
                try_all(endpoint, nobody, sending, calls);
                // The last of its clones.
                drop(idle);
            }));
            // The test harness and the destructors of other threads belong to the parent.
            process::exit(if tried.is_ok() { 0 } else { 1 });
        }
        Fork::Parent(child) => {
            let child = Pid::from_raw(child);
            let mut status = WaitStatus::StillAlive;
            let ended = catch_unwind(AssertUnwindSafe(|| {
                eventually("the child ends", || {
                    status = waitpid(child, Some(WaitPidFlag::WNOHANG)).expect("it is a child");
                    status != WaitStatus::StillAlive
                });
            }));
            if ended.is_err() {
                kill(child, Signal::SIGKILL).expect("it hangs");
            }
            assert_eq!(status, WaitStatus::Exited(child, 0));
        }
    }
}

fn try_all(
    endpoint: &blocking::Endpoint,
    nobody: std::net::SocketAddr,
    sending: blocking::Sending,
    calls: blocking::Calls,
) {
    let is_forked = |error: &SendError| matches!(error, SendError::Forked { .. });
    assert!(sending.wait().is_err_and(|error| is_forked(&error)));
    let ended: Vec<_> = calls.map(|response| response.result).collect();
    assert!(matches!(&ended[..], [Err(error)] if is_forked(error)));
    assert!(endpoint.send(nobody, "hello").is_err_and(|error| is_forked(&error)));
    assert!(endpoint.try_send(nobody, "hello").is_err_and(|error| is_forked(&error)));
    let called = endpoint.call(nobody, "hello");
    assert!(matches!(called, Err(error) if is_forked(&error)));
    assert_eq!((endpoint.recv(), endpoint.try_recv()), (Err(Closed), Err(Closed)));
    assert_eq!(endpoint.recv_timeout(Duration::from_secs(60)), Err(Closed));
    assert!(endpoint.recv_request().is_err());
    assert!(endpoint.recv_request_timeout(Duration::from_secs(60)).is_err());
    endpoint.serve(1, |request| request.bytes);
    let Counters { sender, receiver, .. } = endpoint.counters();
    assert_eq!((sender, receiver), Default::default());
    assert_eq!((endpoint.peers(), endpoint.paths(nobody)), (Vec::new(), Vec::new()));
    assert_eq!(endpoint.latencies().sent.count(), 0);
    assert_eq!(endpoint.set_paths(PathMap::ecmp(1)), Err(PathMapError::Forked));
    // A runtime of the child's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let received = runtime.expect("a runtime").block_on(endpoint.as_async().recv());
    assert_eq!(received, Err(Closed));
    assert!(!endpoint.shutdown(Duration::from_secs(60)));
}
