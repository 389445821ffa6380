//! Seccomp filters that refuse system calls.

use crate::common::log::Log;
use crate::common::{builder, bytes, endpoint};
use cloudburst_net::BuildError;
use nix::errno::Errno;
use nix::libc::{self, c_long};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::thread;
use tracing::Level;

const EPOLL_WAIT: c_long = if cfg!(target_arch = "x86_64") { 232 } else { libc::SYS_epoll_pwait };
const POLL: c_long = if cfg!(target_arch = "x86_64") { 7 } else { libc::SYS_ppoll };

/// Refuses system calls to this thread, and to those that it starts.
fn refuse(calls: &[c_long], error: Errno) {
    let rules = calls.iter().map(|&call| (call, Vec::new())).collect();
    let action = SeccompAction::Errno(error as u32);
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

/// Runs in a thread of its own, which the filter ends with.
fn alone<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn without_batches_datagrams_are_taken_one_by_one() {
    for error in [Errno::ENOSYS, Errno::EPERM] {
        let log = alone(|| {
            let log = Log::default();
            let _guard = tracing::subscriber::set_default(log.clone());
            refuse(&[libc::SYS_recvmmsg, libc::SYS_sendmmsg], error);
            let one = endpoint();
            let other = endpoint();
            let data = bytes(200_000, 1);
            one.send(other.local_addr(), data.clone()).wait().unwrap();
            assert_eq!(other.recv().wait().unwrap().bytes, data, "{error}");
            assert_eq!(one.counters().io.receive_errors, 0, "{error}");
            log
        });
        assert_eq!(log.events(Level::WARN, "the system refuses recvmmsg").len(), 2, "{log:?}");
    }
}

#[test]
fn a_filter_that_comes_later_makes_nobody_deaf() {
    let one = endpoint();
    let other = endpoint();
    alone(|| {
        refuse(&[libc::SYS_recvmmsg], Errno::EPERM);
        for seed in 0..20 {
            let data = bytes(20_000, seed);
            one.send(other.local_addr(), data.clone()).wait().unwrap();
            assert_eq!(other.recv().wait().unwrap().bytes, data);
        }
    });
    assert_eq!(one.counters().io.receive_errors, 0);
}

#[test]
fn what_has_no_substitute_is_refused_when_the_endpoint_is_built() {
    for (calls, name) in [
        (&[libc::SYS_recvmmsg, libc::SYS_recvmsg][..], "both recvmmsg and recvmsg"),
        (&[libc::SYS_sendmsg], "sendmsg"),
        (&[libc::SYS_timerfd_create], "timerfd_create"),
        (&[libc::SYS_timerfd_settime], "timerfd_settime"),
        (&[libc::SYS_eventfd2], "eventfd2"),
        (&[libc::SYS_epoll_create1], "epoll_create1"),
        (&[libc::SYS_epoll_ctl], "epoll_ctl"),
        (&[EPOLL_WAIT], "epoll_"),
        (&[POLL], "poll"),
    ] {
        for error in [Errno::ENOSYS, Errno::EPERM] {
            let refused = alone(|| {
                refuse(calls, error);
                builder().build().unwrap_err()
            });
            assert!(
                matches!(&refused, BuildError::System { what, source }
                    if what.starts_with(name) && source.raw_os_error() == Some(error as i32)),
                "{name}: {refused}"
            );
            assert!(refused.to_string().contains("seccomp"), "{refused}");
        }
    }
}
