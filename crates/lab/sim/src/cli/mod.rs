//! `cbrst-sim`: the command line, and the dispatch of its subcommands.

mod names;
mod run;
mod topology;
mod trace;
mod ui;

use crate::experiment::{self, Failure, Scale};
use crate::experiments::ALL;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use ui::Ui;

const PROGRAM: &str = "cbrst-sim";

const HELP: &str = "\
All experiments together take about 5 minutes of CPU time with --short, 3 hours with --medium and
26 hours with --full.
The report is DIR/index.html.
  cbrst-sim run --short all
  cbrst-sim run incast-bound --out incast
Each finished cell is appended to DIR/cells.jsonl. To resume an interrupted run, repeat the command.

To spread a run over processes, machines or a batch system, give each shard its own directory:
  seq 8 | xargs -P 8 -I{} cbrst-sim run all -q --jobs 1 --shard {}/8 --out part{}
  cbrst-sim merge simulation part*
In a Slurm array (--array=1-64) the shard is $SLURM_ARRAY_TASK_ID/64; in a Kubernetes indexed Job
with 64 completions it is $((JOB_COMPLETION_INDEX + 1))/64.

To trace a few flows packet by packet:
  cbrst-sim trace 0:143:87600
  cbrst-sim trace --topology fat-tree:4 --edge 1G,5us --core 1G,5us 0:15:3000 1:15:3000@2us
  cbrst-sim trace --transport cloudburst --pcapng trace.pcapng 0:143:87600

Exit codes:
  0    success
  1    failure, or cells are missing; finished cells are kept in DIR
  2    invalid command line
  130  interrupted by SIGINT (Ctrl-C), SIGTERM or SIGHUP; finished cells are kept in DIR";

/// Simulate Cloudburst and its rivals in data centre fabrics.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_long_help = HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run experiments and write a report
    Run(RunArguments),
    /// List the experiments, their cells and approximate run times
    List,
    /// Trace every packet of a few flows
    Trace(trace::Arguments),
    /// Merge the shards of a run and write its report
    Merge {
        /// Directory to merge into: a new one, or that of an earlier merge
        #[arg(value_name = "OUT")]
        out: PathBuf,

        /// Directories of the shards
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,

        /// Print errors only
        #[arg(short, long)]
        quiet: bool,
    },
    /// Write the report of the cells in DIR
    Report {
        /// Directory of a run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
struct RunArguments {
    /// Names of experiments, or `all`
    #[arg(value_name = "EXPERIMENT", required = true)]
    experiments: Vec<String>,

    /// Directory for cells and report; an unfinished run in it is resumed
    #[arg(long, value_name = "DIR", default_value = "simulation")]
    out: PathBuf,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Simulate fewer points, shorter times and fewer repetitions
    #[arg(long, conflicts_with_all = ["medium", "full"])]
    short: bool,

    /// Simulate the papers' points and repetitions for a tenth of the time
    #[arg(long, conflicts_with = "full")]
    medium: bool,

    /// Simulate the papers' points, times and repetitions (default)
    #[arg(long)]
    full: bool,

    /// Run only the Ith of N shards: cells I, I + N, I + 2N and so on
    #[arg(long, value_name = "I/N", value_parser = run::shard)]
    shard: Option<run::Shard>,

    /// Cells to run in parallel, each on one core [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Run only the cells of this scheme; may be repeated
    #[arg(long = "scheme", value_name = "NAME")]
    schemes: Vec<String>,

    /// Print errors only, without a progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// Runs `cbrst-sim`.
pub fn main() -> ExitCode {
    match cloudburst_program::parse::<Arguments>() {
        Ok(arguments) => cloudburst_program::exit(PROGRAM, dispatch(arguments.command)),
        Err(not_run) => not_run.into(),
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::List => list(),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Merge { out, directories, quiet } => {
            run::merge(&out, &directories, Ui::new(quiet))
        }
        Command::Report { directory } => {
            let page = experiment::report(&directory)?;
            Ui::new(false).print_result(&format!("{}", page.display()))
        }
    }
}

fn list() -> Result<(), Failure> {
    let ui = Ui::new(false);
    for experiment in &ALL {
        let [short, medium, full] = experiment.minutes;
        let cost = |scale, minutes| {
            let cells = (experiment.cells)(scale).len();
            format!("  --{scale}: {cells} cells, about {minutes} min of CPU time\n")
        };
        ui.print_result(&format!(
            "{}: {}\n  {}\n{}{}{}",
            experiment.name,
            experiment.title,
            experiment.description,
            cost(Scale::Short, short),
            cost(Scale::Medium, medium),
            cost(Scale::Full, full),
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_has_no_conflicting_options() {
        Arguments::command().debug_assert();
    }
}
