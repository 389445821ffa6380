//! Streams and sinks: they end, wait for capacity and report errors.

use crate::common::{builder, bytes, endpoint};
use cloudburst_net::{Bytes, Config, Endpoint, SendOptions, Tuning};
use futures_util::{FutureExt, Sink, SinkExt, Stream, StreamExt, stream};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{iter, thread};

fn small(send_messages: usize) -> Endpoint {
    builder()
        .config(Config {
            tuning: Tuning { send_messages: Some(send_messages), ..Tuning::default() },
            ..Config::default()
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn streams_end_with_the_endpoint_and_stay_ended() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let mut messages = server.messages();
    let serving = tokio::spawn(server.requests().for_each(async |request| {
        request.reply("an answer").await.map(drop).unwrap();
    }));
    client.send(to, "one").await.unwrap();
    assert_eq!(client.call(to, "a question").await.unwrap(), "an answer");
    client.send(to, "two").await.unwrap();
    assert!(server.shutdown(Duration::from_secs(20)).await);
    serving.await.unwrap();
    for expected in ["one", "two"] {
        assert_eq!(messages.next().await.unwrap().bytes, expected);
    }
    assert!(messages.next().await.is_none());
    assert!(messages.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_nobody_polls_keeps_no_message_from_others() {
    let client = endpoint();
    let server = endpoint();
    let mut idle = server.messages();
    assert!(idle.next().now_or_never().is_none());
    let other = server.clone();
    let received = tokio::spawn(async move { other.recv().await });
    // This call waits behind the stream from now on.
    tokio::task::yield_now().await;
    client.send(server.local_addr(), "a message").await.unwrap();
    assert_eq!(received.await.unwrap().unwrap().bytes, "a message");
}

#[tokio::test]
async fn calls_are_a_stream_of_their_responses() {
    let client = endpoint();
    let server = endpoint();
    let requests = (0..8).map(|n| (server.local_addr(), bytes(1_000, n)));
    let mut calls = client.call_many(requests).begin();
    assert_eq!(calls.size_hint(), (8, Some(8)));
    let serving = tokio::spawn(async move { server.serve(8, async |it| it.bytes).await });
    let answers: BTreeSet<Bytes> =
        calls.by_ref().map(|response| response.result.unwrap()).collect().await;
    assert_eq!(answers, (0..8).map(|n| bytes(1_000, n).into()).collect());
    assert!(StreamExt::next(&mut calls).await.is_none());
    serving.abort();
}

#[test]
fn a_sink_is_not_ready_while_the_endpoint_is_full() {
    let client = small(2);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = socket.local_addr().unwrap();
    let mut sink = client.sink(silent);
    let mut context = Context::from_waker(Waker::noop());
    for n in 0..3 {
        let ready = Pin::new(&mut sink).poll_ready(&mut context);
        assert_eq!(ready, Poll::Ready(Ok(())), "message {n}: two are under way and one waits");
        sink.start_send_unpin(bytes(100, n).into()).unwrap();
    }
    assert_eq!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Pending);
    assert!(client.send(silent, "a message").begin().is_err_and(|error| error.is_busy()));
    drop(sink);
    client.send(silent, "a message").begin().map(drop).expect("all three are cancelled");
}

#[tokio::test]
async fn a_flushed_sink_has_delivered_everything() {
    const MESSAGES: u64 = 100;
    let client = small(2);
    let server = endpoint();
    let mut sink = client.sink(server.local_addr());
    assert_eq!(sink.peer(), server.local_addr());
    let mut messages = stream::iter(0..MESSAGES).map(|n| Ok(Bytes::from(bytes(2_000, n))));
    sink.send_all(&mut messages).await.unwrap();
    let came: BTreeSet<Bytes> =
        server.messages().take(MESSAGES as usize).map(|message| message.bytes).collect().await;
    assert_eq!(came, (0..MESSAGES).map(|n| bytes(2_000, n).into()).collect());
    assert_eq!(server.try_recv(), Ok(None), "each once");
}

#[tokio::test]
async fn a_sink_reports_each_failure_once_and_remains_usable() {
    let client = endpoint();
    let server = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let soon = Duration::from_millis(50);
    let options = SendOptions::default().deadline(soon);
    let mut sink = client.sink(silent.local_addr().unwrap()).options(options);
    sink.feed("nobody is there".into()).await.unwrap();
    assert!(sink.flush().await.unwrap_err().is_timeout());
    assert_eq!(sink.flush().await, Ok(()));

    let mut sink = client.sink(server.local_addr());
    let long = Bytes::from(vec![0; Config::default().max_message + 1]);
    assert!(!sink.send(long).await.unwrap_err().may_have_been_delivered());
    sink.send("short".into()).await.unwrap();
    assert_eq!(server.recv().await.unwrap().bytes, "short");
}

#[test]
fn threads_that_receive_end_with_their_endpoint() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    let serving = thread::spawn(move || {
        let requests = iter::from_fn(|| service.recv_request().wait().ok());
        requests.map(|request| request.reply("an answer").wait().map(drop)).collect::<Vec<_>>()
    });
    client.send(to, "one").wait().unwrap();
    assert_eq!(client.call(to, "a question").wait().unwrap(), "an answer");
    assert!(server.try_recv_request().unwrap().is_none(), "it was taken");
    client.send(to, "two").wait().unwrap();
    assert!(server.blocking_shutdown(Duration::from_secs(20)));
    let messages: Vec<Bytes> =
        iter::from_fn(|| server.recv().wait().ok()).map(|it| it.bytes).collect();
    assert_eq!(messages, ["one", "two"]);
    assert_eq!(serving.join().unwrap(), [Ok(())]);
}
