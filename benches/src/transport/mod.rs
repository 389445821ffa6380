//! Calls by TCP, HTTP/2, QUIC and Cloudburst: a request, and a response as long as the request says.
//!
//! A rival is compared with what waits for packets in the same way:
//!
//! | waits | rivals |
//! |---|---|
//! | asleep in a system call | [`Tcp`], [`Messages`] with `busy_poll` 0 |
//! | spinning | [`Tcp`] with non-blocking sockets, [`Messages`] |
//! | as a task of a runtime | [`TcpTasks`], [`Http2`], [`Quic`], [`Calls`] |
//!
//! Each end is a thread on a CPU of its own, with a runtime of its own if it needs one. Sessions and connections are
//! opened before the first call, and kept. TCP and HTTP/2 are in the clear; QUIC and Cloudburst seal with AES-128-GCM.

mod cloudburst;
mod http2;
mod quic;
mod tcp;
mod tcp_tasks;

pub use cloudburst::{Calls, KEY, Messages, builder, config};
pub use http2::Http2;
pub use quic::Quic;
pub use tcp::Tcp;
pub use tcp_tasks::TcpTasks;

use crate::Result;
use crate::ends::End;
use bytes::Bytes;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tokio::time::timeout;

/// Bytes of a request.
pub const REQUEST: usize = 1_500;
/// The longest response, and the longest message.
pub const LONGEST: usize = 93_000;
/// The timeout of an operation.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// The client's end of a transport, whose connection to its server is open.
pub trait Transport {
    /// Makes `count` calls, one after the other, and returns how long each took, from before the request was sent
    /// until the whole response had arrived. Ends early after `limit`.
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>>;
}

/// A transport that can have many messages in flight.
pub trait Flood {
    /// Keeps `in_flight` messages of `len` bytes in flight for `period`, then waits for the last. A message counts
    /// when the sender knows that the receiver has it. Returns the number of messages and the total time.
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)>;

    /// Returns the packets that the server has sent since it was opened, if the transport reports them. In a flood,
    /// it sends only answers.
    fn answers(&self) -> Option<u64> {
        None
    }
}

/// Bytes of the header that [`message`] writes.
const HEADER: usize = 8;

/// Returns a message of `len` bytes that contains its length, and the length of its answer.
pub fn message(len: usize, answer: usize) -> Bytes {
    let mut bytes = vec![0x5a; len];
    bytes[..4].copy_from_slice(&(len as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&(answer as u32).to_be_bytes());
    bytes.into()
}

/// Returns the bytes of the message that begins with `header`, and of its answer.
fn lengths(header: &[u8]) -> (usize, usize) {
    let field = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i])) as usize;
    (field(0), field(4))
}

fn expect_len(got: usize, expected: usize) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(format!("the response has {got} bytes instead of {expected}").into())
}

/// The client's end of a transport whose calls return when they are done.
trait Blocking {
    fn call(&mut self, request: &Bytes, response: usize) -> Result<()>;
}

impl<T: Blocking> Transport for T {
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>> {
        let request = message(REQUEST, response);
        let mut took = Vec::with_capacity(count);
        let begun = Instant::now();
        while took.len() < count && begun.elapsed() < limit {
            let start = Instant::now();
            self.call(&request, response)?;
            took.push(start.elapsed());
        }
        Ok(took)
    }
}

/// The client's end of a transport whose calls are futures.
trait Tasks {
    fn call(&mut self, request: &Bytes, response: usize) -> impl Future<Output = Result<()>>;
}

/// A client on a tokio runtime of its own, in the calling thread.
#[derive(Debug)]
pub struct OnTokio<T> {
    tasks: T,
    runtime: Runtime,
}

impl<T> OnTokio<T> {
    fn open(opening: impl Future<Output = Result<T>>) -> Result<Self> {
        let runtime = runtime()?;
        let tasks = runtime.block_on(async { timeout(PATIENCE, opening).await? })?;
        Ok(Self { tasks, runtime })
    }
}

impl<T: Tasks> Transport for OnTokio<T> {
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>> {
        let request = message(REQUEST, response);
        let begun = Instant::now();
        let all = async {
            let mut took = Vec::with_capacity(count);
            while took.len() < count && begun.elapsed() < limit {
                let start = Instant::now();
                self.tasks.call(&request, response).await?;
                took.push(start.elapsed());
            }
            Ok(took)
        };
        self.runtime.block_on(async { timeout(limit + PATIENCE, all).await? })
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Runs `in_flight` tasks for `period`, each of which delivers messages one after the other. Returns the number of
/// messages and the total time.
pub fn flood<F: Future<Output = Result<()>> + 'static>(
    runtime: &Runtime,
    in_flight: usize,
    period: Duration,
    deliver: impl Fn() -> F + Clone + 'static,
) -> Result<(usize, Duration)> {
    let begun = Instant::now();
    let tasks = LocalSet::new();
    let senders: Vec<_> = (0..in_flight)
        .map(|_| {
            let deliver = deliver.clone();
            tasks.spawn_local(async move {
                let mut done = 0;
                while begun.elapsed() < period {
                    deliver().await?;
                    done += 1;
                }
                Ok::<usize, Box<dyn std::error::Error + Send + Sync>>(done)
            })
        })
        .collect();
    let all = tasks.run_until(async {
        let mut done = 0;
        for sender in senders {
            done += sender.await??;
        }
        Ok((done, begun.elapsed()))
    });
    runtime.block_on(async { timeout(period + PATIENCE, all).await? })
}

/// Starts a server in a thread of this end, which ends with the server.
fn spawn(end: &End, serve: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    end.run(move || {
        thread::spawn(move || {
            if let Err(error) = serve() {
                eprintln!("a server ended: {error}");
            }
        });
        Ok(())
    })
}

/// Starts a server in a thread of this end, and returns what it reports when it is ready.
fn start<T: Send + 'static>(
    end: &End,
    serve: impl FnOnce(mpsc::Sender<T>) -> Result<()> + Send + 'static,
) -> Result<T> {
    let (ready, report) = mpsc::channel();
    spawn(end, move || serve(ready))?;
    Ok(report.recv()?)
}
