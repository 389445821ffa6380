//! `cbrst-eval`: arguments, then what they ask for.

use crate::evaluate::{Place, Plan, evaluate, raise_limit};
use crate::experiment::{Choice, Experiment};
use crate::scheme::{Congestion, Scheme};
use crate::{Failure, Run, report, site};
use clap::{Args, Parser, Subcommand};
use cloudburst_net::{KeyError, PresharedKey, Security};
use cloudburst_testbed::Topology;
use core::time::Duration;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const PROGRAM: &str = "cbrst-eval";
/// Of trials and warm-ups where nothing else is said, in seconds: full and short.
const SECONDS: (f64, f64) = (5.0, 3.0);
const WARM_UP: (f64, f64) = (1.5, 1.0);
const REPETITIONS: (u32, u32) = (5, 1);
/// Where the paper's switches begin to mark (V-B), so that the queues of DCTCP are as long.
const DEFAULT_PACKETS: u32 = 65;
/// A key file has 64 digits and a line end; nobody gains from more.
const MAX_KEY_FILE: u64 = 4096;

const HELP: &str = "\
A short version of everything takes less than 5 minutes, the full one about an hour; both need root
and what cbrst-testbed needs. The report is DIR/index.html.
  cbrst-eval run --short
  cbrst-eval run --out full

On a cluster: an agent on each host, and a controller anywhere. All hold the same key, 64
hexadecimal digits; agents do what whoever has it says.
  (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)
  cbrst-eval agent --bind 10.0.0.1:7200 --key-file KEYFILE
  cbrst-eval run schemes incast --cluster cluster.toml --key-file KEYFILE
with cluster.toml:
  link_rate = 10000000000   # bits a second of a host's link
  dscp = 43                 # of short messages; the default
  low_dscps = [45]          # of the classes beyond the first, if schemes say `classes=`
  [[host]]                  # for each
  agent = \"10.0.0.1:7200\"
  rack = 1                  # background flows go from the first host's rack to others
  address = \"10.0.0.1\"      # of the traffic, where it is not the agent's
  path_addresses = []       # XPath: an address for each path, in the same order at all hosts
Switches, routes and TCP's settings are yours to set up. The clocks of all hosts must agree to
some milliseconds.

Agents listen at the address that they are told. While a turn runs, they take connections and
datagrams of the transport that is compared at ports that the system picks: let no others than the
cluster's hosts reach those.

Exit codes:
  0    done; an agent also when it was told to stop
  1    something failed; what was measured until then, and a report of it, are in DIR
  2    the command line is invalid
  130  stopped by Ctrl-C, SIGTERM or SIGHUP; what was measured until then is in DIR, too";

/// Compare Cloudburst with TCP, MPTCP and QUIC as section V of the paper does.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_long_help = HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run experiments, and write a report
    Run(RunArguments),
    /// Write the report again, from the run.json in DIR
    Report {
        /// Where an evaluation was
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// List schemes and their settings
    Schemes,
    /// Do on this host what a controller says
    Agent {
        /// Where to listen
        #[arg(long, value_name = "ADDR:PORT")]
        bind: SocketAddr,

        /// The key of controller and agents: 64 hexadecimal digits
        #[arg(long, value_name = "FILE")]
        key_file: PathBuf,
    },
}

#[derive(Args, Debug)]
struct RunArguments {
    /// schemes, design-choices, incast, failures, rate, loss, friendly; compare takes what --scheme
    /// says [default: all but compare]
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<Experiment>,

    /// Fewer points, shorter trials, one repetition
    #[arg(long)]
    short: bool,

    /// Where to write run.json and the report
    #[arg(long, value_name = "DIR", default_value = "evaluation")]
    out: PathBuf,

    /// A scheme, instead of those of the experiment; may be given several times
    #[arg(long = "scheme", value_name = "SCHEME")]
    schemes: Vec<Scheme>,

    /// Requests a second of all hosts together on links of 1 Gb/s, instead of those of the
    /// experiment; slower links get as much fewer
    #[arg(long = "load", value_name = "R", value_parser = positive)]
    loads: Vec<f64>,

    /// Seconds of a trial that count [default: 5, short 3]
    #[arg(long, value_name = "S", value_parser = positive)]
    seconds: Option<f64>,

    /// Seconds of warm-up before each trial [default: 1.5, short 1]
    #[arg(long, value_name = "S", value_parser = positive)]
    warm_up: Option<f64>,

    /// Repetitions of each point [default: 5, short 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,

    /// Where all random choices come from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Congestion control of background flows: cubic or bbr
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    background: Congestion,

    /// Megabits a second of a host's link, in namespaces. Two cores carry 50 without being what
    /// decides
    #[arg(long, value_name = "MBPS", default_value_t = 50, conflicts_with = "cluster",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    link: u64,

    /// Packets that a tiny queue holds, in namespaces
    #[arg(long, value_name = "N", default_value_t = Topology::default().tiny_packets,
        conflicts_with = "cluster")]
    tiny_packets: u32,

    /// Milliseconds of TCP's shortest retransmission timeout, in namespaces. The paper has 10 on
    /// links of 1 Gb/s; in 200 ms, the kernel's own, 50 Mb/s carry as many packets
    #[arg(long, value_name = "MS", default_value_t = 10, conflicts_with = "cluster",
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    min_rto: u64,

    /// Packets that a default queue holds, in namespaces, and any other that is not tiny
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PACKETS, conflicts_with = "cluster")]
    default_packets: u32,

    /// Run on the hosts that this file names, instead of namespaces
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cluster: Option<PathBuf>,

    /// The key of controller and agents: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", requires = "cluster")]
    key_file: Option<PathBuf>,
}

/// All of `cbrst-eval`.
pub fn main() -> ExitCode {
    match cloudburst_program::parse::<Arguments>() {
        Ok(arguments) => cloudburst_program::exit(PROGRAM, run(arguments.command)),
        Err(not_run) => not_run.into(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => evaluate_and_report(arguments),
        Command::Report { directory } => {
            report(&read(&directory)?, &directory)?;
            say(&format!("{}", directory.join("index.html").display()))
        }
        Command::Schemes => {
            for (name, what) in Scheme::LIST {
                say(&format!("{name:12}  {what}"))?;
            }
            say(
                "\nSettings of a, b, c and d, behind a colon and with commas between them, such as \
                 d:train=8,order=rb:\n  \
                 code=rlf256|lt|lt-systematic:dense|...   policy=oblivious|budgeted|pulled   \
                 margin=0.0625   window=24\n  order=rrb|rb|recycled|drb:4x2|...   train=4   rate=1   \
                 paths=ecmp:16|explicit   classes=left:20000|...   weight=8   pull_above=50000",
            )
        }
        Command::Agent { bind, key_file } => {
            let interrupted = cloudburst_testbed::interrupted()?;
            raise_limit();
            let security = Security::pre_shared(key(&key_file)?);
            let ready = |address| {
                let _ = say(&format!("listening at {address}"));
            };
            site::serve(bind, security, ready, &interrupted)
        }
    }
}

fn evaluate_and_report(arguments: RunArguments) -> Result<(), Failure> {
    let interrupted = cloudburst_testbed::interrupted()?;
    let out = arguments.out.clone();
    let mut is_there = false;
    let evaluated = evaluate(&plan(arguments)?, &interrupted, |run| {
        fs::create_dir_all(&out).map_err(Failure::io(format!("cannot make {}", out.display())))?;
        is_there = true;
        write(run, &out)
    });
    if is_there {
        // Of what was measured, also if something ended it.
        report(&read(&out)?, &out)?;
        say(&format!("{}", out.join("index.html").display()))?;
    }
    evaluated
}

fn plan(arguments: RunArguments) -> Result<Plan, Failure> {
    let is_short = arguments.short;
    fn of<T>(is_short: bool, (full, short): (T, T)) -> T {
        if is_short { short } else { full }
    }
    let place = match (&arguments.cluster, &arguments.key_file) {
        (Some(cluster), Some(key_file)) => {
            Place::Cluster(cluster.clone(), Security::pre_shared(key(key_file)?))
        }
        _ => {
            let classes = arguments.schemes.iter().map(Scheme::classes).max().unwrap_or(1);
            let topology = Topology {
                rate: arguments.link * 1_000_000,
                low_dscps: site::LOW_DSCPS[..classes - 1].to_vec(),
                tiny_packets: arguments.tiny_packets,
                default_packets: arguments.default_packets,
                ..Topology::default()
            };
            Place::Here(topology, Duration::from_millis(arguments.min_rto))
        }
    };
    let experiments = match arguments.experiments {
        experiments if !experiments.is_empty() => experiments,
        _ => Experiment::ALL.to_vec(),
    };
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    Ok(Plan {
        experiments,
        choice: Choice { is_short, schemes: arguments.schemes, loads: arguments.loads },
        seed: arguments.seed,
        repetitions: arguments.repetitions.unwrap_or(of(is_short, REPETITIONS)),
        seconds: arguments.seconds.unwrap_or(of(is_short, SECONDS)),
        warm_up: arguments.warm_up.unwrap_or(of(is_short, WARM_UP)),
        background: arguments.background,
        command: format!("{PROGRAM} {command}"),
        place,
    })
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.01..=1e6).contains(value));
    value.ok_or_else(|| "expected a number from 0.01 to 1000000".into())
}

fn key(path: &Path) -> Result<PresharedKey, Failure> {
    use io::Read;
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut text))
        .map_err(Failure::io(format!("cannot read {}", path.display())))?;
    let wrong =
        |error: KeyError| Failure::File { path: path.to_owned(), reason: error.to_string() };
    text.parse().map_err(wrong)
}

/// Writes `run.json`: whole, or as it was.
fn write(run: &Run, directory: &Path) -> Result<(), Failure> {
    let path = directory.join("run.json");
    let unwritable = || Failure::io(format!("cannot write {}", path.display()));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(unwritable())?;
    let mut writer = io::BufWriter::new(file.as_file_mut());
    serde_json::to_writer(&mut writer, run).map_err(io::Error::from).map_err(unwritable())?;
    writer.flush().map_err(unwritable())?;
    drop(writer);
    file.persist(&path).map_err(|error| unwritable()(error.error))?;
    Ok(())
}

fn read(directory: &Path) -> Result<Run, Failure> {
    let path = directory.join("run.json");
    let file =
        fs::File::open(&path).map_err(Failure::io(format!("cannot read {}", path.display())))?;
    let wrong = |error: serde_json::Error| Failure::File {
        path: path.clone(),
        reason: format!("this is no evaluation: {error}"),
    };
    serde_json::from_reader(io::BufReader::new(file)).map_err(wrong)
}

fn say(text: &str) -> Result<(), Failure> {
    cloudburst_program::print_line(text).map_err(Failure::io("standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn experiments_and_schemes_are_read() {
        let line = "cbrst-eval run schemes compare --scheme d:train=8 --scheme pias --load 400";
        let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
        let Command::Run(run) = arguments.command else { panic!("not run") };
        assert_eq!(run.experiments, [Experiment::Schemes, Experiment::Compare]);
        assert_eq!(run.schemes[0].to_string(), "d:train=8");
        assert_eq!(run.loads, [400.0]);
        for wrong in ["run nonsense", "run --scheme nonsense", "run --load 0", "run --cluster x"] {
            let line = format!("cbrst-eval {wrong}");
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{wrong}");
        }
    }
}
