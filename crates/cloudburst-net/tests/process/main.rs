//! Tests of process-wide state: forks, threads and descriptors, the `tracing` subscriber. They run one after
//! the other on the main thread, so that nothing else happens in the process meanwhile.

#![allow(clippy::unwrap_used, reason = "a test ends where anything fails")]

#[path = "../common/mod.rs"]
mod common;
mod events;
mod forks;
mod threads_end;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let args = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tests: [(&str, fn()); _] = [
        (
            "a_fork_can_do_nothing_with_an_endpoint_and_does_not_hang",
            forks::a_fork_can_do_nothing_with_an_endpoint_and_does_not_hang,
        ),
        ("nothing_is_left_of_an_endpoint", threads_end::nothing_is_left_of_an_endpoint),
        // The subscriber of this test stays until the process ends.
        (
            "each_send_is_a_span_with_its_outcome_and_each_message_that_came_an_event",
            events::each_send_is_a_span_with_its_outcome_and_each_message_that_came_an_event,
        ),
    ];
    let trial = |(name, run): (&str, fn())| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    libtest_mimic::run(&args, tests.into_iter().map(trial).collect()).exit();
}
