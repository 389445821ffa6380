//! Names are resolved to addresses that the endpoint can send to.

use crate::common::{TIMEOUT, endpoint};
use cloudburst_net::SendError;
use std::{io, thread};

#[tokio::test]
async fn a_name_resolves_to_an_address_of_the_family_of_the_endpoint() {
    let endpoint = endpoint();
    let found = endpoint.resolve("localhost:7000").await.unwrap();
    assert_eq!(found, "127.0.0.1:7000".parse().unwrap());
    let refused = endpoint.resolve("[::1]:7000").await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_name_stands_where_an_address_does() {
    let client = endpoint();
    let server = endpoint();
    let port = server.local_addr().port();
    let name = format!("localhost:{port}");
    client.connect(&name).wait().unwrap();
    client.send(("localhost", port), "hello").wait().unwrap();
    assert_eq!(server.recv().wait().unwrap().bytes, "hello");
    let service = server.clone();
    let serving = thread::spawn(move || service.blocking_serve(1, |request| request.bytes));
    assert_eq!(client.call(name.as_str(), "a request").wait().unwrap(), "a request");
    server.blocking_shutdown(TIMEOUT);
    serving.join().unwrap();
}

#[tokio::test]
async fn a_name_without_an_address_is_reported_as_such() {
    let client = endpoint();
    let unknown = client.send("nowhere.invalid:7", "hello").await.unwrap_err();
    assert!(matches!(&unknown, SendError::NoAddress { name, .. } if name == "nowhere.invalid:7"));
    assert!(!unknown.may_have_been_delivered() && !unknown.is_timeout());
    let no_time = client.send("localhost:7", "hello").begin().unwrap_err();
    assert!(matches!(no_time, SendError::NoAddress { .. }), "{no_time}");
}
