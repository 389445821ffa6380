//! QUIC by quinn: one connection to each peer, and a bidirectional stream for each call.
//!
//! A host sends requests and responds on one UDP port, on one thread that owns its runtime. A call
//! spawns a task there and waits for it. All packets between two hosts have the same ports, so ECMP
//! gives them one path.

mod config;
#[cfg(test)]
mod tests;

use super::{Call, HEADER, LONGEST, Listening, Peer, RequestHeader, Transport};
use crate::Failure;
use bytes::Bytes;
use core::fmt::Display;
use core::time::Duration;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, Incoming};
use quinn::{RecvStream, SendStream, TokioRuntime, VarInt};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

const TRANSPORT: &str = "QUIC";

/// The number of connections that may be open at once. Further ones are refused.
const MOST_CONNECTIONS: usize = 4096;

/// How long the end of a connection may take when the host stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// The error codes that reset a stream with an invalid request, and close a host's connections.
const NO_REQUEST: VarInt = VarInt::from_u32(1);
const STOPPED: VarInt = VarInt::from_u32(0);

/// One host's end.
pub(crate) struct Quic {
    endpoint: Endpoint,
    listening: Listening,
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
    remotes: OnceLock<Vec<Arc<Remote>>>,
}

impl Quic {
    /// Listens on all addresses of the calling thread's network namespace, on a port that the kernel
    /// chooses.
    ///
    /// # Errors
    ///
    /// If a socket, a certificate or a thread cannot be created.
    pub(crate) fn open() -> Result<Self, Failure> {
        open().map_err(Failure::transport(TRANSPORT))
    }
}

fn open() -> Result<Quic, String> {
    let (config, certificate) = config::server()?;
    let socket = config::socket()?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(text)?;
    let endpoint = {
        let _context = runtime.enter();
        let own = EndpointConfig::default();
        let quinn = Arc::new(TokioRuntime);
        Endpoint::new(own, Some(config), socket, quinn).map_err(text)?
    };
    let ports = vec![endpoint.local_addr().map_err(text)?.port()];
    let handle = runtime.handle().clone();
    let served = endpoint.clone();
    let thread = thread::Builder::new().name("quic".into());
    let thread = thread.spawn(move || serve(&runtime, &served)).map_err(text)?;
    Ok(Quic {
        endpoint,
        listening: Listening { ports, certificate },
        runtime: handle,
        thread: Some(thread),
        remotes: OnceLock::new(),
    })
}

impl Drop for Quic {
    fn drop(&mut self) {
        self.endpoint.close(STOPPED, b"the host stops");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Transport for Quic {
    fn listening(&self) -> Listening {
        self.listening.clone()
    }

    fn connect(&self, peers: &[Peer]) -> Result<(), Failure> {
        let remotes = (1..).zip(peers).map(|(host, peer)| {
            let blame = |reason| format!("host {host}: {reason}");
            let [port, ..] = peer.listening.ports[..] else {
                return Err(blame("it has no listening port".into()));
            };
            let address = SocketAddr::new(peer.address, port);
            let config = config::client(&peer.listening.certificate).map_err(blame)?;
            Ok(Arc::new(Remote { host, address, config, connection: Mutex::default() }))
        });
        let remotes = remotes.collect::<Result<_, _>>().map_err(Failure::transport(TRANSPORT))?;
        let again = |_| "connected twice";
        self.remotes.set(remotes).map_err(again).map_err(Failure::transport(TRANSPORT))
    }

    fn call(&self, call: Call) -> Result<(), String> {
        let until = Instant::now() + call.within;
        let remotes = self.remotes.get().ok_or("called before it was connected")?;
        let place = usize::from(call.to).checked_sub(1);
        let remote = place.and_then(|place| remotes.get(place));
        let Some(remote) = remote.cloned() else {
            return Err(format!("no host {}: there are {}", call.to, remotes.len()));
        };
        let endpoint = self.endpoint.clone();
        let (sender, receiver) = oneshot::channel();
        self.runtime.spawn(async move {
            // This fails only if the caller's thread has panicked.
            let _ = sender.send(remote.call(&endpoint, call, until).await);
        });
        receiver.blocking_recv().unwrap_or_else(|_| Err("this host is stopping".into()))
    }
}

/// A peer, and the connection to it.
struct Remote {
    host: u16,
    address: SocketAddr,
    config: ClientConfig,
    /// Locked while it is being opened, so that concurrent calls share it.
    connection: Mutex<Option<Connection>>,
}

impl Remote {
    async fn call(&self, endpoint: &Endpoint, call: Call, until: Instant) -> Result<(), String> {
        let within = call.within;
        let connection = timeout_at(until, self.connection(endpoint)).await;
        let late = |_| self.blame(format!("not connected within {within:?}"));
        let connection = connection.map_err(late)?.map_err(|reason| self.blame(reason))?;
        let response = timeout_at(until, exchange(&connection, call)).await;
        let late = |_| self.blame(format!("no complete response within {within:?}"));
        response.map_err(late)?.map_err(|reason| self.blame(reason))
    }

    /// Returns the connection, and opens it if there is none or it was lost.
    async fn connection(&self, endpoint: &Endpoint) -> Result<Connection, String> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept
            && connection.close_reason().is_none()
        {
            return Ok(connection.clone());
        }
        let config = self.config.clone();
        let connecting = endpoint.connect_with(config, self.address, config::NAME).map_err(text)?;
        let connection = connecting.await.map_err(|reason| format!("not connected: {reason}"))?;
        Ok(kept.insert(connection).clone())
    }

    fn blame(&self, reason: impl Display) -> String {
        format!("host {} at {}: {reason}", self.host, self.address)
    }
}

async fn exchange(connection: &Connection, call: Call) -> Result<(), String> {
    let (mut request, mut response) = connection.open_bi().await.map_err(text)?;
    let sent = async {
        request.write_chunk(call.encode().into()).await?;
        request.finish()?;
        Ok::<_, quinn::WriteError>(())
    };
    sent.await.map_err(|reason| format!("cannot send the request: {reason}"))?;
    let whole = response.read_to_end(call.response).await;
    let got = whole.map_err(|reason| format!("no complete response: {reason}"))?.len();
    if got < call.response {
        return Err(format!("only {got} of {} bytes of the response received", call.response));
    }
    Ok(())
}

/// Responds until the endpoint is closed, and then waits for its connections to close.
fn serve(runtime: &Runtime, endpoint: &Endpoint) {
    let answer = Bytes::from(vec![0x5a; LONGEST]);
    runtime.block_on(async {
        while let Some(incoming) = endpoint.accept().await {
            if endpoint.open_connections() >= MOST_CONNECTIONS {
                incoming.refuse();
                continue;
            }
            tokio::spawn(serve_connection(incoming, answer.clone()));
        }
        // Peers that receive the close need not wait for their idle timeout.
        let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    });
}

async fn serve_connection(incoming: Incoming, answer: Bytes) {
    let Ok(connection) = incoming.await else { return };
    while let Ok((mut response, mut request)) = connection.accept_bi().await {
        let answer = answer.clone();
        tokio::spawn(async move {
            if respond(&mut request, &mut response, &answer).await.is_none() {
                // These fail only if the peer has already given up.
                let _ = request.stop(NO_REQUEST);
                let _ = response.reset(NO_REQUEST);
            }
        });
    }
}

/// Sends the response. `None` if the request is invalid, or the peer has given up.
async fn respond(
    request: &mut RecvStream,
    response: &mut SendStream,
    answer: &Bytes,
) -> Option<()> {
    let mut header = [0; HEADER];
    request.read_exact(&mut header).await.ok()?;
    let header = RequestHeader::decode(&header)?;
    let mut got = HEADER;
    while let Some(chunk) = request.read_chunk(LONGEST, true).await.ok()? {
        got += chunk.bytes.len();
        if got > header.request {
            return None;
        }
    }
    if got < header.request {
        return None;
    }
    response.write_chunk(answer.slice(..header.response)).await.ok()?;
    response.finish().ok()
}

fn text(error: impl Display) -> String {
    error.to_string()
}
