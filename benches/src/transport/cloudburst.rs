//! Cloudburst: sealed with a shared key, 16 source ports.

use super::{
    Blocking, Flood, LONGEST, OnTokio, PATIENCE, REQUEST, Tasks, expect_len, flood, lengths,
    message, runtime, spawn,
};
use crate::Result;
use crate::ends::{End, Ends};
use bytes::Bytes;
use cloudburst_net::{Builder, Config, Endpoint, RequestParts, Security, Sending};
use std::net::SocketAddr;
use std::time::Duration;

/// The key of all endpoints.
pub const KEY: [u8; 32] = [7; 32];

/// Returns the default configuration, with the time that threads busy-poll before they sleep, and a capacity that makes
/// the processors the limit, as for the others.
pub fn config(busy_poll: Duration) -> Config {
    Config { capacity: 100_000_000_000.into(), busy_poll, ..Config::default() }
}

/// Returns a builder of endpoints that share [`KEY`].
pub fn builder(config: Config) -> Builder {
    Endpoint::builder().config(config).security(Security::pre_shared(KEY))
}

/// Opens an endpoint whose threads run on this end's CPU.
fn open(end: &End, config: &Config) -> Result<Endpoint> {
    let builder = builder(config.clone()).bind((end.address(), 0).into());
    end.run(move || Ok(builder.build()?))
}

/// Messages there and back between two threads.
#[derive(Debug)]
pub struct Messages {
    client: Endpoint,
    server: Endpoint,
}

impl Messages {
    /// Opens a session with a server that answers.
    pub fn open(ends: &Ends, config: &Config) -> Result<Self> {
        Self::open_with(ends, config, answer)
    }

    /// Opens a session with a server whose application takes no messages.
    pub fn open_silent(ends: &Ends, config: &Config) -> Result<Self> {
        Self::open_with(ends, config, |_| Ok(()))
    }

    fn open_with(ends: &Ends, config: &Config, serve: fn(Endpoint) -> Result<()>) -> Result<Self> {
        let server = open(&ends.server, config)?;
        let serving = server.clone();
        spawn(&ends.server, move || serve(serving))?;
        let client = open(&ends.client, config)?;
        client.send(server.local_addr(), message(REQUEST, 0)).wait()?;
        Ok(Self { client, server })
    }

    /// The client's endpoint.
    pub const fn client(&self) -> &Endpoint {
        &self.client
    }

    /// The server's endpoint.
    pub const fn server(&self) -> &Endpoint {
        &self.server
    }
}

/// Answers requests. It waits for the delivery of an answer only after it has sent the next one: the client's next
/// request shows that the answer has arrived.
fn answer(endpoint: Endpoint) -> Result<()> {
    let answer = message(LONGEST, 0);
    let mut previous: Option<Sending> = None;
    while let Ok(request) = endpoint.recv().wait() {
        let (_, response) = lengths(&request.bytes);
        if response > 0 {
            let sending = endpoint.send(request.peer, answer.slice(..response)).begin()?;
            if let Some(sending) = previous.replace(sending) {
                sending.wait()?;
            }
        }
    }
    Ok(())
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.server.blocking_shutdown(Duration::ZERO);
    }
}

impl Blocking for Messages {
    fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        let sending = self.client.send(self.server.local_addr(), request.clone()).begin()?;
        let received = self.client.recv().wait_for(PATIENCE);
        let received = received.ok_or_else(|| format!("no response within {PATIENCE:?}"))??;
        expect_len(received.bytes.len(), response)?;
        sending.wait()?;
        Ok(())
    }
}

/// `call` and `serve` between two tokio runtimes.
#[derive(Debug)]
pub struct Calls {
    client: Endpoint,
    server: Endpoint,
    to: SocketAddr,
}

impl Calls {
    /// Opens a session with a server that answers calls and takes messages.
    pub fn open(ends: &Ends, config: &Config) -> Result<OnTokio<Self>> {
        let server = open(&ends.server, config)?;
        let serving = server.clone();
        spawn(&ends.server, move || runtime()?.block_on(serve(serving)))?;
        let client = open(&ends.client, config)?;
        OnTokio::open(async {
            let to = server.local_addr();
            client.connect(to).await?;
            Ok(Self { client, server, to })
        })
    }
}

async fn serve(endpoint: Endpoint) -> Result<()> {
    let messages = endpoint.clone();
    tokio::spawn(async move { while messages.recv().await.is_ok() {} });
    let answer = message(LONGEST, 0);
    let handler = |request: RequestParts| {
        let (_, response) = lengths(&request.bytes);
        let answer = answer.slice(..response);
        async move { answer }
    };
    endpoint.serve(64, handler).await;
    Ok(())
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.server.blocking_shutdown(Duration::ZERO);
    }
}

impl Tasks for Calls {
    async fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        expect_len(self.client.call(self.to, request.clone()).await?.len(), response)
    }
}

impl Flood for OnTokio<Calls> {
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let endpoint = self.tasks.client.clone();
        let to = self.tasks.to;
        let bytes = message(len, 0);
        flood(&self.runtime, in_flight, period, move || {
            let endpoint = endpoint.clone();
            let bytes = bytes.clone();
            async move {
                endpoint.send(to, bytes).await?;
                Ok(())
            }
        })
    }

    fn answers(&self) -> Option<u64> {
        Some(self.tasks.server.counters().io.datagrams_sent)
    }
}
