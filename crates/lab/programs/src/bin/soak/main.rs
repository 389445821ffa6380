//! A soak: processes that send and call each other over real sockets in network namespaces, while processes are
//! killed, stopped and replaced, addresses and links change, and clocks stand still. What each of them promised of
//! each message is compared with what the others have taken, in all their lives.
//!
//! ```sh
//! cargo run --release -p cloudburst-bench-programs --bin soak -- --hours 2 --seed 7
//! ```
//!
//! It needs root, iproute2, nftables and ethtool, and cc for clocks that stand still; it leaves nothing behind.
//! Three servers and four clients are each on a host of their own around a router; one client is behind a translator
//! of addresses. `--faults kill,mtu` chooses kinds of faults.
//!
//! A violation is: a message taken twice, altered, taken though it was said never to be delivered, or never taken
//! though it was said to be delivered; no outcome, two, or one long after the deadline; a message that failed for
//! lack of time though nothing was done to either end for longer than `--patience`; a process that ends by itself or
//! not in order, or whose memory, descriptors or threads grow. What is known of the message is printed, with the
//! faults at the time. The faults and the load of each process follow from the seed; what the kernel does does not.
//! The status is 0 if there is no violation, applications took messages, and every kind of fault fired, and took
//! effect if it fired often.
//!
//! | file | role |
//! |---|---|
//! | `node` | a process: its load, and what it reports |
//! | `record` | reports, and the contents of messages |
//! | `check` | joins the reports, and judges them |
//! | `nodes` | hosts, processes, clocks |
//! | `faults`, `flood` | what is done to them |
//! | `clock.c` | a clock that can stand still, for the process that preloads it |

#![allow(unreachable_pub, missing_docs, reason = "a program")]

mod check;
mod faults;
mod flood;
mod node;
mod nodes;
mod record;

use crate::faults::{Failure, Faults, KINDS};
use crate::nodes::{Nodes, ROLES};
use clap::Parser;
use cloudburst_core::rng::SplitMix64;
use cloudburst_program::FatalError;
use core::time::Duration;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

const TICK: Duration = Duration::from_millis(20);
const SAMPLE: Duration = Duration::from_secs(5);
/// The longest fault in a run that is long enough; a stop may last twice as long.
const LONGEST: Duration = Duration::from_secs(30);
/// How long clients may take for their last outcomes.
const LAST: Duration = Duration::from_secs(120);

#[derive(Debug, Parser)]
#[command(
    name = "soak",
    about = "Checks promises while processes, clocks, addresses and links change"
)]
struct Args {
    /// How long to begin faults and messages.
    #[arg(long, default_value_t = 0.1)]
    hours: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Messages a second that the clients begin together.
    #[arg(long, default_value_t = 2_000)]
    rate: u32,
    /// Seconds that an outcome may be late, and a message fail though nothing is wrong.
    #[arg(long, default_value_t = 5.0)]
    patience: f64,
    /// The mean of the seconds between two faults. Default: so that each comes at least twice, at most 4.
    #[arg(long)]
    every: Option<f64>,
    /// Kinds of faults, separated by commas. Default: all.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    #[command(subcommand)]
    node: Option<Role>,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Role {
    /// One of the processes that this program starts.
    #[command(hide = true)]
    Node(node::NodeArgs),
}

impl FatalError for Failure {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted)
    }

    fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Role::Node(node)) = args.node {
        return match node::run(node) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("soak: a process: {error}");
                ExitCode::FAILURE
            }
        };
    }
    cloudburst_program::exit("soak", run(&args))
}

fn run(args: &Args) -> Result<(), Failure> {
    cloudburst_testbed::available()?;
    let interrupted = cloudburst_testbed::interrupted()?;
    let directory = tempfile::tempdir()?;
    let lasts = Duration::from_secs_f64(args.hours * 3_600.0);
    let clients = ROLES.iter().filter(|role| !role.serves).count() as u32;
    let patience = Duration::from_secs_f64(args.patience);
    let mut nodes = Nodes::up(directory.path(), args.rate / clients, patience)?;
    let kinds = args.kinds(nodes.has_clock())?;
    let longest = LONGEST.min(lasts / 12);
    let every = args.every.unwrap_or((lasts.as_secs_f64() / (2 * kinds.len()) as f64).min(4.0));
    let mut faults = Faults::new(args.seed, kinds, longest);
    for role in ROLES {
        if role.serves {
            nodes.address(role.node, "add", 3)?;
        }
    }
    faults::map(&nodes, 100)?;
    for role in ROLES {
        nodes.start(role.node)?;
    }
    let finished = play(&mut nodes, &mut faults, lasts, every, args.seed, &interrupted)
        .and_then(|()| finish(&mut nodes, &mut faults, &interrupted));
    nodes.kill_all();
    finished?;
    match report(&nodes, &faults) {
        0 => Ok(()),
        problems => Err(Failure::Violated(problems)),
    }
}

impl Args {
    fn kinds(&self, has_clock: bool) -> Result<Vec<faults::Kind>, Failure> {
        if self.faults.is_empty() {
            let all = KINDS.iter().map(|(kind, ..)| *kind);
            return Ok(all.filter(|kind| has_clock || *kind != faults::Kind::StillClock).collect());
        }
        let named = |name: &String| {
            let found = KINDS.iter().find(|(_, known, _)| known == name);
            let names = KINDS.map(|(_, name, _)| name).join(", ");
            found
                .map(|(kind, ..)| *kind)
                .ok_or(Failure::Usage(format!("{name}: expected one of {names}")))
        };
        self.faults.iter().filter(|name| *name != "none").map(named).collect()
    }
}

/// Begins and ends faults for as long as the run lasts.
fn play(
    nodes: &mut Nodes,
    faults: &mut Faults,
    lasts: Duration,
    every: f64,
    seed: u64,
    interrupted: &AtomicBool,
) -> Result<(), Failure> {
    let mut random = SplitMix64::new(seed ^ 1);
    let start = Instant::now();
    // Sessions first open in peace.
    let mut next = Duration::from_secs(1);
    let mut sampled = Duration::ZERO;
    while start.elapsed() < lasts {
        if interrupted.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        faults.end_due(nodes, false)?;
        nodes.check_alive()?;
        if start.elapsed() >= next {
            faults.begin_next(nodes)?;
            next += Duration::from_secs_f64(every * (50 + random.below(100)) as f64 / 100.0);
        }
        if start.elapsed() >= sampled + SAMPLE {
            sampled = start.elapsed();
            nodes.sample_memory();
            if sampled.as_secs().is_multiple_of(60) {
                let checker = nodes.checker();
                let (begun, taken) = checker.messages();
                let violations = checker.violations;
                println!(
                    "soak: {} s, {begun} begun, {taken} taken, {violations} violations",
                    sampled.as_secs()
                );
            }
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Ends all faults, lets clients finish, and then servers.
fn finish(nodes: &mut Nodes, faults: &mut Faults, interrupted: &AtomicBool) -> Result<(), Failure> {
    while !faults.is_quiet() {
        faults.end_due(nodes, true)?;
        thread::sleep(TICK);
    }
    for serves in [false, true] {
        let of =
            || ROLES.into_iter().filter(move |role| role.serves == serves).map(|role| role.node);
        for node in of() {
            nodes.of(node).iter_mut().for_each(|process| process.tell("finish"));
        }
        let by = Instant::now() + LAST;
        for node in of() {
            while let Some(mut process) = nodes.of(node).pop() {
                while !process.ends(TICK) && Instant::now() < by {
                    if interrupted.load(Ordering::SeqCst) {
                        nodes.of(node).push(process);
                        return Err(Failure::Interrupted);
                    }
                }
                let life = process.life;
                let in_order = process.ends(TICK);
                let status = process.kill();
                if !in_order || !status.is_some_and(|status| status.success()) {
                    let key = record::Key { life, number: u32::MAX };
                    nodes.checker().violate(key, &format!("did not finish in order: {status:?}"));
                }
            }
        }
    }
    nodes.checker().finish();
    Ok(faults.finish(nodes)?)
}

/// How often a fault must fire to have an effect for certain: while a link of one node is narrow for half a
/// second, for example, nothing long may be sent there.
const OFTEN: u64 = 8;

/// Prints tables. Returns the number of violations, and of things that were to happen and did not.
fn report(nodes: &Nodes, faults: &Faults) -> u64 {
    let checker = nodes.checker();
    checker.print();
    println!("\n| fault | fired | effect |\n|---|---|---|");
    let mut missing = Vec::new();
    if checker.messages().1 == 0 {
        missing.push("no application took a message".to_owned());
    }
    for (name, effect, count) in faults.counts() {
        let faults::Count { fired, evidence } = count;
        println!("| {name} | {fired} | {evidence} {effect} |");
        if fired == 0 {
            missing.push(format!("{name} never fired"));
        } else if evidence == 0 && fired >= OFTEN {
            missing.push(format!("{name} had no effect"));
        }
    }
    let junk = checker.counted("junk dropped");
    let replays = checker.counted("replays dropped");
    println!("| | | {junk} packets of junk and {replays} replays dropped by endpoints |");
    missing.iter().for_each(|what| eprintln!("soak: {what}"));
    checker.violations + missing.len() as u64
}
