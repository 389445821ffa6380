//! The agent on each host, which carries out a controller's commands and returns the results.

use crate::Failure;
use crate::background::{Background, Sender, Sink, SinkPath};
use crate::processors::Processors;
use crate::scheme::{Congestion, Scheme};
use crate::transport::{self, Call, LONGEST, Listening, Peer, Reply, Transport};
use crate::workload::Request;
use cloudburst_workload::paper;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender as Results, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The size in bytes of a response that opens a connection to a peer.
const GREETING: usize = 5_000;
/// The least number of such responses from each peer, two at a time: they use all paths and ports.
const GREETINGS: u32 = 8;
/// The deadline of each, and of the responses that are under way at `Stop`.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest workload and the largest number of hosts that are accepted.
const MAX_RUN: Duration = Duration::from_secs(3600);
const MAX_HOSTS: usize = 1000;
/// How long ago a workload may have begun when its command arrives, and how far ahead it may begin.
const LATE: Duration = Duration::from_millis(50);
const AHEAD: Duration = Duration::from_secs(10);
/// How often waiting threads check whether the program was interrupted.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The number of different reasons of failed calls that are reported. Others are counted together.
const REASONS: usize = 5;

/// A command of a controller. Their order is `Listen`, `Connect`, `Run`, `Stop`. `Listen` is valid
/// at any time, and ends the previous scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Start a scheme, and respond to requests.
    Listen(Listen),
    /// Open connections to all hosts.
    Connect {
        /// Where the hosts listen, in the order of [`Listen::hosts`].
        listening: Vec<Listening>,
    },
    /// Send the requests of a workload.
    Run(Workload),
    /// End the scheme, and report the responses.
    Stop,
}

/// An agent's answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The answer to `Listen`.
    Listening {
        /// Where the scheme listens.
        listening: Listening,
        /// The port of the sink for background flows.
        sink: u16,
    },
    /// The answer to `Connect`.
    Connected,
    /// The answer to `Run`, once all requests have ended.
    Ran(WorkloadResults),
    /// The answer to `Stop`.
    Stopped {
        /// The responses of this host, from transports that count their packets.
        replies: Vec<Reply>,
    },
    /// The command failed, for this reason.
    Failed(String),
}

/// A scheme to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Listen {
    /// The number of this host, from 1.
    pub(crate) me: u16,
    pub(crate) scheme: Scheme,
    /// All hosts. Where they listen is not known yet.
    pub(crate) hosts: Vec<Peer>,
    /// The DSCP of short messages, for schemes whose packets have it.
    pub(crate) dscp: u8,
    /// The DSCPs of Cloudburst's classes after the first, the most urgent one first. The last DSCP is
    /// that of all further classes. If empty, all classes have the DSCP of the first.
    pub(crate) low_dscps: Vec<u8>,
    /// The rate of the host's link, in bits per second.
    pub(crate) link_rate: u64,
    /// The key of Cloudburst, drawn for the trial.
    pub(crate) key: [u8; 32],
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Workload {
    /// When it begins, in microseconds since 1970, by the clock of the host.
    pub(crate) begin_us: u64,
    /// The measured window, from the end of the warm-up, in microseconds after the beginning.
    pub(crate) window_us: (u64, u64),
    /// The requests of this host, in the order of time.
    pub(crate) requests: Vec<Request>,
    /// The deadline of a response, in microseconds.
    pub(crate) within_us: u64,
    pub(crate) background: Option<Background>,
}

/// The results of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkloadResults {
    /// The ID of each request, and the microseconds from when it was due until the whole response had
    /// arrived; `None` if it did not arrive.
    pub(crate) took_us: Vec<(u32, Option<u64>)>,
    /// The bytes of background flows that arrived here in the window.
    pub(crate) background_bytes: u64,
    /// The measured length of the window.
    pub(crate) window_us: u64,
    /// The share of the processors that was busy in it.
    pub(crate) busy: f64,
    /// The share that the hypervisor gave to other virtual machines (steal time).
    pub(crate) stolen: f64,
    /// The reasons of failed calls, each with the number of calls.
    pub(crate) failures: BTreeMap<String, u32>,
}

/// A host's agent.
#[derive(Default)]
pub(crate) struct Agent {
    started: Mutex<Option<Started>>,
    /// Whether the program was interrupted.
    interrupted: Arc<AtomicBool>,
}

struct Started {
    listen: Listen,
    /// `None` for the scheme that sends nothing.
    transport: Option<Arc<dyn Transport>>,
    sink: Sink,
}

impl Agent {
    /// Creates an agent that abandons its command once `interrupted` becomes true.
    pub(crate) fn new(interrupted: Arc<AtomicBool>) -> Self {
        Self { interrupted, ..Self::default() }
    }

    /// Carries out a command, and blocks until it is done. Must be called in the host's network
    /// namespace: a socket belongs to the namespace of the thread that opens it.
    pub(crate) fn handle(&self, command: Command) -> Answer {
        let done = match command {
            Command::Listen(listen) => self.listen(listen),
            Command::Connect { listening } => self.connect(&listening),
            Command::Run(workload) => self.run(&workload),
            Command::Stop => Ok(self.stop()),
        };
        done.unwrap_or_else(Answer::Failed)
    }

    fn listen(&self, listen: Listen) -> Result<Answer, String> {
        self.stop();
        check(&listen)?;
        let transport = open(&listen).map_err(text)?;
        let addresses = |host: &Peer| [&[host.address], &host.path_addresses[..]].concat();
        let sink = Sink::open(listen.hosts.iter().flat_map(addresses).collect()).map_err(text)?;
        let listening = transport.as_ref().map(|transport| transport.listening());
        let answer =
            Answer::Listening { listening: listening.unwrap_or_default(), sink: sink.port() };
        *self.lock() = Some(Started { listen, transport, sink });
        Ok(answer)
    }

    fn connect(&self, listening: &[Listening]) -> Result<Answer, String> {
        let (transport, me, peers) = {
            let started = self.lock();
            let started = started.as_ref().ok_or("Connect came before Listen")?;
            let mut peers = started.listen.hosts.clone();
            if peers.len() != listening.len() {
                return Err(format!("{} hosts, but {} listen", peers.len(), listening.len()));
            }
            for (peer, listening) in peers.iter_mut().zip(listening) {
                peer.listening = listening.clone();
            }
            (started.transport.clone(), started.listen.me, peers)
        };
        let Some(transport) = transport else { return Ok(Answer::Connected) };
        transport.connect(&peers).map_err(text)?;
        for (to, peer) in (1..).zip(&peers).filter(|(to, _)| *to != me) {
            let greet = |number: u32| {
                let request = paper::REQUEST as usize;
                let response = GREETING;
                let id = u32::MAX - number;
                let call = Call { from: me, to, id, request, response, within: PATIENCE };
                transport.call(call).map_err(|why| format!("host {to} ({}): {why}", peer.address))
            };
            let count = GREETINGS.max(2 * peer.listening.ports.len() as u32);
            for number in (0..count).step_by(2) {
                // At the same time, so that transports with connections open a second one.
                thread::scope(|scope| {
                    let other = scope.spawn(|| greet(number + 1));
                    let one = greet(number);
                    other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(one)
                })?;
            }
        }
        Ok(Answer::Connected)
    }

    fn run(&self, workload: &Workload) -> Result<Answer, String> {
        let (transport, me) = {
            let started = self.lock();
            let started = started.as_ref().ok_or("Run came before Listen")?;
            workload.check(started.listen.hosts.len())?;
            (started.transport.clone(), started.listen.me)
        };
        let begin = begin(workload.begin_us)?;
        let after = |us| begin + Duration::from_micros(us);
        let background =
            workload.background.clone().map(Sender::start).transpose().map_err(text)?;
        let (results, ended) = channel();
        let mut measured = WorkloadResults::default();
        thread::scope(|scope| {
            let window = scope.spawn(|| {
                self.sleep_until(after(workload.window_us.0));
                let start = Instant::now();
                let bytes = self.sunk();
                let before = Processors::read();
                self.sleep_until(after(workload.window_us.1));
                let since = Processors::read() - before;
                (start.elapsed().as_micros() as u64, self.sunk() - bytes, since)
            });
            if let Some(transport) = &transport {
                // Sleeps should end on time.
                let _ = nix::sys::prctl::set_timerslack(1);
                for request in &workload.requests {
                    let due = after(request.at_us);
                    self.sleep_until(due);
                    if self.interrupted.load(Ordering::SeqCst) {
                        break;
                    }
                    let transport = transport.clone();
                    let own_results = results.clone();
                    let within = Duration::from_micros(workload.within_us);
                    let call = call_of(me, request, within);
                    let run = move || run_call(&*transport, call, due, &own_results);
                    if let Err(why) = thread::Builder::new().spawn_scoped(scope, run) {
                        let _ = results
                            .send((request.id, Err(format!("cannot start a thread: {why}"))));
                    }
                }
            }
            drop(results);
            for (id, took) in ended {
                let took = took.map_err(|why| note(&mut measured.failures, why)).ok();
                measured.took_us.push((id, took));
            }
            if let Ok(window) = window.join() {
                let (window_us, background_bytes, processors) = window;
                measured.window_us = window_us;
                measured.background_bytes = background_bytes;
                measured.busy = processors.busy();
                measured.stolen = processors.stolen();
            }
        });
        if let Some(why) = background.and_then(|background| background.failure()) {
            note(&mut measured.failures, format!("a background flow: {why}"));
        }
        if self.interrupted.load(Ordering::SeqCst) {
            return Err("the agent was interrupted".into());
        }
        Ok(Answer::Ran(measured))
    }

    fn stop(&self) -> Answer {
        let started = self.lock().take();
        let transport = started.as_ref().and_then(|started| started.transport.as_ref());
        let replies = transport.map(|transport| transport.take_replies(PATIENCE));
        Answer::Stopped { replies: replies.unwrap_or_default() }
    }

    fn sleep_until(&self, moment: Instant) {
        while !self.interrupted.load(Ordering::SeqCst) {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    fn sunk(&self) -> u64 {
        self.lock().as_ref().map_or(0, |started| started.sink.bytes())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Started>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(listen: &Listen) -> Result<Option<Arc<dyn Transport>>, Failure> {
    let Listen { me, scheme, hosts, dscp, low_dscps, link_rate, key } = listen;
    let dscp = if scheme.is_marked() { *dscp } else { 0 };
    let tcp = |congestion: Congestion, copies, multipath| {
        let congestion = congestion.name().into();
        transport::Tcp::open(transport::TcpSettings {
            me: *me,
            congestion,
            copies,
            dscp,
            multipath,
        })
    };
    Ok(Some(match scheme {
        Scheme::BackgroundAlone => return Ok(None),
        Scheme::Tcp { congestion, copies, .. } => Arc::new(tcp(*congestion, *copies, false)?),
        Scheme::Mptcp => Arc::new(tcp(Congestion::Cubic, 1, true)?),
        Scheme::Quic => Arc::new(transport::Quic::open()?),
        Scheme::Cloudburst(settings) => {
            // Answers and the first class share a queue.
            let dscps: Vec<u8> =
                [dscp, dscp].into_iter().chain(low_dscps.iter().copied()).collect();
            Arc::new(transport::Cloudburst::open(settings, *link_rate, hosts, &dscps, *key)?)
        }
    }))
}

const fn call_of(from: u16, request: &Request, within: Duration) -> Call {
    let Request { id, to, request, response, .. } = *request;
    Call { from, to, id, request: request as usize, response: response as usize, within }
}

fn run_call(
    transport: &dyn Transport,
    call: Call,
    due: Instant,
    results: &Results<(u32, Result<u64, String>)>,
) {
    let response = transport.call(call);
    let took = due.elapsed().as_micros() as u64;
    let _ = results.send((call.id, response.map(|()| took)));
}

/// Counts a reason, or others together with it once there are [`REASONS`] of them.
fn note(failures: &mut BTreeMap<String, u32>, why: String) {
    let is_known = failures.contains_key(&why);
    let why = if is_known || failures.len() < REASONS { why } else { "other reasons".into() };
    *failures.entry(why).or_default() += 1;
}

/// Converts a time of the wall clock to the monotonic clock.
fn begin(us: u64) -> Result<Instant, String> {
    let begin = Duration::from_micros(us);
    let alike = "synchronize the clocks of all hosts";
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match begin.checked_sub(now) {
        Some(left) if left <= AHEAD => Ok(Instant::now() + left),
        Some(left) => Err(format!("the workload begins in {left:.1?}: {alike}")),
        None if now - begin <= LATE => Ok(Instant::now() - (now - begin)),
        None => Err(format!("the workload began {:.1?} ago: {alike}", now - begin)),
    }
}

/// Checks whether a scheme can be started with these parameters.
fn check(listen: &Listen) -> Result<(), String> {
    let hosts = listen.hosts.len();
    if !(2..=MAX_HOSTS).contains(&hosts) || !(1..=hosts).contains(&listen.me.into()) {
        return Err(format!("host {} of {hosts}: expected 2 to {MAX_HOSTS} hosts", listen.me));
    }
    Ok(())
}

impl Workload {
    /// Checks whether the workload is valid for this number of hosts, and ends.
    fn check(&self, hosts: usize) -> Result<(), String> {
        let longest = MAX_RUN.as_micros() as u64;
        if self.window_us.0 > self.window_us.1 || self.window_us.1.max(self.within_us) > longest {
            return Err(format!(
                "a window of {:?} us: expected at most {MAX_RUN:?}",
                self.window_us
            ));
        }
        let is_sound = |request: &&Request| {
            let bytes = request.request.max(request.response) as usize;
            bytes <= LONGEST
                && request.at_us <= longest
                && (1..=hosts).contains(&usize::from(request.to))
        };
        match self.requests.iter().find(|request| !is_sound(request)) {
            Some(request) => Err(format!("invalid request: {request:?}")),
            None => Ok(()),
        }
    }
}

fn text(failure: Failure) -> String {
    failure.to_string()
}

/// The sinks for background flows from `own`: those of `hosts`, with their ports. The first `dead`
/// paths are left out: a flow there would only make its sender idle.
pub(crate) fn sinks(own: &Peer, hosts: &[(&Peer, u16)], dead: u16) -> Vec<Vec<SinkPath>> {
    let sink = |&(peer, port): &(&Peer, u16)| -> Vec<SinkPath> {
        let path = |to: IpAddr, from| SinkPath { to: SocketAddr::new(to, port), from };
        let paths = own.path_addresses.iter().zip(&peer.path_addresses);
        let paths = paths.skip(dead.into()).map(|(from, to)| path(*to, Some(*from)));
        let paths: Vec<_> = paths.collect();
        if paths.is_empty() { vec![path(peer.address, None)] } else { paths }
    };
    hosts.iter().map(sink).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let begin_us = 0;
        let window_us = (0, 0);
        let within_us = 1;
        Workload { begin_us, window_us, requests: Vec::new(), within_us, background: None }
    }

    #[test]
    fn a_workload_with_an_unknown_host_or_an_endless_window_is_refused() {
        let mut run = workload();
        assert!(run.check(2).is_ok());
        run.requests.push(Request { id: 1, at_us: 0, from: 1, to: 3, request: 64, response: 9 });
        assert!(run.check(2).unwrap_err().contains("to: 3") && run.check(3).is_ok());
        run.requests[0].response = u32::MAX;
        assert!(run.check(3).is_err());
        run.requests.clear();
        run.window_us.1 = u64::MAX;
        assert!(run.check(3).unwrap_err().starts_with("a window of"));
    }

    #[test]
    fn commands_out_of_order_are_refused() {
        let agent = Agent::default();
        let refused = |command, why: &str| {
            assert_eq!(agent.handle(command), Answer::Failed(why.into()));
        };
        refused(Command::Connect { listening: Vec::new() }, "Connect came before Listen");
        let run = workload();
        refused(Command::Run(run), "Run came before Listen");
        assert_eq!(agent.handle(Command::Stop), Answer::Stopped { replies: Vec::new() });
    }

    #[test]
    fn a_start_time_in_the_past_or_far_ahead_is_refused() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        assert!(begin(now + 1_000_000).is_ok());
        assert!(begin(now - 1_000_000).unwrap_err().starts_with("the workload began 1"));
        assert!(begin(now + 60_000_000).unwrap_err().contains("synchronize the clocks"));
    }

    #[test]
    fn background_flows_avoid_dead_paths_and_bind_the_address_of_their_path() {
        let addresses = |host: u8| (1..=4).map(|path| IpAddr::from([10, path, 0, host])).collect();
        let peer = |host: u8| Peer {
            address: [10, 0, 0, host].into(),
            path_addresses: addresses(host),
            listening: Listening::default(),
        };
        let own = peer(1);
        let to = peer(2);
        let path = |to: [u8; 4], from| SinkPath { to: (to, 9).into(), from };
        let paths = sinks(&own, &[(&to, 9)], 3);
        assert_eq!(paths, [[path([10, 4, 0, 2], Some([10, 4, 0, 1].into()))]]);
        let bare = Peer { path_addresses: Vec::new(), ..own };
        assert_eq!(sinks(&bare, &[(&to, 9)], 0), [[path([10, 0, 0, 2], None)]]);
    }

    #[test]
    fn reasons_of_failures_are_counted_up_to_a_limit() {
        let mut failures = BTreeMap::new();
        for reason in 0..20 {
            note(&mut failures, format!("{}", reason % 10));
        }
        assert_eq!(failures.len(), REASONS + 1);
        assert_eq!(failures.values().sum::<u32>(), 20);
    }
}
