//! The command line of `cbrst-switch`.

use super::params::{Parameters, Role, Weights};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const HELP: &str = "\
PARAMS is a TOML file for one switch; switch-configs/example.toml has every key, explained.

`check` reads all FILEs together as one configuration: give the rendered files, or the current
configuration of the switch (show running-config, show runningconfiguration all, nv config show
-o commands, ...).
Files named verify.* or rollback.*, and OpenConfig's ecmp.txt, are for operators and are skipped.

Exit codes:
  0    done; for check: no findings
  1    check has findings, each with file, line, what was found, what was expected, and what to do;
       or a file cannot be read or written
  2    the command line or the parameters are invalid; nothing was written

Examples:
  cbrst-switch platforms
  cbrst-switch render --params leaf1.toml --out leaf1
  cbrst-switch render --params leaf1.toml --limit '1 %' --buffer 4M --out leaf1
  cbrst-switch check --params leaf1.toml leaf1/*
  cbrst-switch --check running-config.txt --params leaf1.toml";

/// Renders the configuration of the tiny queue for a switch, and checks configurations against parameters
#[derive(Debug, Parser)]
#[command(name = "cbrst-switch", version, after_help = HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct SwitchArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<SwitchCommand>,

    /// The same as `check`, for one file
    #[arg(long, value_name = "FILE", requires = "params")]
    pub(crate) check: Option<PathBuf>,

    /// File with the parameters of the switch
    #[arg(long, value_name = "PARAMS")]
    pub(crate) params: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// Write the files for one switch into a directory
    Render {
        /// File with the parameters of the switch
        #[arg(long, value_name = "PARAMS")]
        params: PathBuf,

        /// Directory to write to; it is created if missing
        #[arg(long, value_name = "DIR")]
        out: PathBuf,

        /// Replace files there that differ, and remove those that are no longer rendered
        #[arg(long)]
        force: bool,

        /// Options that take precedence over PARAMS.
        #[command(flatten)]
        overrides: Box<Overrides>,
    },

    /// Check a configuration, rendered or edited, against PARAMS
    Check {
        /// File with the parameters of the switch
        #[arg(long, value_name = "PARAMS")]
        params: PathBuf,

        /// All files of the configuration
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,

        /// Options that take precedence over PARAMS.
        #[command(flatten)]
        overrides: Box<Overrides>,
    },

    /// List the platforms
    Platforms,
}

/// Options that take precedence over the file of parameters.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// Platform: one of those that `cbrst-switch platforms` lists
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,

    /// The switch's name, for comments
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Place of the switch in the fabric, for comments
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<RoleArg>,

    /// Port, or range of ports such as swp[1-32], instead of all ports in PARAMS
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<String>,

    /// DSCP of Cloudburst's packets
    #[arg(long, value_name = "N")]
    pub(crate) dscp: Option<u8>,

    /// DSCPs of several classes of Cloudburst's packets, such as 43,45,47, the most urgent first
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "dscp")]
    pub(crate) dscps: Vec<u8>,

    /// Queue of these packets; with several DSCPs that of the first, and the others have the queues below it
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u8>,

    /// Limit of each such queue: '8 packets', '10192 bytes' or '1 %' of the buffer
    #[arg(long, value_name = "LIMIT")]
    pub(crate) limit: Option<String>,

    /// The switch's chip, which sets defaults for buffer, cell and MMUs: trident2, tomahawk, ...
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: Option<String>,

    /// The switch's buffer, such as 4M
    #[arg(long, value_name = "BYTES")]
    pub(crate) buffer: Option<String>,

    /// Bytes of the largest IP packet
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<u32>,

    /// Bytes of a cell of the buffer
    #[arg(long, value_name = "BYTES")]
    pub(crate) cell: Option<u32>,

    /// Rate of a port in bits per second, such as 10G
    #[arg(long, value_name = "BITS")]
    pub(crate) rate: Option<String>,

    /// Shares of a busy link, the tiny queue's first
    #[arg(long, value_name = "TINY:DEFAULT")]
    pub(crate) weights: Option<Weights>,

    /// Seed of the ECMP hash, different for each switch
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u32>,

    /// Queue length from which packets of new messages are dropped, such as '6144 bytes'
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) aeolus: Option<String>,
}

impl Overrides {
    /// Returns `parameters` with these options in place of theirs.
    pub(crate) fn replace_in(self, parameters: Parameters) -> Parameters {
        let has_dscps = self.dscp.is_some() || !self.dscps.is_empty();
        let (dscp, dscps) =
            if has_dscps { (self.dscp, self.dscps) } else { (parameters.dscp, parameters.dscps) };
        Parameters {
            platform: self.platform.or(parameters.platform),
            name: self.name.or(parameters.name),
            role: self.role.map(Into::into).or(parameters.role),
            ports: if self.port.is_empty() { parameters.ports } else { self.port },
            dscp,
            dscps,
            queue: self.queue.or(parameters.queue),
            limit: self.limit.or(parameters.limit),
            chip: self.chip.or(parameters.chip),
            buffer: self.buffer.or(parameters.buffer),
            mtu: self.mtu.or(parameters.mtu),
            cell: self.cell.or(parameters.cell),
            rate: self.rate.or(parameters.rate),
            weights: self.weights.or(parameters.weights),
            seed: self.seed.or(parameters.seed),
            aeolus: self.aeolus.or(parameters.aeolus),
            ..parameters
        }
    }
}

/// The place of a switch in the fabric.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleArg {
    /// With hosts below it.
    Leaf,
    /// With leaves below it.
    Spine,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Leaf => Self::Leaf,
            RoleArg::Spine => Self::Spine,
        }
    }
}
