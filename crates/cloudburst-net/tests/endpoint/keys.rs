//! Keys that change while a fleet of endpoints is in use.

use crate::common::{KEY, TIMEOUT, endpoint};
use cloudburst_net::{Endpoint, PathMap, Security, SendError};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

const NEXT: [u8; 32] = [8; 32];

fn newcomer(security: &Security) -> Endpoint {
    let builder = Endpoint::builder().bind("127.0.0.1:0".parse().unwrap());
    builder.paths(PathMap::ecmp(2)).security(security.clone()).build().unwrap()
}

#[test]
fn a_fleet_replaces_its_key_in_three_steps_without_a_failed_call() {
    let fleet: Vec<Endpoint> = (0..4).map(|_| endpoint()).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for server in &fleet {
            scope.spawn(|| server.blocking_serve(2, |request| request.bytes));
        }
        let callers: Vec<_> = fleet
            .iter()
            .map(|caller| {
                scope.spawn(|| {
                    let mut calls = 0;
                    while !done.load(Relaxed) {
                        for callee in &fleet {
                            caller.call(callee.local_addr(), "hello").wait()?;
                            calls += 1;
                        }
                    }
                    Ok::<usize, SendError>(calls)
                })
            })
            .collect();
        let mut newcomers = Vec::new();
        for security in [
            Security::pre_shared(KEY).also_accept(NEXT),
            Security::pre_shared(NEXT).also_accept(KEY),
            Security::pre_shared(NEXT),
        ] {
            for endpoint in &fleet {
                endpoint.set_security(security.clone());
                // Members that join in the middle of a step call those that have taken it and others.
                let newcomer = newcomer(&security);
                for callee in &fleet {
                    newcomers.push(newcomer.call(callee.local_addr(), "hello").wait());
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        done.store(true, Relaxed);
        let calls: Vec<_> = callers.into_iter().map(|calls| calls.join().unwrap()).collect();
        let old =
            endpoint().call(fleet[0].local_addr(), "hello").deadline(Duration::from_millis(50));
        let old = old.wait();
        // Before anything fails, so that the services end.
        let ended: Vec<bool> =
            fleet.iter().map(|server| server.blocking_shutdown(TIMEOUT)).collect();
        assert!(
            calls.iter().all(|calls| calls.as_ref().is_ok_and(|calls| *calls > 10)),
            "{calls:?}"
        );
        assert!(newcomers.iter().all(Result::is_ok), "{newcomers:?}");
        assert_eq!(old, Err(SendError::NoAnswer), "the old key is gone");
        assert_eq!(ended, [true; 4]);
    });
}
