//! The throughput of 2 and 4 endpoints on one port relative to 1, between two network namespaces on
//! this machine: `scripts/bench cores`.
//!
//! Each endpoint has a thread that takes its messages, and one client, which is an endpoint with its
//! own tokio runtime. A client keeps 64 messages of 5,000 bytes in flight, or 32 of 93,000. The system
//! assigns clients to endpoints by a hash, so clients are opened until each endpoint has one: how evenly
//! many clients spread is another question ([`cloudburst_net::Builder::reuse_port`]).
//!
//! If there are two CPUs for each endpoint, all threads of an endpoint are pinned to one CPU, and
//! those of its client to another. Second hardware threads of a core are used last. Servers with more
//! endpoints run on all CPUs, as stated in the table, and their ratios are to one endpoint that does so
//! too: pinning alone can double a figure. Use `taskset` to choose the CPUs.
//!
//! The servers are measured in turn, so that other load on this machine affects all of them alike:
//! compare only within a run. CPU time is that of both ends together.
//!
//! It needs root and iproute2, and is skipped without them. The exit code is 1 if anything fails.

use cloudburst_benches::ends::{cpus, pin};
use cloudburst_benches::stats::machine;
use cloudburst_benches::transport::{builder, config, flood, message};
use cloudburst_benches::usage::Usage;
use cloudburst_benches::{Result, run_in_namespaces};
use cloudburst_net::{Builder, Config, Endpoint};
use cloudburst_testbed::{End, Wire};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Endpoints that share a port.
const SIZES: [usize; 3] = [1, 2, 4];
/// Trials of each server with each load, and the length of each.
const TRIALS: usize = 10;
const TRIAL: Duration = Duration::from_millis(400);
/// The port of the first server; the others use those above.
const PORT: u16 = 7000;
/// The maximum number of clients opened until each endpoint has one. With four endpoints, the mean is
/// eight.
const MOST_CLIENTS: usize = 200;
const LOADS: [Load; 2] = [Load { len: 5_000, in_flight: 64 }, Load { len: 93_000, in_flight: 32 }];

/// The messages that each client keeps in flight.
struct Load {
    len: usize,
    in_flight: usize,
}

/// An endpoint without a client, and the CPUs of its threads.
type Unserved = (Endpoint, &'static [usize]);

/// Endpoints that share a port, and their clients.
struct Server {
    clients: Vec<Client>,
    /// Whether each endpoint and each client has its own CPU.
    pinned: bool,
    sums: [Sum; LOADS.len()],
}

struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
    runtime: Runtime,
    cpus: &'static [usize],
}

/// The sum over trials.
#[derive(Clone, Copy, Default)]
struct Sum {
    messages: usize,
    took: Duration,
    cpu: Duration,
}

fn main() -> ExitCode {
    run_in_namespaces("cores", |_| compare())
}

fn compare() -> Result<()> {
    let cpus = cpus();
    let wire = Wire::up()?;
    let mut servers = Vec::new();
    for (port, (size, pinned)) in (PORT..).zip(rows(cpus.len())) {
        servers.push(Server::open(&wire, port, size, pinned)?);
    }
    for (at, load) in LOADS.iter().enumerate() {
        // The first trials warm up caches, windows and estimates.
        for round in 0..=TRIALS {
            for server in &mut servers {
                let trial = server.trial(load)?;
                if round > 0 {
                    server.sums[at].add(trial);
                }
            }
        }
    }
    print(&servers, cpus.len());
    Ok(())
}

/// Returns the numbers of endpoints, and whether they are pinned. If some do not fit, one endpoint is
/// also measured without pinning.
fn rows(cpus: usize) -> Vec<(usize, bool)> {
    let fits = |size: usize| 2 * size <= cpus;
    let pinned = SIZES.into_iter().filter(|&size| fits(size)).map(|size| (size, true));
    let all_fit = SIZES.into_iter().all(fits);
    let shared = SIZES.into_iter().filter(|&size| !all_fit && (size == 1 || !fits(size)));
    pinned.chain(shared.map(|size| (size, false))).collect()
}

impl Server {
    fn open(wire: &Wire, port: u16, size: usize, pinned: bool) -> Result<Self> {
        let place = |at: usize| if pinned { &cpus()[at..=at] } else { cpus() };
        let address = (wire.right.address(), port).into();
        let builder = endpoints().bind(address).reuse_port(true);
        let mut unserved: Vec<Unserved> = Vec::new();
        for at in 0..size {
            let cpus = place(2 * at);
            unserved.push((open(&wire.right, builder.clone(), cpus)?, cpus));
        }

        let mut clients = Vec::new();
        for _ in 0..MOST_CLIENTS {
            let client = Client::open(wire, address, place(2 * clients.len() + 1))?;
            client.endpoint.send(address, "hello").wait()?;
            let has_it = |(endpoint, _): &Unserved| matches!(endpoint.try_recv(), Ok(Some(_)));
            if let Some(at) = unserved.iter().position(has_it) {
                serve(unserved.swap_remove(at));
                clients.push(client);
            }
            if unserved.is_empty() {
                return Ok(Self { clients, pinned, sums: Default::default() });
            }
        }
        Err(format!("{MOST_CLIENTS} clients, and not one for each of {size} endpoints").into())
    }

    fn trial(&self, load: &Load) -> Result<Sum> {
        let usage = Usage::now()?;
        let begun = Instant::now();
        let messages = thread::scope(|scope| {
            let floods: Vec<_> =
                self.clients.iter().map(|client| scope.spawn(move || client.flood(load))).collect();
            let done = floods
                .into_iter()
                .map(|flood| flood.join().expect("a thread that panics has reported why"));
            done.sum::<Result<usize>>()
        })?;
        Ok(Sum { messages, took: begun.elapsed(), cpu: Usage::since(usage)?.cpu })
    }
}

impl Client {
    fn open(wire: &Wire, server: SocketAddr, cpus: &'static [usize]) -> Result<Self> {
        let builder = endpoints().bind((wire.left.address(), 0).into());
        let endpoint = open(&wire.left, builder, cpus)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { endpoint, server, runtime, cpus })
    }

    /// Keeps messages in flight for a trial, then waits for the last. Returns how many the server
    /// has confirmed.
    fn flood(&self, load: &Load) -> Result<usize> {
        pin(self.cpus)?;
        let endpoint = self.endpoint.clone();
        let server = self.server;
        let bytes = message(load.len, 0);
        let deliver = move || {
            let endpoint = endpoint.clone();
            let bytes = bytes.clone();
            async move {
                endpoint.send(server, bytes).await?;
                Ok(())
            }
        };
        let (messages, _) = flood(&self.runtime, load.in_flight, TRIAL, deliver)?;
        Ok(messages)
    }
}

fn endpoints() -> Builder {
    builder(config(Config::default().busy_poll))
}

/// Opens an endpoint whose own threads run on `cpus`: threads inherit the affinity of their creator.
fn open(end: &End, builder: Builder, cpus: &'static [usize]) -> Result<Endpoint> {
    end.run(move || {
        pin(cpus)?;
        Ok(builder.build()?)
    })
}

/// Takes messages until the process ends, on the CPUs of the endpoint's own threads.
fn serve((endpoint, cpus): Unserved) {
    thread::spawn(move || {
        pin(cpus).expect("its own threads run there");
        while endpoint.recv().wait().is_ok() {}
    });
}

impl Sum {
    fn add(&mut self, trial: Self) {
        self.messages += trial.messages;
        self.took += trial.took;
        self.cpu += trial.cpu;
    }

    fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.took.as_secs_f64()
    }

    /// In microseconds.
    fn cpu_per_message(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.messages as f64
    }
}

fn print(servers: &[Server], cpus: usize) {
    println!(
        "{}\n\n| endpoints | CPUs | 5 KB, messages a second | x 1 endpoint | 93 KB, goodput | \
         x 1 endpoint | CPU time for 5 KB | for 93 KB |\n\
         |---|---|---:|---:|---:|---:|---:|---:|",
        machine()
    );
    for Server { clients, pinned, sums: [small, large] } in servers {
        // The first of either kind has one endpoint.
        let one = servers.iter().find(|server| server.pinned == *pinned);
        let [one_small, one_large] = one.map_or([*small, *large], |one| one.sums);
        println!(
            "| {} | {} | {:.1} k/s | {:.2} | {:.2} Gb/s | {:.2} | {:.1} us | {:.0} us |",
            clients.len(),
            if *pinned {
                format!("{}, pinned", 2 * clients.len())
            } else {
                format!("{cpus}, shared")
            },
            small.messages_per_second() / 1e3,
            small.messages_per_second() / one_small.messages_per_second(),
            large.messages_per_second() * LOADS[1].len as f64 * 8.0 / 1e9,
            large.messages_per_second() / one_large.messages_per_second(),
            small.cpu_per_message(),
            large.cpu_per_message(),
        );
    }
    if servers.iter().any(|server| !server.pinned) {
        println!(
            "\nshared: endpoints and clients share the {cpus} CPUs there are, so these ratios show \
             how well they share, not what cores give. n endpoints need 2 n CPUs to be pinned."
        );
    }
}
