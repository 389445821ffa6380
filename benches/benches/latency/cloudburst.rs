//! Cloudburst with its defaults: sealed with a shared key, 16 source ports.

use crate::transport::{LONGEST, PATIENCE, REQUEST, Result, Transport};
use crate::transport::{expect_len, lengths, message, text};
use cloudburst_net::blocking::Endpoint;
use cloudburst_net::{Bytes, Code, Config, Security};
use cloudburst_testbed::{End, Wire};
use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// The wire has no rate limit: with this capacity, the processors are the limit, as for the others.
const CAPACITY: u64 = 100_000_000_000;

pub(crate) struct Cloudburst {
    client: Endpoint,
    server: Endpoint,
    address: SocketAddr,
    runtime: Runtime,
}

/// The memory held while the application takes no messages.
pub(crate) struct Memory {
    pub(crate) messages: usize,
    /// Messages that the receiver's application could take, or that only wait for capacity there.
    pub(crate) received: usize,
    /// The growth of resident bytes, at both ends together.
    pub(crate) grown: usize,
    /// The limit by the configurations of both ends.
    pub(crate) bound: usize,
}

impl Cloudburst {
    pub(crate) fn open(wire: &Wire) -> Result<Self> {
        Self::open_with(wire, &Config::default())
    }

    pub(crate) fn open_with(wire: &Wire, config: &Config) -> Result<Self> {
        let this = Self::open_silent(wire, config)?;
        let server = this.server.clone();
        // It ends after the last round, when the client closes its server.
        wire.right.run(move || drop(thread::spawn(move || serve(&server))));
        this.warm_up()
    }

    /// Opens it with a server whose application takes no messages.
    fn open_silent(wire: &Wire, config: &Config) -> Result<Self> {
        let client = endpoint(&wire.left, config)?;
        let server = endpoint(&wire.right, config)?;
        let address = server.local_addr();
        let runtime = Builder::new_current_thread().enable_io().build().map_err(text)?;
        Ok(Self { client, server, address, runtime })
    }

    /// Opens the session.
    fn warm_up(self) -> Result<Self> {
        self.client.send(self.address, message(REQUEST, 0)).map_err(text)?;
        Ok(self)
    }

    fn round_trip(&self, request: &Bytes, response: usize) -> Result<()> {
        let sending = self.client.try_send(self.address, request.clone()).map_err(text)?;
        let received = self.client.recv_timeout(PATIENCE).map_err(text)?;
        let received = received.ok_or_else(|| format!("no response within {PATIENCE:?}"))?;
        expect_len(received.bytes.len(), response)?;
        sending.wait().map_err(text)?;
        Ok(())
    }

    /// Returns the mean number of packets sent per source symbol, over `count` messages of `len`
    /// bytes, each sent when the previous one has arrived.
    pub(crate) fn packets_per_symbol(&self, len: usize, count: usize) -> Result<f64> {
        let bytes = Bytes::from(message(len, 0));
        let mut packets = 0;
        let mut symbols = 0;
        for _ in 0..count {
            let receipt = self.client.send(self.address, bytes.clone()).map_err(text)?;
            packets += receipt.packets;
            symbols += receipt.source_symbols;
        }
        Ok(packets as f64 / symbols as f64)
    }

    /// Sends `messages` of `len` bytes each, which the application does not take, and measures the
    /// memory when the receiver is full.
    pub(crate) fn memory(wire: &Wire, messages: usize, len: usize) -> Result<Memory> {
        let config = Config::default();
        let this = Self::open_silent(wire, &config)?.warm_up()?;
        let before = resident()?;
        let mut under_way = Vec::with_capacity(messages);
        for _ in 0..messages {
            let sending = this
                .client
                .as_async()
                .send(this.address, message(len, 0))
                .deadline(PATIENCE * 4)
                .begin();
            under_way.push(sending.map_err(text)?);
        }
        let begun = Instant::now();
        let mut seen = 0;
        loop {
            thread::sleep(Duration::from_millis(250));
            let useful = this.server.counters().receiver.useful_symbols;
            if useful == seen || begun.elapsed() > PATIENCE {
                break;
            }
            seen = useful;
        }
        let grown = resident()?.saturating_sub(before);
        let limits = config.limits();
        let symbols = len.div_ceil(config.max_symbol(Code::default(), 28));
        Ok(Memory {
            messages,
            received: seen as usize / symbols,
            grown,
            bound: limits.send_bytes + limits.receive_bytes + limits.decode_bytes_per_peer,
        })
    }
}

impl Drop for Cloudburst {
    fn drop(&mut self) {
        self.server.shutdown(Duration::ZERO);
    }
}

fn endpoint(end: &End, config: &Config) -> Result<Endpoint> {
    let bind = (end.address(), 0).into();
    let config = Config { capacity: CAPACITY.into(), ..config.clone() };
    let build = move || {
        cloudburst_net::Endpoint::builder()
            .bind(bind)
            .config(config)
            .security(Security::pre_shared([7; 32]))
            .build()
    };
    Ok(end.run(build).map_err(text)?.blocking())
}

/// Answers requests. It waits for the delivery of an answer only after it has sent the next one: the
/// client's next request shows that the answer has arrived.
fn serve(endpoint: &Endpoint) -> Result<()> {
    let answer = Bytes::from(message(LONGEST, 0));
    let mut previous = None;
    while let Ok(request) = endpoint.recv() {
        let (_, response) = lengths(&request.bytes);
        if response > 0 {
            let bytes = answer.slice(..response);
            let sending = endpoint.try_send(request.peer, bytes).map_err(text)?;
            if let Some(sending) = previous.replace(sending) {
                sending.wait().map_err(text)?;
            }
        }
    }
    Ok(())
}

/// Returns the resident bytes of this process.
fn resident() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status").map_err(text)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    Ok(kib.ok_or("/proc/self/status has no VmRSS")? * 1024)
}

impl Transport for Cloudburst {
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>> {
        let request = Bytes::from(message(REQUEST, response));
        let mut took = Vec::with_capacity(count);
        let begun = Instant::now();
        while took.len() < count && begun.elapsed() < limit {
            let start = Instant::now();
            self.round_trip(&request, response)?;
            took.push(start.elapsed());
        }
        Ok(took)
    }

    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let begun = Instant::now();
        let bytes = Bytes::from(message(len, 0));
        let tasks = LocalSet::new();
        let mut senders = Vec::new();
        for _ in 0..in_flight {
            let endpoint = self.client.as_async().clone();
            let to = self.address;
            let bytes = bytes.clone();
            senders.push(tasks.spawn_local(async move {
                let mut done = 0;
                while begun.elapsed() < period {
                    endpoint.send(to, bytes.clone()).await.map_err(text)?;
                    done += 1;
                }
                Ok::<usize, String>(done)
            }));
        }
        self.runtime.block_on(tasks.run_until(async {
            let mut done = 0;
            for sender in senders {
                done += sender.await.map_err(text)??;
            }
            Ok((done, begun.elapsed()))
        }))
    }

    fn answers(&self) -> Option<u64> {
        Some(self.server.counters().io.datagrams_sent)
    }
}
