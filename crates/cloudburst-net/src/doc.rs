//! What the examples of the documentation share.

use crate::{Endpoint, Security};
use std::error::Error;

/// Runs an example with a client and a server, in a runtime of its own.
pub fn run(
    example: impl AsyncFnOnce(Endpoint, Endpoint) -> Result<(), Box<dyn Error + Send + Sync>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.expect("a runtime").block_on(example(endpoint(), endpoint()));
    result.expect("an example that succeeds");
}

/// An endpoint on the loopback interface.
pub fn endpoint() -> Endpoint {
    let loopback = ([127, 0, 0, 1], 0).into();
    let builder = Endpoint::builder().bind(loopback).security(Security::pre_shared([7; 32]));
    builder.build().expect("loopback addresses can be bound")
}
