//! Calls to ports at which nothing listens, of hosts that say so.

use crate::common::{builder, builder_on, endpoint};
use cloudburst_net::SendError;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Well under the default deadline, and more than a loaded machine needs.
const SOON: Duration = Duration::from_secs(2);

/// The discard port. Not one that was free a moment ago: tests beside this one take such ports.
fn closed(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 9)
}

#[tokio::test]
async fn a_hundred_calls_and_a_connect_to_a_closed_port_end_soon() {
    let client = builder().build().unwrap();
    let peer = closed("127.0.0.1");
    let refused = Err(SendError::PortClosed { peer });
    for _ in 0..2 {
        let start = Instant::now();
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call(peer, "a request").await })
            })
            .collect();
        assert_eq!(client.connect(peer).await, refused);
        for call in calls {
            assert_eq!(call.await.unwrap().map(drop), refused);
        }
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    }
    assert_eq!(client.counters().calls.calls_rejected, 200);
    assert!(client.counters().sender.handshakes_sent < 40);
}

#[test]
fn a_closed_port_is_noticed_in_both_families_and_named() {
    for (local, ip) in
        [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::1"), ("::", "127.0.0.1")]
    {
        let client = builder_on(local).build().unwrap();
        let peer = closed(ip);
        let start = Instant::now();
        let error = client.call(peer, "a request").wait().unwrap_err();
        assert!(start.elapsed() < SOON, "{peer} from {local}: {:?}", start.elapsed());
        assert!(error.to_string().contains(&format!("nothing listens at {peer}")), "{error}");
        assert!(!error.is_timeout() && !error.may_have_been_delivered());
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_message_to_a_closed_port_waits_and_delays_no_call_to_another() {
    let client = endpoint();
    let server = endpoint();
    let deadline = Duration::from_millis(500);
    let start = Instant::now();
    let waits = client.send(closed("127.0.0.1"), "hello").deadline(deadline).begin().unwrap();
    let mut messages = 0;
    while start.elapsed() < deadline / 2 {
        client.send(server.local_addr(), "hello").wait().unwrap();
        server.recv().wait().unwrap();
        messages += 1;
    }
    assert_eq!(waits.wait(), Err(SendError::NoAnswer));
    assert!(start.elapsed() >= deadline);
    let io = client.counters().io;
    assert_eq!(io.send_errors.total(), 0, "no packet was lost to an error of another");
    assert!(messages > 10, "{messages}");
}
