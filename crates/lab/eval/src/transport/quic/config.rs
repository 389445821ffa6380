//! QUIC as an operator would configure it in a data centre: links of 100 Mb/s to 10 Gb/s, round
//! trips of 0.1 to 1 ms, and an MTU of 1500 bytes everywhere.

use super::text;
use crate::transport::LONGEST;
use cloudburst_net::DEFAULT_SOCKET_BUFFERS;
use core::time::Duration;
use nix::sys::socket::{setsockopt, sockopt};
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::crypto::{CryptoProvider, ring};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore, version::TLS13};
use quinn::{AckFrequencyConfig, ClientConfig, ServerConfig, TransportConfig, VarInt};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// The name in every certificate: a peer is identified by its certificate, not by its name.
pub(super) const NAME: &str = "host";

/// The number of calls that one connection carries at once.
const MOST_CALLS: u32 = 4096;

/// A window in bytes that a connection never fills in these networks.
const WINDOW: u32 = 64 << 20;

/// The idle timeout of a connection, and the interval of its keep-alives.
const LOST: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// A server with a new key, and its certificate.
pub(super) fn server() -> Result<(ServerConfig, Vec<u8>), String> {
    let key = rcgen::generate_simple_self_signed([NAME.into()]).map_err(text)?;
    let certificate = key.cert.der().to_vec();
    let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(text)?
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private.into())
        .map_err(text)?;
    let tls = QuicServerConfig::try_from(tls).map_err(text)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    Ok((config, certificate))
}

/// A client that trusts this certificate and no other.
pub(super) fn client(certificate: &[u8]) -> Result<ClientConfig, String> {
    let mut trusted = RootCertStore::empty();
    let certificate = CertificateDer::from(certificate.to_vec());
    trusted.add(certificate).map_err(|reason| format!("its certificate is unusable: {reason}"))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(text)?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let tls = QuicClientConfig::try_from(tls).map_err(text)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    Ok(config)
}

/// AES-128-GCM, which Cloudburst uses too.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

fn transport() -> Arc<TransportConfig> {
    let mut acknowledge = AckFrequencyConfig::default();
    // QUIC gets what an operator would give it: Cloudburst's packet size, cipher and buffers, a
    // window that never closes, and acknowledgements in time.
    acknowledge.max_ack_delay(Some(Duration::from_millis(1)));
    let mut config = TransportConfig::default();
    config
        .initial_mtu(1452)
        .mtu_discovery_config(None)
        .initial_rtt(Duration::from_millis(1))
        // The initial window is that of RFC 9002: 10 packets, as in the kernel's TCP.
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .ack_frequency_config(Some(acknowledge))
        .stream_receive_window(VarInt::from_u32(LONGEST as u32))
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .max_concurrent_bidi_streams(MOST_CALLS.into())
        .max_concurrent_uni_streams(0_u32.into())
        .max_idle_timeout(Some(VarInt::from_u32(LOST.as_millis() as u32).into()))
        .keep_alive_interval(Some(KEEP_ALIVE));
    Arc::new(config)
}

/// A socket on all addresses, with Cloudburst's buffer sizes as far as the system permits them.
pub(super) fn socket() -> Result<UdpSocket, String> {
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.set_recv_buffer_size(DEFAULT_SOCKET_BUFFERS)?;
        socket.set_send_buffer_size(DEFAULT_SOCKET_BUFFERS)?;
        // Beyond net.core.rmem_max and wmem_max, with CAP_NET_ADMIN only.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &DEFAULT_SOCKET_BUFFERS);
        let _ = setsockopt(&socket, sockopt::SndBufForce, &DEFAULT_SOCKET_BUFFERS);
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
        Ok(socket.into())
    };
    open().map_err(|reason: io::Error| format!("cannot open a UDP socket: {reason}"))
}
