//! The command line of `cbrst-eval`.

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
/// The defaults of a run.
struct Usual {
    /// Seconds of a trial.
    seconds: f64,
    /// Seconds of a warm-up.
    warm_up: f64,
    repetitions: u32,
}

const FULL: Usual = Usual { seconds: 5.0, warm_up: 1.5, repetitions: 5 };
const SHORT: Usual = Usual { seconds: 3.0, warm_up: 1.0, repetitions: 1 };
/// The marking threshold of the paper's switches (V-B), and so the usual length of DCTCP's queues.
const DEFAULT_PACKETS: u32 = 65;
/// The bytes of a key file that are read. It needs 64 digits and a line end.
const MAX_KEY_FILE: u64 = 4096;

const HELP: &str = "\
The short evaluation takes less than 5 minutes, the full one about an hour. Both need root and the
tools that cbrst-testbed needs. The report is DIR/index.html.
  cbrst-eval run --short
  cbrst-eval run --out full

On a cluster, run an agent on each host and a controller anywhere. All have the same key, 64
hexadecimal digits. Anyone who has the key can control the agents.
  (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)
  cbrst-eval agent --bind 10.0.0.1:7200 --key-file KEYFILE
  cbrst-eval run schemes incast --cluster cluster.toml --key-file KEYFILE
where cluster.toml has:
  link_rate = 10000000000   # rate of a host's link, in bit/s
  dscp = 43                 # DSCP of short messages; 43 is the default
  low_dscps = [45]          # DSCPs of the classes after the first, for schemes with `classes=`
  [[host]]                  # one for each host
  agent = \"10.0.0.1:7200\"
  rack = 1                  # background flows go from the rack of the first host to others
  address = \"10.0.0.1\"      # address of the measured traffic; by default the agent's
  path_addresses = []       # for XPath, an address for each path, in the same order on all hosts
Set up the switches, the routes and the TCP settings yourself. The clocks of all hosts must agree
within a few milliseconds.

An agent listens on its --bind address. During a trial, it also accepts connections and datagrams of
the transport under test, on ports that the system picks. Make sure that only hosts of the cluster
can reach these ports.

Exit codes:
  0    success; also of an agent that a signal stopped
  1    an error; DIR has the trials measured so far, and their report
  2    the command line is invalid
  130  stopped by Ctrl-C, SIGTERM or SIGHUP; DIR has the trials measured so far, and their report";

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
    /// Write the report again from the run.json in DIR
    Report {
        /// Directory of an evaluation
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// List schemes and their settings
    Schemes,
    /// Carry out a controller's commands on this host
    Agent {
        /// Address to listen on
        #[arg(long, value_name = "ADDR:PORT")]
        bind: SocketAddr,

        /// File with the key of the controller and the agents: 64 hexadecimal digits
        #[arg(long, value_name = "FILE")]
        key_file: PathBuf,
    },
}

#[derive(Args, Debug)]
struct RunArguments {
    /// schemes, design-choices, incast, failures, rate, loss, friendly, or compare, which needs
    /// --scheme [default: all but compare]
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<Experiment>,

    /// Fewer points, shorter trials, one repetition
    #[arg(long)]
    short: bool,

    /// Directory for run.json and the report
    #[arg(long, value_name = "DIR", default_value = "evaluation")]
    out: PathBuf,

    /// Scheme to run instead of those of the experiment; can be repeated
    #[arg(long = "scheme", value_name = "SCHEME")]
    schemes: Vec<Scheme>,

    /// Load to run instead of those of the experiment; can be repeated. Requests a second of all
    /// hosts together on links of 1 Gb/s, and proportionally fewer on slower links
    #[arg(long = "load", value_name = "R", value_parser = positive)]
    loads: Vec<f64>,

    /// Measured seconds of each trial [default: 5, short 3]
    #[arg(long, value_name = "S", value_parser = positive)]
    seconds: Option<f64>,

    /// Seconds of warm-up before each trial [default: 1.5, short 1]
    #[arg(long, value_name = "S", value_parser = positive)]
    warm_up: Option<f64>,

    /// Repetitions of each point [default: 5, short 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Congestion control of background flows: cubic or bbr
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    background: Congestion,

    /// Rate of a host's link in Mb/s, in namespaces. At 50, two cores are not the bottleneck
    #[arg(long, value_name = "MBPS", default_value_t = 50, conflicts_with = "cluster",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    link: u64,

    /// Length of a tiny queue in packets, in namespaces
    #[arg(long, value_name = "N", default_value_t = Topology::default().tiny_packets,
        conflicts_with = "cluster")]
    tiny_packets: u32,

    /// Minimum retransmission timeout of TCP in ms, in namespaces. The paper has 10 on links of
    /// 1 Gb/s; a link of 50 Mb/s carries as many packets in 200, the kernel's default
    #[arg(long, value_name = "MS", default_value_t = 10, conflicts_with = "cluster",
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    min_rto: u64,

    /// Length in packets of a default queue, and of any other that is not tiny, in namespaces
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PACKETS, conflicts_with = "cluster")]
    default_packets: u32,

    /// Run on the hosts in this file instead of namespaces
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cluster: Option<PathBuf>,

    /// File with the key of the controller and the agents: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", requires = "cluster")]
    key_file: Option<PathBuf>,
}

/// Runs `cbrst-eval` with the arguments of the process.
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
            print(&format!("{}", directory.join("index.html").display()))
        }
        Command::Schemes => {
            for (name, what) in Scheme::LIST {
                print(&format!("{name:12}  {what}"))?;
            }
            print(
                "\nSettings of a, b, c and d follow a colon and are separated by commas, as in \
                 d:train=8,order=rb:\n  \
                 code=rlf256|lt|lt-systematic:dense|...\n  \
                 policy=until-stop|budgeted:margin=0.25|pulled:window=24|...\n  \
                 order=rrb|rb|recycled|drb:4x2|...   train=4   rate=1\n  \
                 adaptive_rate=true   paths=ecmp:16|explicit   classes=left:20000|...   \
                 weight=8\n  pull_above=50000",
            )
        }
        Command::Agent { bind, key_file } => {
            let interrupted = cloudburst_testbed::interrupted()?;
            raise_limit();
            let security = Security::pre_shared(key(&key_file)?);
            let ready = |address| {
                let _ = print(&format!("listening at {address}"));
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
        fs::create_dir_all(&out)
            .map_err(Failure::io(format!("cannot create {}", out.display())))?;
        is_there = true;
        write(run, &out)
    });
    if is_there {
        // Includes what was measured before an error or an interruption.
        report(&read(&out)?, &out)?;
        print(&format!("{}", out.join("index.html").display()))?;
    }
    evaluated
}

fn plan(arguments: RunArguments) -> Result<Plan, Failure> {
    let is_short = arguments.short;
    let usual = if is_short { SHORT } else { FULL };
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
        repetitions: arguments.repetitions.unwrap_or(usual.repetitions),
        seconds: arguments.seconds.unwrap_or(usual.seconds),
        warm_up: arguments.warm_up.unwrap_or(usual.warm_up),
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

/// Replaces `run.json` atomically.
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
        reason: format!("this is not an evaluation: {error}"),
    };
    serde_json::from_reader(io::BufReader::new(file)).map_err(wrong)
}

fn print(text: &str) -> Result<(), Failure> {
    cloudburst_program::print_line(text).map_err(Failure::io("cannot write to standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_has_no_conflicting_options() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn experiments_and_schemes_are_parsed() {
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
