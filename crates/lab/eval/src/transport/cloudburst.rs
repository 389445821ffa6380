//! Cloudburst: one endpoint on each host, or several if each message uses one path.

use super::{Call, Listening, Peer, Reply, RequestHeader, Transport};
use crate::Failure;
use crate::scheme::{CloudburstSettings, Paths};
use cloudburst_net::{Bytes, Endpoint, PathMap, Security, SendOptions};
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::task::JoinSet;

const NAME: &str = "Cloudburst";
/// The number of responding endpoints if each message uses one path. Each has one source port, which
/// switches hash onto some path, and requests go to a random one.
const SINGLE_PATHS: usize = 8;
/// The largest number of responses under way. Further requests are not answered.
const MAX_REPLIES: usize = 16_384;
/// How often to check for the last responses.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) struct Cloudburst {
    /// The first one sends requests. All respond.
    endpoints: Vec<Endpoint>,
    peers: OnceLock<Vec<Peer>>,
    replies: Arc<Replies>,
    serving: Option<JoinHandle<()>>,
}

/// The records of responses.
#[derive(Default)]
struct Replies {
    ended: Mutex<Vec<Reply>>,
    under_way: AtomicUsize,
}

impl Cloudburst {
    /// Opens the endpoints. `hosts` are those whose ports [`Transport::connect`] will set. `dscps` are
    /// those of answers and of each class.
    pub(crate) fn open(
        settings: &CloudburstSettings,
        capacity: u64,
        hosts: &[Peer],
        dscps: &[u8],
        key: [u8; 32],
    ) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(Failure::io("cannot start an async runtime"))?;
        let count = if settings.is_spread() { 1 } else { SINGLE_PATHS };
        let map = paths(settings, hosts)?;
        let mut config = settings.config();
        config.capacity = capacity.into();
        config.fabric.dscps = dscps.to_vec();
        let open = |_| {
            Endpoint::builder()
                .bind((Ipv4Addr::UNSPECIFIED, 0).into())
                .paths(map.clone())
                .config(config.clone())
                .security(Security::pre_shared(key))
                .build()
        };
        let endpoints: Vec<Endpoint> = (0..count).map(open).collect::<Result<_, _>>()?;
        let replies = Arc::<Replies>::default();
        let serving = {
            let endpoints = endpoints.clone();
            let replies = replies.clone();
            let serve = move || {
                runtime.block_on(async {
                    let each = endpoints.into_iter().map(|one| serve(one, replies.clone()));
                    each.collect::<JoinSet<()>>().join_all().await;
                });
            };
            thread::Builder::new().name("responding".into()).spawn(serve)
        };
        let serving = Some(serving.map_err(Failure::io("cannot start a thread"))?);
        Ok(Self { endpoints, peers: OnceLock::new(), replies, serving })
    }
}

/// The path map. The library reads one with paths for each destination from a file.
fn paths(settings: &CloudburstSettings, hosts: &[Peer]) -> Result<PathMap, Failure> {
    if !settings.is_spread() {
        return Ok(PathMap::ecmp(1));
    }
    let map = match &settings.paths {
        Paths::Map(map) => return Ok(map.clone()),
        Paths::Explicit => table(hosts)?,
    };
    let unwritable = || Failure::io("cannot write a temporary file for the paths");
    let file = tempfile::NamedTempFile::new().map_err(unwritable())?;
    std::fs::write(file.path(), map).map_err(unwritable())?;
    read(file.path())
}

fn read(path: &Path) -> Result<PathMap, Failure> {
    let map = format!("file:{}", path.display()).parse();
    map.map_err(Failure::transport(NAME))
}

/// The file of a path map: for each host, its address and those of its paths.
fn table(hosts: &[Peer]) -> Result<String, Failure> {
    let mut text = String::new();
    for host in hosts {
        if host.path_addresses.is_empty() {
            return Err(Failure::Usage(format!(
                "paths=explicit: host {} has no addresses for its paths: use paths=ecmp:N, or add \
                 its `path_addresses`",
                host.address
            )));
        }
        let whole = |address: &std::net::IpAddr| {
            format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
        };
        let paths: Vec<_> = host.path_addresses.iter().map(whole).collect();
        text += &format!(
            "[[to]]\nprefix = {:?}\npaths = \"xpath:{}\"\n",
            whole(&host.address),
            paths.join(",")
        );
    }
    Ok(text)
}

/// Responds until the endpoint is closed.
async fn serve(endpoint: Endpoint, replies: Arc<Replies>) {
    let mut replying = JoinSet::new();
    while let Ok(request) = endpoint.recv_request().await {
        while replying.try_join_next().is_some() {}
        let Some(header) = RequestHeader::decode(request.bytes()) else { continue };
        if replies.under_way.fetch_add(1, Ordering::Relaxed) >= MAX_REPLIES {
            replies.under_way.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let replies = replies.clone();
        replying.spawn(async move {
            let response = Bytes::from(vec![0x5a; header.response]);
            if let Ok(receipt) = request.reply(response).await {
                let RequestHeader { from, id, .. } = header;
                let packets = receipt.packets as u32;
                let source_packets = receipt.source_symbols as u32;
                let reply = Reply { from, id, packets, source_packets };
                replies.ended.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
            }
            replies.under_way.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Transport for Cloudburst {
    fn listening(&self) -> Listening {
        let ports = self.endpoints.iter().map(|endpoint| endpoint.local_addr().port());
        Listening { ports: ports.collect(), certificate: Vec::new() }
    }

    fn connect(&self, peers: &[Peer]) -> Result<(), Failure> {
        let again = || Failure::transport(NAME)("connected twice");
        self.peers.set(peers.to_vec()).map_err(|_| again())
    }

    fn call(&self, call: Call) -> Result<(), String> {
        let place = usize::from(call.to).checked_sub(1);
        let peers = self.peers.get().ok_or("called before it was connected")?;
        let peer = place.and_then(|place| peers.get(place)).ok_or("there is no such host")?;
        let ports = &peer.listening.ports;
        // The IDs of a pair of hosts are as good as random.
        let port =
            *ports.get(call.id as usize % ports.len().max(1)).ok_or("the host has no port")?;
        let to = SocketAddr::new(peer.address, port);
        let options = SendOptions::default().deadline(call.within);
        let endpoint = self.endpoints[0].clone();
        let response = endpoint.call(to, call.encode()).options(options).wait();
        let response = response.map_err(|error| error.to_string())?;
        if response.len() == call.response {
            return Ok(());
        }
        Err(format!("a response of {} bytes: expected {}", response.len(), call.response))
    }

    fn take_replies(&self, within: Duration) -> Vec<Reply> {
        let until = Instant::now() + within;
        while self.replies.under_way.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        core::mem::take(&mut self.replies.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Cloudburst {
    fn drop(&mut self) {
        for endpoint in &self.endpoints {
            endpoint.blocking_shutdown(Duration::ZERO);
        }
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}
