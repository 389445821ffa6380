//! Packets that a task of a tokio runtime receives.

use crate::common::endpoint;
use cloudburst_net::Endpoint;
use core::time::Duration;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

async fn serve(endpoint: Endpoint) {
    endpoint.serve(1, |question| async move { question.bytes }).await;
}

#[test]
fn endpoints_of_one_current_thread_runtime_exchange_calls_and_messages() {
    let one = endpoint();
    let other = endpoint();
    runtime().block_on(async {
        tokio::spawn(serve(other.clone()));
        for len in [0, 1, 1_500, 93_000, 400_000] {
            let bytes = vec![len as u8; len];
            assert_eq!(one.call(other.local_addr(), bytes.clone()).await.unwrap(), bytes);
            one.send(other.local_addr(), bytes.clone()).await.unwrap();
            assert_eq!(other.recv().await.unwrap().bytes, bytes);
        }
        for endpoint in [one, other] {
            assert!(endpoint.shutdown(Duration::from_secs(5)).await);
        }
    });
}

#[test]
fn an_endpoint_answers_while_its_runtime_is_busy() {
    let driven = endpoint();
    let other = endpoint();
    runtime().block_on(async {
        other.send(driven.local_addr(), "a session").await.unwrap();
        // This is the thread of the runtime, and it waits for the STOP that the task would have to
        // send.
        for _ in 0..20 {
            other.send(driven.local_addr(), vec![7; 20_000]).wait().unwrap();
        }
        driven.recv().await.unwrap();
        for _ in 0..20 {
            assert_eq!(driven.recv().await.unwrap().bytes.len(), 20_000);
        }
    });
}

#[test]
fn the_receiving_task_does_not_keep_the_endpoint_alive() {
    let driven = endpoint();
    let runtime = runtime();
    runtime.block_on(async {
        driven.send(driven.local_addr(), "to itself").await.unwrap();
        assert_eq!(driven.recv().await.unwrap().bytes, "to itself");
        assert_eq!(runtime.metrics().num_alive_tasks(), 1);
        drop(driven);
        while runtime.metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn an_endpoint_receives_after_its_runtime_has_ended() {
    let driven = endpoint();
    let other = endpoint();
    let runtime = runtime();
    runtime.block_on(async {
        other.send(driven.local_addr(), "before").await.unwrap();
        assert_eq!(driven.recv().await.unwrap().bytes, "before");
    });
    drop(runtime);
    self::runtime().block_on(async {
        other.send(driven.local_addr(), "in another").await.unwrap();
        assert_eq!(driven.recv().await.unwrap().bytes, "in another");
    });
    other.send(driven.local_addr(), "after").wait().unwrap();
    assert_eq!(driven.recv().wait().unwrap().bytes, "after");
}

#[test]
fn in_a_runtime_without_io_a_thread_receives() {
    let one = endpoint();
    let other = endpoint();
    Builder::new_current_thread().build().unwrap().block_on(async {
        for _ in 0..3 {
            one.send(other.local_addr(), "hello").await.unwrap();
            assert_eq!(other.recv().await.unwrap().bytes, "hello");
        }
    });
}
