//! Endpoints on a wire.

use crate::common::{KEY, TIMEOUT};
use cloudburst_net::{Builder, Config, Endpoint, PathMap, Security};
use cloudburst_testbed::End;
use libtest_mimic::Failed;

/// An endpoint at `end`, with further settings. It may send 100 Mb/s unless the settings override
/// this.
pub(crate) fn endpoint(
    end: &End,
    settings: impl FnOnce(Builder) -> Builder,
) -> Result<Endpoint, Failed> {
    let builder = Endpoint::builder()
        .bind((end.address(), 0).into())
        .paths(PathMap::ecmp(4))
        .config(Config { capacity: 100_000_000.into(), ..Config::default() })
        .security(Security::pre_shared(KEY));
    let builder = settings(builder);
    Ok(end.run(|| builder.build())?.clone())
}

/// Receives the message `bytes` and no other.
pub(crate) fn expect(receiver: &Endpoint, bytes: &[u8]) -> Result<(), Failed> {
    let message = receiver.recv().wait_for(TIMEOUT).ok_or("delivered, and not there")??;
    assert!(message.bytes == bytes, "another message of {} bytes", message.bytes.len());
    assert_eq!(receiver.try_recv(), Ok(None));
    Ok(())
}
