//! QUIC by quinn: one connection, a stream for each message, AES-128-GCM as in Cloudburst.
//!
//! quinn's settings for the internet are replaced by settings for one hop: packets as large as Cloudburst's from the
//! start, a large initial window, acknowledgements after at most 1 ms, windows that never close, and sockets with the
//! same buffers as Cloudburst's.

use super::{Flood, LONGEST, OnTokio, Tasks, expect_len, flood, lengths, message, runtime, start};
use crate::Result;
use crate::ends::Ends;
use bytes::Bytes;
use cloudburst_net::DEFAULT_SOCKET_BUFFERS;
use nix::sys::socket::{setsockopt, sockopt};
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::crypto::{CryptoProvider, ring};
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::rustls::{self, RootCertStore, version::TLS13};
use quinn::{AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig};
use quinn::{ServerConfig, TokioRuntime, TransportConfig};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "server";

/// A bidirectional stream for each call.
#[derive(Debug)]
pub struct Quic {
    connection: Connection,
    /// Sends and receives until it is dropped.
    _endpoint: Endpoint,
}

impl Quic {
    /// Opens a connection.
    pub fn open(ends: &Ends) -> Result<OnTokio<Self>> {
        let key = rcgen::generate_simple_self_signed([NAME.into()])?;
        let certificate = key.cert.der().clone();
        let tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.clone()],
                PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
            )?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        config.transport_config(transport());
        let address = ends.server.address();
        let server = start(&ends.server, move |ready| {
            let socket = open_socket(address)?;
            ready.send(socket.local_addr()?)?;
            runtime()?.block_on(async { serve(endpoint(Some(config), socket)?).await })
        })?;

        let mut trusted = RootCertStore::empty();
        trusted.add(certificate)?;
        let tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport());
        let address = ends.client.address();
        let socket = ends.client.run(move || open_socket(address))?;
        OnTokio::open(async {
            let endpoint = endpoint(None, socket)?;
            let connection = endpoint.connect_with(config, server, NAME)?.await?;
            Ok(Self { connection, _endpoint: endpoint })
        })
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

fn open_socket(address: Ipv4Addr) -> Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    setsockopt(&socket, sockopt::RcvBufForce, &DEFAULT_SOCKET_BUFFERS)?;
    setsockopt(&socket, sockopt::SndBufForce, &DEFAULT_SOCKET_BUFFERS)?;
    socket.bind(&SocketAddr::from((address, 0)).into())?;
    Ok(socket.into())
}

fn endpoint(config: Option<ServerConfig>, socket: UdpSocket) -> Result<Endpoint> {
    Ok(Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime))?)
}

async fn serve(endpoint: Endpoint) -> Result<()> {
    let incoming = endpoint.accept().await.ok_or("quinn's server takes no connection")?;
    let connection = incoming.await?;
    let floods = connection.clone();
    tokio::spawn(async move {
        while let Ok(mut messages) = floods.accept_uni().await {
            tokio::spawn(async move { messages.read_to_end(LONGEST).await });
        }
    });
    let answer = message(LONGEST, 0);
    while let Ok((mut responses, mut requests)) = connection.accept_bi().await {
        let request = requests.read_to_end(LONGEST).await?;
        let (_, response) = lengths(&request);
        responses.write_all(&answer[..response]).await?;
        responses.finish()?;
    }
    Ok(())
}

impl Tasks for Quic {
    async fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        let (mut requests, mut responses) = self.connection.open_bi().await?;
        requests.write_all(request).await?;
        requests.finish()?;
        expect_len(responses.read_to_end(LONGEST).await?.len(), response)
    }
}

impl Flood for OnTokio<Quic> {
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let connection = self.tasks.connection.clone();
        let bytes = message(len, 0);
        flood(&self.runtime, in_flight, period, move || {
            let connection = connection.clone();
            let bytes = bytes.clone();
            async move {
                let mut messages = connection.open_uni().await?;
                messages.write_all(&bytes).await?;
                messages.finish()?;
                // It resolves when all data are acknowledged.
                messages.stopped().await?;
                Ok(())
            }
        })
    }
}
