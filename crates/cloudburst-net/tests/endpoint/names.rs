//! Names are resolved to addresses that the endpoint can send to.

use crate::common::{blocking, endpoint};
use std::io;

#[tokio::test]
async fn a_name_resolves_to_an_address_of_the_family_of_the_endpoint() {
    let endpoint = endpoint();
    let found = endpoint.resolve("localhost:7000").await.unwrap();
    assert_eq!(found, "127.0.0.1:7000".parse().unwrap());
    let refused = endpoint.resolve("[::1]:7000").await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_blocking_endpoint_resolves_names_too() {
    let found = blocking().resolve("localhost:7000").unwrap();
    assert_eq!(found, "127.0.0.1:7000".parse().unwrap());
}
