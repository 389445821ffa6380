//! The arguments of the programs. Checks that need several arguments, or the system, happen when a
//! plan is made of them.

use clap::{Args, Parser};
use cloudburst_net::{Classes, Code, Order, PathMap};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::plan::units::{Bits, Bytes, Seconds};

const SEND_HELP: &str = "\
Security: both ends must hold the same key of 32 bytes, written as 64 hexadecimal digits.
  cbrst-recv without --key-file makes one and prints the line to run here, which has it in
  CBRST_KEY. There only this user and root can read it, while arguments are for everyone; the
  shell's history may keep it, but it ends with that receiver. For a key that lasts:
    (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)

Exit codes:
  0    every file is at the receiver, verified, durable and under its name
  1    at least one is not, or it is not known: nobody answers, the receiver refuses, has no room,
       speaks another version of the protocol, or does not know that it has ADDR; the message says which
  2    the command line is invalid, or names a file that cannot be read; nothing was sent
  130  stopped by Ctrl-C, SIGTERM or SIGHUP

Examples:
  CBRST_KEY=... cbrst-send 10.0.0.2:7000 a.iso b.iso
  cbrst-send --key-file k --recursive host:7000 photos
  pg_dump db | cbrst-send --key-file k --name db.sql host:7000 -";

const RECV_HELP: &str = "\
Security: both ends must hold the same key of 32 bytes, written as 64 hexadecimal digits.
  Without --key-file and CBRST_KEY a key is made for this run. It is never stored, and is printed
  as part of the line to run at the sender: anybody who can read this screen can send to this
  receiver.
  For a key that lasts:
    (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)
  To replace it while senders go on: start this with --key-file OLD --also-accept NEW; then have all
  senders use NEW; then start this with --key-file NEW.

Files are written in a hidden directory .cbrst-XXXXXX inside DIR and get their names when size and
BLAKE3 are verified and they are durable. What arrived of a file before an interruption is kept
for seven days in a directory .cbrst-partial.UID inside DIR, unless --no-resume is given or the
size of the file was not known: when the file is sent again, only the rest is transferred. A file
that is there already, with the same bytes, is not transferred. SIGKILL or a loss of power may
leave a directory .cbrst-XXXXXX, which can be deleted when no cbrst-recv runs.
Directories that a sender names are created inside DIR. Symbolic links there are never followed,
so nothing is written elsewhere. To a directory that exists, what it lacks is added; its
permissions and times are left as they are without --overwrite.

Exit codes:
  0    with --once or --stdout: all files of the one sender were received
  1    with --once or --stdout: not all of them; or the receiver could not start
  2    the command line is invalid
  130  stopped by Ctrl-C, SIGTERM or SIGHUP

Examples:
  cbrst-recv --out incoming
  cbrst-recv --stdout | tar x";

const DOCTOR_HELP: &str = "\
What is measured, and how:
  addresses   What the receiver sees as the address of this end, and whether it knows the one that it
              is asked at: source NAT, destination NAT and virtual addresses show. It also answers
              once to a port that has sent nothing: stateful firewalls drop that.
  paths       Probes with a short TTL from each source port. Routers that answer (ICMP time exceeded)
              reveal the forward route of that port; the return route stays unknown. Routes that
              differ only where a router is silent (*) count as one, so there may be more. Routers
              limit how often they answer.
  lost        Of single packets of full size, one after the other: those that this end sent and the
              receiver did not get, and answers that the receiver sent and this end did not get.
  round trip  From a packet to its answer, smoothed.
  DSCP        Whether packets arrive at the receiver, and back here, with the DSCP that they were
              sent with: changed, if more than a quarter arrive with another. The receiver counts
              the packets of all senders: run this when nobody else sends.
  buffers     Bytes that the systems at both ends have granted, of those asked for.
  GSO, GRO    Whether batches are cut by the system or its device, and datagrams of a burst of
              60 kB were joined at the receiver.
  The doctor knows source ports alone: other maps of --paths are not examined.

Security: the key is that of the receiver, as for cbrst-send.

Exit codes:
  0    nothing is wrong
  1    there is a problem, which the report names; or nobody answers
  2    the command line is invalid
  130  stopped by Ctrl-C

Examples:
  CBRST_KEY=... cbrst-doctor 10.0.0.2:7000
  cbrst-doctor --insecure --ports 32 --json host:7000";

/// Sends files to a cbrst-recv, over many paths at once.
#[derive(Debug, Parser)]
#[command(name = "cbrst-send", version, after_help = SEND_HELP)]
pub struct SendArgs {
    /// Where `cbrst-recv` listens.
    #[arg(
        value_name = "ADDR",
        help = "Where cbrst-recv listens: host:port, 192.0.2.1:port or [2001:db8::1]:port"
    )]
    pub addr: String,

    /// Files to send, with --recursive also directories; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Send directories with their contents: files, empty directories, and symbolic links as links.
    /// Permissions and times of modification are kept; owners, set-user-ID bits and hard links are not
    #[arg(long, short)]
    pub recursive: bool,

    /// Name at the receiver, for a single FILE [default: its own; for -, "stdin"]
    #[arg(long, value_name = "NAME")]
    pub name: Option<OsString>,

    /// Order in which packets visit the paths: rrb (round robin), rb (random), recycled (paths on
    /// which packets arrived, others at random) or, where the paths are numbered by layer,
    /// drb:AxB... (digit reversal), e.g. drb:2x2
    #[arg(long, value_name = "ORDER", default_value = "rrb")]
    pub order: Order,

    /// Share of the link's capacity to use, above 0 and at most 1
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub rate: f64,

    /// The link's bits a second, such as 100M or 10G [default: what the interface reports]
    #[arg(long, value_name = "BITS")]
    pub capacity: Option<Bits>,

    /// Let the receiver request the data at the rate of its link: for many senders to one receiver
    #[arg(long)]
    pub pull: bool,

    /// Code: rlf256, raptorq, lt, lt:d=9, lt-systematic, ... [default: rlf256]
    #[arg(long, value_name = "CODE")]
    pub code: Option<Code>,

    /// What both programs have.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Receives files from cbrst-send, over many paths at once.
#[derive(Debug, Parser)]
#[command(name = "cbrst-recv", version, after_help = RECV_HELP)]
pub struct RecvArgs {
    /// Address and UDP port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7000")]
    pub listen: String,

    /// Address and port that senders use, if something on the way turns it into the one of this
    /// host: destination NAT, a virtual IP of a load balancer, a published port of a container.
    /// Give it once for each such address
    #[arg(long, value_name = "ADDR:PORT")]
    pub known_as: Vec<SocketAddr>,

    /// File with a further key under which senders may come, while one key replaces another. It may
    /// be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub also_accept: Vec<PathBuf>,

    /// Directory to put files in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,

    /// Write the files of one cbrst-send to standard output as they come, and exit. Whether they
    /// are what was sent shows at their end: check the exit code
    #[arg(long, conflicts_with_all = ["out", "overwrite"])]
    pub stdout: bool,

    /// Exit when one cbrst-send has sent all its files
    #[arg(long)]
    pub once: bool,

    /// Replace files that exist, and the modes and times of directories that were there before
    /// [default: refuse such files, and leave such directories as they are]
    #[arg(long)]
    pub overwrite: bool,

    /// Refuse larger files; such as 100M or 2Gi [default: no limit]
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<Bytes>,

    /// Serve metrics for Prometheus at http://ADDR/metrics [without ADDR: 127.0.0.1:9464]. Whoever
    /// reaches ADDR can read them
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:9464")]
    pub metrics: Option<SocketAddr>,

    /// What both programs have.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Examines the network between this host and a cbrst-recv: how many paths there are, what they lose,
/// whether the DSCP survives, and what to set.
#[derive(Debug, Parser)]
#[command(name = "cbrst-doctor", version, after_help = DOCTOR_HELP)]
pub struct DoctorArgs {
    /// Where `cbrst-recv` listens.
    #[arg(
        value_name = "ADDR",
        help = "Where cbrst-recv listens: host:port, 192.0.2.1:port or [2001:db8::1]:port"
    )]
    pub addr: String,

    /// File with the key: 64 hexadecimal digits. It takes precedence over CBRST_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Use no key. Both ends must say so
    #[arg(long, conflicts_with = "key_file")]
    pub insecure: bool,

    /// Source ports to examine, 1 to 64, one after the other
    #[arg(long, value_name = "N", default_value = "16",
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub ports: u16,

    /// Packets from each, 8 to 10000
    #[arg(long, value_name = "N", default_value = "32",
        value_parser = clap::value_parser!(u32).range(8..=10_000))]
    pub packets: u32,

    /// DSCP of all packets, 0 to 63 [default: the library's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    pub dscp: Option<u8>,

    /// The link's bits a second, such as 100M or 10G [default: what the interface reports]
    #[arg(long, value_name = "BITS")]
    pub capacity: Option<Bits>,

    /// How long to wait for an answer to one source port
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    pub deadline: Seconds,

    /// Print one JSON object instead of text, also when the command line is invalid
    #[arg(long)]
    pub json: bool,
}

/// What both programs have.
#[derive(Args, Debug)]
pub struct CommonArgs {
    /// File with the key: 64 hexadecimal digits. It takes precedence over CBRST_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Use no key: anybody who reaches the receiver can send, and anybody who can change packets on
    /// the route can read and forge them. Both ends must say so
    #[arg(long, conflicts_with = "key_file")]
    pub insecure: bool,

    /// Give up when nothing moves for so long: no answer, no progress, no sign of life
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub deadline: Seconds,

    /// Paths to spread packets over, 1 to 64: ecmp:N for N source ports, ecmp:NxM for these with M
    /// ports of the other end; flowlabel:N for N IPv6 flow labels; xpath:ADDR,... for addresses of
    /// the other end, each of which takes its own way; file:PATH for a TOML file that says so for
    /// each destination. As root also bounce:ADDR,... for spine switches that decapsulate, and
    /// xpath-ipip:ID,... for destinations of an outer IP header
    #[arg(long, value_name = "MAP", default_value = "ecmp:16")]
    pub paths: PathMap,

    /// DSCP of all packets, 0 to 63 [default: the library's]. With a list of up to 8: of answers,
    /// then of each of --classes
    #[arg(long, value_name = "N,...", value_delimiter = ',',
        value_parser = clap::value_parser!(u8).range(0..64))]
    pub dscp: Vec<u8>,

    /// Classes of packets for switches to serve in order of priority, by bytes of a message left to
    /// send: left:20000 makes two classes, left:20000/100000 three, each with a DSCP of its own. Or
    /// by bytes sent: sent:10000
    #[arg(long, value_name = "BY", default_value_t)]
    pub classes: Classes,

    /// Mark packets for switches that drop those of new messages first and spare the others
    /// (Aeolus: RED with ECN at one low threshold). Both ends should say so
    #[arg(long)]
    pub aeolus: bool,

    /// Mark all packets as ECN-capable (ECT), for switches that mark packets in the queue of their DSCP
    #[arg(long)]
    pub ecn: bool,

    /// Lower the rate while packets get lost on all paths to all peers and a lower rate loses fewer: for
    /// hosts whose link is slower than its interface reports
    #[arg(long)]
    pub adaptive_rate: bool,

    /// Record each message, train, report and loss in a new qlog file in DIR, which docs/qlog.html of the
    /// project draws. No bytes of files are in it, but addresses are
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,

    /// Transfer files from their beginning. By default, what the receiver kept of an interrupted transfer
    /// is verified by BLAKE3, and only the rest is sent. With this option, cbrst-recv keeps nothing
    #[arg(long)]
    pub no_resume: bool,

    /// Print a JSON object for each file on standard output (with --stdout: on standard error), or
    /// one that names no file if the command line is invalid or the program cannot start
    #[arg(long)]
    pub json: bool,

    /// Print errors only, and the line with a new key
    #[arg(long, short)]
    pub quiet: bool,
}
