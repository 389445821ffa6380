//! QUIC by quinn: one connection to each peer, a bidirectional stream for each call.
//!
//! A host serves and asks at one UDP port, on one thread that owns its runtime; calls hand it a
//! task and wait. As all packets between two hosts have the same ports, ECMP gives them one path.

mod config;
#[cfg(test)]
mod tests;

use super::{Ask, Asked, HEADER, LONGEST, Listening, Peer, Transport};
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

/// Connections that are open at once; more are refused.
const MOST_CONNECTIONS: usize = 4096;

/// How long the end of a connection may take when the host stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a stream that asks for nonsense is reset with, and what a host that stops closes with.
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
    /// Listens at a port of the kernel's choice, at all addresses of the calling thread's network
    /// namespace.
    ///
    /// # Errors
    ///
    /// When there is no socket, no certificate or no thread.
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
        let (own, quinn) = (EndpointConfig::default(), Arc::new(TokioRuntime));
        Endpoint::new(own, Some(config), socket, quinn).map_err(text)?
    };
    let ports = vec![endpoint.local_addr().map_err(text)?.port()];
    let (handle, served) = (runtime.handle().clone(), endpoint.clone());
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
                return Err(blame("it names no port that it listens at".into()));
            };
            let address = SocketAddr::new(peer.address, port);
            let config = config::client(&peer.listening.certificate).map_err(blame)?;
            Ok(Arc::new(Remote { host, address, config, connection: Mutex::default() }))
        });
        let remotes = remotes.collect::<Result<_, _>>().map_err(Failure::transport(TRANSPORT))?;
        let again = |_| "told twice who its peers are";
        self.remotes.set(remotes).map_err(again).map_err(Failure::transport(TRANSPORT))
    }

    fn call(&self, ask: Ask) -> Result<(), String> {
        let until = Instant::now() + ask.within;
        let remotes = self.remotes.get().ok_or("called before it was told who its peers are")?;
        let place = usize::from(ask.to).checked_sub(1);
        let remote = place.and_then(|place| remotes.get(place));
        let Some(remote) = remote.cloned() else {
            return Err(format!("there is no host {}: there are {}", ask.to, remotes.len()));
        };
        let endpoint = self.endpoint.clone();
        let (tell, told) = oneshot::channel();
        self.runtime.spawn(async move {
            // Nobody listens any more only if the caller's thread has panicked.
            let _ = tell.send(remote.call(&endpoint, ask, until).await);
        });
        told.blocking_recv().unwrap_or_else(|_| Err("this host stops".into()))
    }
}

/// A peer, and the connection to it.
struct Remote {
    host: u16,
    address: SocketAddr,
    config: ClientConfig,
    /// Locked while it is being opened: calls that come meanwhile share it.
    connection: Mutex<Option<Connection>>,
}

impl Remote {
    async fn call(&self, endpoint: &Endpoint, ask: Ask, until: Instant) -> Result<(), String> {
        let within = ask.within;
        let connection = timeout_at(until, self.connection(endpoint)).await;
        let late = |_| self.blame(format!("not connected within {within:?}"));
        let connection = connection.map_err(late)?.map_err(|reason| self.blame(reason))?;
        let response = timeout_at(until, exchange(&connection, ask)).await;
        let late = |_| self.blame(format!("no whole response within {within:?}"));
        response.map_err(late)?.map_err(|reason| self.blame(reason))
    }

    /// The connection; opens it if there is none yet, or if it was lost.
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

async fn exchange(connection: &Connection, ask: Ask) -> Result<(), String> {
    let (mut request, mut response) = connection.open_bi().await.map_err(text)?;
    let sent = async {
        request.write_chunk(ask.encode().into()).await?;
        request.finish()?;
        Ok::<_, quinn::WriteError>(())
    };
    sent.await.map_err(|reason| format!("the request is not sent: {reason}"))?;
    let whole = response.read_to_end(ask.response).await;
    let got = whole.map_err(|reason| format!("no whole response: {reason}"))?.len();
    if got < ask.response {
        return Err(format!("{got} of {} bytes of the response came, and no more", ask.response));
    }
    Ok(())
}

/// Responds until the endpoint is closed, and says farewell.
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
        // Peers that hear of it need not wait until they take the connection for lost.
        let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    });
}

async fn serve_connection(incoming: Incoming, answer: Bytes) {
    let Ok(connection) = incoming.await else { return };
    while let Ok((mut response, mut request)) = connection.accept_bi().await {
        let answer = answer.clone();
        tokio::spawn(async move {
            if respond(&mut request, &mut response, &answer).await.is_none() {
                // Both fail only when the peer has already given up.
                let _ = request.stop(NO_REQUEST);
                let _ = response.reset(NO_REQUEST);
            }
        });
    }
}

/// Sends what is asked for; `None` if it is no request, or nobody waits for it.
async fn respond(
    request: &mut RecvStream,
    response: &mut SendStream,
    answer: &Bytes,
) -> Option<()> {
    let mut header = [0; HEADER];
    request.read_exact(&mut header).await.ok()?;
    let asked = Asked::decode(&header)?;
    let mut got = HEADER;
    while let Some(chunk) = request.read_chunk(LONGEST, true).await.ok()? {
        got += chunk.bytes.len();
        if got > asked.request {
            return None;
        }
    }
    if got < asked.request {
        return None;
    }
    response.write_chunk(answer.slice(..asked.response)).await.ok()?;
    response.finish().ok()
}

fn text(error: impl Display) -> String {
    error.to_string()
}
