//! QUIC by quinn: one connection, a stream for each message, AES-128-GCM as in Cloudburst.
//!
//! Each end runs on its own thread, without work stealing, which minimises hand-offs on two cores.
//! quinn's settings for the internet are replaced by settings for one hop: packets as large as
//! Cloudburst's from the start, a large initial window, acknowledgements after at most 1 ms, windows
//! that never close, and sockets with the same buffers as Cloudburst's.

use crate::transport::{LONGEST, PATIENCE, REQUEST, Result, Transport};
use crate::transport::{expect_len, lengths, message, text};
use cloudburst_net::DEFAULT_SOCKET_BUFFERS;
use cloudburst_testbed::{End, Wire};
use nix::sys::socket::{setsockopt, sockopt};
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::crypto::{CryptoProvider, ring};
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::rustls::{self, RootCertStore, version::TLS13};
use quinn::{AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig};
use quinn::{ServerConfig, TokioRuntime, TransportConfig};
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tokio::time::timeout;

const NAME: &str = "server";

pub(crate) struct Quic {
    runtime: Runtime,
    connection: Connection,
    /// Sends and receives until it is dropped.
    _endpoint: Endpoint,
}

impl Quic {
    pub(crate) fn open(wire: &Wire) -> Result<Self> {
        let key = rcgen::generate_simple_self_signed([NAME.into()]).map_err(text)?;
        let mut trusted = RootCertStore::empty();
        trusted.add(key.cert.der().clone()).map_err(text)?;

        let tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(text)?
            .with_no_client_auth()
            .with_single_cert(
                vec![key.cert.der().clone()],
                PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
            )
            .map_err(text)?;
        let tls = QuicServerConfig::try_from(tls).map_err(text)?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport());
        let socket = open_socket(&wire.right)?;
        let server = socket.local_addr().map_err(text)?;
        // It ends with the process: otherwise quinn's server would need a signal.
        wire.right.run(move || drop(thread::spawn(move || serve(config, socket))));

        let tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(text)?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let tls = QuicClientConfig::try_from(tls).map_err(text)?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(transport());
        let socket = open_socket(&wire.left)?;
        let runtime = runtime()?;
        let (endpoint, connection) = runtime.block_on(async {
            let endpoint = endpoint(None, socket)?;
            let connecting = endpoint.connect_with(config, server, NAME).map_err(text)?;
            let connection = timeout(PATIENCE, connecting).await.map_err(text)?.map_err(text)?;
            Ok::<_, String>((endpoint, connection))
        })?;
        Ok(Self { runtime, connection, _endpoint: endpoint })
    }
}

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

fn transport() -> Arc<TransportConfig> {
    let mut congestion = CubicConfig::default();
    congestion.initial_window(4 << 20);
    let mut acknowledge = AckFrequencyConfig::default();
    acknowledge.max_ack_delay(Some(Duration::from_millis(1)));
    let mut config = TransportConfig::default();
    config
        .initial_mtu(1452)
        .mtu_discovery_config(None)
        .initial_rtt(Duration::from_millis(1))
        .congestion_controller_factory(Arc::new(congestion))
        .ack_frequency_config(Some(acknowledge))
        .stream_receive_window((1_u32 << 20).into())
        .receive_window((64_u32 << 20).into())
        .send_window(64 << 20)
        .max_concurrent_uni_streams(1024_u32.into())
        // The client is idle while others are measured.
        .max_idle_timeout(None);
    Arc::new(config)
}

fn open_socket(end: &End) -> Result<UdpSocket> {
    let address: SocketAddr = (end.address(), 0).into();
    let open = move || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        setsockopt(&socket, sockopt::RcvBufForce, &DEFAULT_SOCKET_BUFFERS)?;
        setsockopt(&socket, sockopt::SndBufForce, &DEFAULT_SOCKET_BUFFERS)?;
        socket.bind(&address.into())?;
        Ok::<UdpSocket, std::io::Error>(socket.into())
    };
    end.run(open).map_err(text)
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().map_err(text)
}

fn endpoint(config: Option<ServerConfig>, socket: UdpSocket) -> Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime)).map_err(text)
}

fn serve(config: ServerConfig, socket: UdpSocket) -> Result<()> {
    runtime()?.block_on(async {
        let endpoint = endpoint(Some(config), socket)?;
        let incoming = endpoint.accept().await.ok_or("quinn's server takes no connection")?;
        let connection = incoming.await.map_err(text)?;
        let floods = connection.clone();
        tokio::spawn(async move {
            while let Ok(mut messages) = floods.accept_uni().await {
                tokio::spawn(async move { messages.read_to_end(LONGEST).await });
            }
        });
        let answer = message(LONGEST, 0);
        while let Ok((mut responses, mut requests)) = connection.accept_bi().await {
            let request = requests.read_to_end(LONGEST).await.map_err(text)?;
            let (_, response) = lengths(&request);
            responses.write_all(&answer[..response]).await.map_err(text)?;
            responses.finish().map_err(text)?;
        }
        Ok(())
    })
}

async fn round_trip(connection: &Connection, request: &[u8], response: usize) -> Result<()> {
    let (mut requests, mut responses) = connection.open_bi().await.map_err(text)?;
    requests.write_all(request).await.map_err(text)?;
    requests.finish().map_err(text)?;
    expect_len(responses.read_to_end(LONGEST).await.map_err(text)?.len(), response)
}

impl Transport for Quic {
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
                round_trip(&self.connection, &request, response).await?;
                took.push(start.elapsed());
            }
            Ok(took)
        };
        self.runtime.block_on(async { timeout(limit + PATIENCE, all).await.map_err(text)? })
    }

    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let begun = Instant::now();
        let tasks = LocalSet::new();
        let mut senders = Vec::new();
        for _ in 0..in_flight {
            let connection = self.connection.clone();
            let bytes = message(len, 0);
            senders.push(tasks.spawn_local(async move {
                let mut done = 0;
                while begun.elapsed() < period {
                    let mut messages = connection.open_uni().await.map_err(text)?;
                    messages.write_all(&bytes).await.map_err(text)?;
                    messages.finish().map_err(text)?;
                    // It resolves when all data are acknowledged.
                    messages.stopped().await.map_err(text)?;
                    done += 1;
                }
                Ok::<usize, String>(done)
            }));
        }
        let all = tasks.run_until(async {
            let mut done = 0;
            for sender in senders {
                done += sender.await.map_err(text)??;
            }
            Ok((done, begun.elapsed()))
        });
        self.runtime.block_on(async { timeout(period + PATIENCE, all).await.map_err(text)? })
    }
}
