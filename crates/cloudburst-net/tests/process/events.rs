//! The events that `tracing` subscribers get of messages.
//!
//! Messages arrive on threads of the endpoint, so the subscriber is that of the whole process.

use crate::common::log::Log;
use crate::common::{bytes, endpoint};
use cloudburst_net::SendOptions;
use std::net::UdpSocket;
use std::time::Duration;
use tracing::Level;

pub(crate) fn each_send_is_a_span_with_its_outcome_and_each_message_that_came_an_event() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let one = endpoint();
    let other = endpoint();
    let to = other.local_addr();
    one.send(to, bytes(777, 1)).wait().unwrap();
    let message = other.recv().wait().unwrap();
    let expected = format!("send peer={to} bytes=777 id={} outcome=\"delivered\" ", message.id.0);
    assert_eq!(log.spans(Level::DEBUG, "send "), [expected]);
    let from = one.local_addr();
    let expected = format!("message=message received peer={from} id={} bytes=777 ", message.id.0);
    assert_eq!(log.events(Level::DEBUG, "message received"), [expected]);

    // No endpoint answers there.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = silent.local_addr().unwrap();
    let options = SendOptions::default().deadline(Duration::from_millis(50));
    let error = one.send(nobody, bytes(5, 2)).options(options).wait().unwrap_err();
    drop(one.send(nobody, bytes(6, 3)).begin().unwrap());
    let [rejected, dropped] = &log.spans(Level::DEBUG, &format!("peer={nobody}"))[..] else {
        panic!("two sends, {log:?}");
    };
    assert!(rejected.ends_with(&format!("outcome={error} ")), "{rejected}");
    assert!(dropped.ends_with("outcome=\"dropped\" "), "{dropped}");
    assert_eq!(log.events(Level::DEBUG, "message received").len(), 1, "{log:?}");
}
