//! Tests of process-wide state: threads and descriptors, the `tracing` subscriber. They run one after
//! the other on the main thread, so that nothing else happens in the process meanwhile.

#![allow(clippy::unwrap_used, reason = "a test ends where anything fails")]

#[path = "../common/mod.rs"]
mod common;
mod events;
mod threads_end;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let args = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tests: [(&str, fn()); _] = [
        (
            "an_endpoint_leaves_no_thread_and_no_descriptor",
            threads_end::an_endpoint_leaves_no_thread_and_no_descriptor,
        ),
        ("threads_of_idle_endpoints_sleep", threads_end::threads_of_idle_endpoints_sleep),
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
