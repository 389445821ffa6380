//! One process: an endpoint that sends, calls, takes and serves, and reports each of these.
//!
//! It reads commands from standard input: `finish` waits for all outcomes and ends, `leave` shuts the endpoint
//! down at once. Records go to standard output.

use crate::record::{Content, HEADER, Key, Kind, Promise, RESPONSE, Record, TIMEOUT, text};
use bytes::Bytes;
use cloudburst_core::rng::SplitMix64;
use cloudburst_net::{
    BurstPolicy, Config, Endpoint, PathMap, RequestParts, Security, SendError, SendOptions,
};
use core::time::Duration;
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// How long a graceful shutdown may take.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// How long after the deadline an outcome may come before the process ends without it.
const GRACE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(5);
/// Messages under way to one address: beyond, further ones are not begun.
const UNDER_WAY: usize = 2_000;
const DEADLINES: [u64; 4] = [2, 5, 20, 60];

#[derive(Clone, Debug, clap::Args)]
pub struct NodeArgs {
    #[arg(long)]
    node: u8,
    #[arg(long)]
    life: u32,
    /// Microseconds from the epoch of Unix to the beginning of the run.
    #[arg(long)]
    began: u64,
    #[arg(long)]
    bind: SocketAddr,
    #[arg(long)]
    reuse_port: bool,
    #[arg(long)]
    paths: String,
    /// Messages a second.
    #[arg(long)]
    rate: u32,
    /// The node and an address of each peer, such as 3=10.9.3.2:7000.
    #[arg(long = "peer")]
    peers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Run,
    Finish,
    Leave,
}

struct Peer {
    node: u8,
    address: SocketAddr,
    under_way: AtomicUsize,
}

struct Node {
    args: NodeArgs,
    endpoint: Endpoint,
    records: File,
    next: AtomicU32,
    under_way: AtomicUsize,
    taken: AtomicU64,
}

/// How a message is sent.
#[derive(Clone, Copy)]
struct Plan {
    len: u32,
    /// Of a call: bytes in the response.
    call: Option<u32>,
    deadline: Duration,
    policy: Option<BurstPolicy>,
    /// When to give up, if before the deadline.
    cancel: Option<Duration>,
}

pub fn run(args: NodeArgs) -> Result<(), Box<dyn std::error::Error>> {
    // The parent may be killed: it then has no time to end this process.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let records = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let config = Config {
        capacity: 300_000_000.into(),
        memory: 256 << 20,
        max_message: 1 << 20,
        // Responses end by it, too.
        deadline: Duration::from_secs(DEADLINES[3]),
        ..Config::default()
    };
    let endpoint = Endpoint::builder()
        .bind(args.bind)
        .reuse_port(args.reuse_port)
        .paths(args.paths.parse::<PathMap>()?)
        .security(Security::pre_shared([9; 32]))
        .config(config)
        .build()?;
    let peers = args.peers.iter().map(|peer| Peer::parse(peer)).collect::<Result<Vec<_>, _>>()?;
    let node = Arc::new(Node {
        args,
        endpoint,
        records,
        next: AtomicU32::new(0),
        under_way: AtomicUsize::new(0),
        taken: AtomicU64::new(0),
    });
    let (command, commands) = watch::channel(Command::Run);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let _ = command.send(match &*line {
                "finish" => Command::Finish,
                _ => Command::Leave,
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(node.clone().live(peers, commands));
    node.record(Kind::Bye, |record| record.value = node.under_way.load(Relaxed) as u64);
    // Handlers that still run, and the threads of the runtime, do not matter any more.
    std::process::exit(0)
}

impl Peer {
    fn parse(text: &str) -> Result<Self, String> {
        let parsed = text
            .split_once('=')
            .and_then(|(node, address)| Some((node.parse().ok()?, address.parse().ok()?)));
        let (node, address) = parsed.ok_or_else(|| format!("{text}: expected NODE=ADDRESS"))?;
        Ok(Self { node, address, under_way: AtomicUsize::new(0) })
    }
}

impl Node {
    fn record(&self, kind: Kind, fill: impl FnOnce(&mut Record)) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = (now.as_micros() as u64).saturating_sub(self.args.began);
        let key = Key { life: self.args.life, number: 0 };
        let mut record = Record {
            kind,
            detail: 0,
            node: self.args.node,
            len: 0,
            key,
            at,
            value: 0,
            text: [0; 16],
        };
        fill(&mut record);
        // Atomic, since it is shorter than PIPE_BUF, and not buffered here: what is killed has reported what it did.
        if (&self.records).write_all(&record.write()).is_err() {
            std::process::exit(1);
        }
    }

    fn count(&self, name: &str, value: u64) {
        self.record(Kind::Count, |record| {
            record.text = text(name);
            record.value = value;
        });
    }

    async fn live(self: Arc<Self>, peers: Vec<Peer>, mut commands: watch::Receiver<Command>) {
        let taking = tokio::spawn(self.clone().take());
        let serving = tokio::spawn(self.clone().serve());
        let counting = tokio::spawn(self.clone().count_often());
        let port = self.endpoint.local_addr().port();
        self.record(Kind::Open, |record| record.value = port.into());
        self.count_all();
        let load = self.clone().load(peers);
        tokio::select! {
            () = load => {}
            _ = commands.changed() => {}
        }
        let command = *commands.borrow();
        let longest = Duration::from_secs(DEADLINES[3]) + GRACE;
        let until =
            Instant::now() + if command == Command::Finish { longest } else { Duration::ZERO };
        while self.under_way.load(Relaxed) > 0 && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
        self.endpoint.shutdown(SHUTDOWN).await;
        let _ = serving.await;
        let _ = taking.await;
        // The tasks that wait for outcomes must be polled once more.
        let until = Instant::now() + SHUTDOWN;
        while self.under_way.load(Relaxed) > 0 && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
        counting.abort();
        self.count_all();
    }

    /// Takes plain messages, and sends some back.
    async fn take(self: Arc<Self>) {
        while let Ok(message) = self.endpoint.recv().await {
            let Some(content) = self.note(&message.bytes, "message") else { continue };
            let taken = self.taken.fetch_add(1, Relaxed);
            if taken.is_multiple_of(16) && content.response > 0 {
                let plan = Plan {
                    len: content.len,
                    call: None,
                    deadline: Duration::from_secs(5),
                    policy: None,
                    cancel: None,
                };
                let to = content.response as u8 - 1;
                tokio::spawn(self.clone().send(message.peer, to, plan));
            }
        }
    }

    async fn serve(self: Arc<Self>) {
        let node = self.clone();
        let handler = move |request: RequestParts| {
            let content = node.note(&request.bytes, "request");
            async move {
                let Some(Content { key, response, .. }) = content else { return Bytes::new() };
                if key.number.is_multiple_of(64) {
                    tokio::time::sleep(Duration::from_millis(u64::from(key.number) % 1_500)).await;
                }
                Content { key, len: response, response: RESPONSE }.bytes()
            }
        };
        self.endpoint.serve(4_096, handler).await;
    }

    /// Reports that the application has a message.
    fn note(&self, bytes: &[u8], what: &str) -> Option<Content> {
        let content = Content::parse(bytes);
        match content {
            Some(Content { key, len, .. }) => self.record(Kind::Taken, |record| {
                record.key = key;
                record.len = len;
            }),
            None => self.record(Kind::Altered, |record| {
                record.len = bytes.len() as u32;
                record.text = text(what);
            }),
        }
        content
    }

    async fn load(self: Arc<Self>, peers: Vec<Peer>) {
        let peers: Arc<[Peer]> = peers.into();
        let mut random = SplitMix64::new(u64::from(self.args.life));
        let start = Instant::now();
        let mut begun = 0;
        while !peers.is_empty() {
            tokio::time::sleep(TICK).await;
            let due = (start.elapsed().as_secs_f64() * f64::from(self.args.rate)) as u64;
            // After a pause, the rate is as before.
            begun = begun.max(due.saturating_sub(u64::from(self.args.rate) / 4));
            while begun < due {
                begun += 1;
                let at = random.below(peers.len() as u64) as usize;
                let plan = Plan::draw(&mut random);
                if peers[at].under_way.load(Relaxed) < UNDER_WAY {
                    let node = self.clone();
                    let peers = peers.clone();
                    peers[at].under_way.fetch_add(1, Relaxed);
                    tokio::spawn(async move {
                        node.send(peers[at].address, peers[at].node, plan).await;
                        peers[at].under_way.fetch_sub(1, Relaxed);
                    });
                }
            }
        }
        core::future::pending().await
    }

    /// Sends a message, or calls, and reports the outcome.
    async fn send(self: Arc<Self>, address: SocketAddr, to: u8, plan: Plan) {
        let number = self.next.fetch_add(1, Relaxed);
        let key = Key { life: self.args.life, number };
        // The receiver of a plain message from a node that was given peers learns whose it is, to send one back.
        let asks = if self.args.peers.is_empty() { 0 } else { u32::from(self.args.node) + 1 };
        let content = Content { key, len: plan.len, response: plan.call.unwrap_or(asks) };
        self.under_way.fetch_add(1, Relaxed);
        self.record(Kind::Begin, |record| {
            record.key = key;
            record.node = to;
            record.len = plan.len;
            record.detail = plan.call.is_some().into();
            record.value = plan.deadline.as_millis() as u64;
        });
        let start = Instant::now();
        let mut options = SendOptions::default().deadline(plan.deadline);
        if let Some(policy) = plan.policy {
            options = options.policy(policy);
        }
        let sending = self.ask(address, content, plan.call.is_some(), options);
        let outcome = match plan.cancel {
            Some(after) => tokio::time::timeout(after, sending).await.ok(),
            None => Some(sending.await),
        };
        let took = start.elapsed();
        let (promise, name) = match &outcome {
            Some(Ok(())) => (Promise::Delivered as u8, "Delivered".to_owned()),
            Some(Err(error)) => {
                let late = if error.is_timeout() { TIMEOUT } else { 0 };
                let perhaps = error.may_have_been_delivered();
                let promise = if perhaps { Promise::Perhaps } else { Promise::Never };
                (promise as u8 | late, format!("{error:?}"))
            }
            None => (Promise::Perhaps as u8, "Dropped".to_owned()),
        };
        self.record(Kind::End, |record| {
            record.key = key;
            record.node = to;
            record.len = plan.len;
            record.detail = promise;
            record.value = took.as_millis() as u64 | (plan.deadline.as_millis() as u64) << 32;
            // With its reason, but without its numbers.
            let name = name.split_once(" {").map_or(&*name, |(name, _)| name);
            record.text = text(&name.replace(['(', ')'], ""));
        });
        self.under_way.fetch_sub(1, Relaxed);
    }

    async fn ask(
        &self,
        address: SocketAddr,
        content: Content,
        call: bool,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let bytes = content.bytes();
        if !call {
            return self.endpoint.send(address, bytes).options(options).await.map(drop);
        }
        let response = self.endpoint.call(address, bytes).options(options).await?;
        let expected = Content { len: content.response, response: RESPONSE, ..content };
        if Content::parse(&response) != Some(expected) {
            self.record(Kind::Altered, |record| {
                record.key = content.key;
                record.len = response.len() as u32;
                record.text = text("response");
            });
        }
        Ok(())
    }

    async fn count_often(self: Arc<Self>) {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.count_all();
        }
    }

    fn count_all(&self) {
        let counters = self.endpoint.counters();
        let sender = counters.sender;
        let receiver = counters.receiver;
        let forged = sender.forged + receiver.forged + sender.malformed + receiver.malformed;
        self.count("junk dropped", forged + sender.unknown_session + receiver.unknown_session);
        self.count("replays dropped", sender.replayed + receiver.replayed);
        self.count("sessions opened", sender.sessions_opened);
        self.count("symbols sent", sender.symbols_sent);
        self.count("symbols needed", sender.source_symbols);
        // Not of this process alone: how far its clock is behind that of the calendar.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let behind = now.saturating_sub(monotonic());
        self.count("clock behind ms", behind.as_millis() as u64);
    }
}

/// What the process takes for the time since the machine started.
fn monotonic() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(Duration::ZERO, Duration::from)
}

impl Plan {
    fn draw(random: &mut SplitMix64) -> Self {
        let len = match random.below(100) {
            0..70 => 100 + random.below(900),
            70..90 => 1_000 + random.below(9_000),
            90..98 => 10_000 + random.below(30_000),
            _ => 40_000 + random.below(160_000),
        };
        let policy = match random.below(16) {
            0..4 if len > 5_000 => Some(BurstPolicy::Pulled { window: None }),
            0 => Some(BurstPolicy::Oblivious),
            _ => None,
        };
        let call = (random.below(3) == 0).then(|| HEADER as u32 + random.below(4_000) as u32);
        let deadline = Duration::from_secs(DEADLINES[random.below(4) as usize]);
        let cancel = (random.below(100) == 0).then(|| Duration::from_micros(random.below(3_000)));
        Self { len: len as u32, call, deadline, policy, cancel }
    }
}
