//! The arguments of the programs. Checks that involve several arguments, or the system, are made when
//! the arguments become a plan.

use crate::pairing::CodeFrom;
use clap::{Args, Parser};
use cloudburst_net::{Capacity, Classes, EcnMode, Fabric, Order, PathMap, Rate};
use cloudburst_program::{Bytes, Seconds};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const SEND_HELP: &str = "\
Security: both ends must have the same 32-byte key, written as 64 hexadecimal digits.
  Without --key-file, cbrst-recv generates a key and prints the command to run here, with the key in
  CBRST_KEY: every user can read a command's arguments, but only its owner and root can read its
  environment. The shell's history may keep the key, but it is void once that receiver ends. For a permanent key:
    (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)
  Without a shared key: cbrst-recv --pair shows a six-digit code, and --pair - asks for it here and
  agrees on a key for that run. With --pair 123-456, other users of this host can read the code among
  the arguments and use it first.

Exit codes:
  0    every file is at the receiver, verified, durable and under its name
  1    at least one file is not, or may not be: no answer, nothing that got through for --deadline, a
       refusal, a full receiver, another version of the protocol, an ADDR that the receiver does not know as
       its own, or an entry of a directory that cannot be read or sent under its name; the message says which
  2    the command line is invalid, or names a file that cannot be read; nothing was sent
  130  stopped by Ctrl-C, SIGTERM or SIGHUP

Examples:
  CBRST_KEY=... cbrst-send 10.0.0.2:7000 a.iso b.iso
  cbrst-send --key-file k --recursive host:7000 photos
  cbrst-send --pair - host:7000 a.iso
  pg_dump db | cbrst-send --key-file k --name db.sql host:7000 -";

const RECV_HELP: &str = "\
Security: both ends must have the same 32-byte key, written as 64 hexadecimal digits.
  If neither --key-file nor CBRST_KEY is given, a key is generated for this run. It is never stored,
  and is printed as part of the command to run at the sender: anyone who can read this screen can send to
  this receiver.
  For a permanent key:
    (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' > KEYFILE)
  With --pair, a six-digit code is shown instead, and the cbrst-send that is given it gets the key. A
  wrong code makes it void, and another is shown; after three wrong codes, or ten minutes, cbrst-recv
  exits.
  To replace a key while senders continue: start cbrst-recv with --key-file OLD --also-accept NEW, then
  have all senders use NEW, then start cbrst-recv with --key-file NEW.

Files are written to a hidden directory .cbrst-XXXXXX inside DIR. A file gets its name once its size
and BLAKE3 digest are verified and it is durable. If a transfer is interrupted, the part that has
arrived is kept for seven days in a directory .cbrst-partial.UID inside DIR, unless --no-resume is
given or the size of the file was not known: when the file is sent again, only the rest is
transferred, and a file that already exists with the same bytes is not transferred. SIGKILL or a power
failure may leave a directory .cbrst-XXXXXX behind, which the next cbrst-recv of this user on this host
removes.
Directories that a sender names are created inside DIR, which must exist. Symbolic links there are
never followed, so nothing is written elsewhere. Missing entries are added to an existing directory;
without --overwrite, its permissions and times stay as they are.

With systemd socket activation (LISTEN_FDS), cbrst-recv uses the UDP sockets that it is passed: that of
--listen and, with --paths ecmp:NxM, those of the M-1 ports after it. Packets wait in them while
cbrst-recv restarts, and low ports need no privilege.

Exit codes:
  0    with --once, --stdout or --pair: all files of the one sender were received
  1    with --once, --stdout or --pair: not all of them; or the receiver could not start
  2    the command line is invalid
  130  stopped by Ctrl-C, SIGTERM or SIGHUP

Examples:
  cbrst-recv --out incoming
  cbrst-recv --pair
  cbrst-recv --stdout | tar x";

const DOCTOR_HELP: &str = "\
What is measured, and how:
  addresses   The address from which the receiver sees this end, and whether the receiver knows ADDR
              as its own. This reveals source NAT, destination NAT and virtual addresses. The receiver
              also sends one answer to a port that has sent nothing: stateful firewalls drop it.
  paths       Probes with a short TTL from each source port. Routers that answer (ICMP time exceeded)
              reveal the forward route of that port; the return route stays unknown. Routes that
              differ only where a router is silent (*) count as one, so there may be more. Routers
              limit the rate of these answers.
  lost        Of full-size packets sent one at a time, those that the receiver did not get; of its
              answers, those that this end did not get.
  round trip  From a packet to its answer, smoothed.
  packets     The MTU of the path there, as far as routers told this system by ICMP messages about
              packets of --mtu bytes. Senders find out what the path carries.
  DSCP        Whether packets arrive at the receiver, and back here, with the DSCP that they were
              sent with: changed, if more than a quarter arrive with another. The receiver counts
              the packets of all senders: run this while no other sender is active.
  buffers     Bytes of socket buffers that the systems at both ends granted, of those requested.
  GSO, GRO    Whether the system or its device segments batches, and whether the datagrams of a 60 kB
              burst were coalesced at the receiver.
  Only source ports are examined, not the other kinds of --paths.

With --mesh, each receiver is examined from this host. A receiver cannot be asked to examine others: any
holder of the key could make it send to arbitrary hosts. To examine all pairs, from one host:
  for h in a b c; do ssh $h cbrst-doctor --key-file /etc/cloudburst/key --mesh a:7000,b:7000,c:7000; done
Each line has the source ports that work; the number of distinct paths (+: at least; ?: no router answers);
the loss each way; the round trip of the fastest port; and whether the DSCP is kept, changed on the way, or
differs between the ends.

Security: the key is that of the receiver, as for cbrst-send.

Exit codes:
  0    nothing is wrong
  1    a problem was found, which the report names; or the examination failed: the message says why
  2    the command line is invalid
  130  stopped by Ctrl-C, SIGTERM or SIGHUP, without a report

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

    /// Agree on a key by the code that cbrst-recv --pair shows, instead of sharing one beforehand; - asks for
    /// the code on the terminal, or reads it from a line of standard input, so that no other user sees it
    #[arg(long, value_name = "CODE|-", conflicts_with_all = ["key_file", "insecure"])]
    pub pair: Option<CodeFrom>,

    /// Order in which packets visit the paths: rrb (round robin), rb (random), recycled (paths on
    /// which packets arrived, others at random) or, where the paths are numbered by layer,
    /// drb:AxB... (digit reversal), e.g. drb:2x2
    #[arg(long, value_name = "ORDER", default_value = "rrb")]
    pub order: Order,

    /// Let the receiver request the data at the rate of its link (--capacity times --rate of cbrst-recv):
    /// for many senders to one receiver
    #[arg(long)]
    pub pull: bool,

    /// Options of both programs.
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

    /// Address and port that senders use, if a device in between translates it: destination NAT,
    /// the virtual IP of a load balancer, the published port of a container. May be given several
    /// times
    #[arg(long, value_name = "ADDR:PORT")]
    pub known_as: Vec<SocketAddr>,

    /// File with a further key that senders may use, while one key replaces another. May be given
    /// several times
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub also_accept: Vec<PathBuf>,

    /// Show a short code that gives one sender a key for this run, and exit when it has sent all its
    /// files. Pairing uses TCP at the port of --listen
    #[arg(long, conflicts_with_all = ["key_file", "insecure", "also_accept"])]
    pub pair: bool,

    /// Directory to put files in; it must exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,

    /// Write the files of one cbrst-send to standard output as they arrive, and exit. They are
    /// verified only at their end: check the exit code
    #[arg(long, conflicts_with_all = ["out", "overwrite"])]
    pub stdout: bool,

    /// Exit when one cbrst-send has sent all its files
    #[arg(long)]
    pub once: bool,

    /// Replace existing files, and set the modes and times of existing directories
    /// [default: refuse such files, and leave such directories as they are]
    #[arg(long)]
    pub overwrite: bool,

    /// Refuse larger files; such as 100M or 2Gi [default: no limit]
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<Bytes>,

    /// Serve metrics for Prometheus at http://ADDR/metrics [without ADDR: 127.0.0.1:9464]. Anyone who
    /// can reach ADDR can read them
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:9464")]
    pub metrics: Option<SocketAddr>,

    /// Options of both programs.
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
        required_unless_present = "mesh",
        help = "Where cbrst-recv listens: host:port, 192.0.2.1:port or [2001:db8::1]:port"
    )]
    pub addr: Option<String>,

    /// Examine several receivers with the same key, one after the other, and print a line for each
    #[arg(long, value_name = "ADDR,...", value_delimiter = ',', conflicts_with = "addr")]
    pub mesh: Vec<String>,

    /// File with settings instead of /etc/cloudburst/config.toml and ~/.config/cloudburst/config.toml:
    /// TOML in which long options are keys, such as dscp = 43. The command line takes precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// File with the key: 64 hexadecimal digits. It takes precedence over CBRST_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Use no key. Set it at both ends
    #[arg(long, conflicts_with = "key_file")]
    pub insecure: bool,

    /// Source ports to examine, 1 to 64, one after the other
    #[arg(long, value_name = "N", default_value = "16",
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub ports: u16,

    /// Packets to send from each port, 8 to 10000
    #[arg(long, value_name = "N", default_value = "32",
        value_parser = clap::value_parser!(u32).range(8..=10_000))]
    pub packets: u32,

    /// DSCP of all packets, 0 to 63 [default: 43]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    pub dscp: Option<u8>,

    /// The link's capacity in bits per second, such as 100M or 10G; auto is what the interface reports if it
    /// is hardware, and unknown otherwise
    #[arg(long, value_name = "BITS", default_value = "auto")]
    pub capacity: Capacity,

    /// Bytes of the IP packets to examine, 576 to 1500
    #[arg(long, value_name = "BYTES", default_value = "1500",
        value_parser = clap::value_parser!(u16).range(576..=1500))]
    pub mtu: u16,

    /// How long to wait for an answer to one source port
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    pub deadline: Seconds,

    /// Print one JSON object instead of text, also when the command line is invalid
    #[arg(long)]
    pub json: bool,
}

/// Options of both `cbrst-send` and `cbrst-recv`.
#[derive(Args, Debug)]
pub struct CommonArgs {
    /// File with settings instead of /etc/cloudburst/config.toml and ~/.config/cloudburst/config.toml:
    /// TOML in which long options are keys, such as dscp = 43. The command line takes precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// File with the key: 64 hexadecimal digits. It takes precedence over CBRST_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Use no key: anyone who can reach the receiver can send, and anyone who can change packets on
    /// the route can read and forge them. Set it at both ends
    #[arg(long, conflicts_with = "key_file")]
    pub insecure: bool,

    /// Give up after this long without an answer or progress. For up to 1.3 s after a transfer has stalled,
    /// cbrst-send looks for the cause
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub deadline: Seconds,

    /// Share of the link's capacity to use, above 0 and at most 1; or adaptive, or adaptive:R: at most that
    /// share, and as little as TCP would use where a link is slower or others share it. auto is 1, or adaptive
    /// where the capacity is unknown and with --fabric cloud
    #[arg(long, value_name = "R", default_value = "auto")]
    pub rate: Rate,

    /// The link's capacity in bits per second, such as 100M or 10G; auto is what the interface reports if it
    /// is hardware, and unknown otherwise
    #[arg(long, value_name = "BITS", default_value = "auto")]
    pub capacity: Capacity,

    /// The network: tiny-queues, whose switches have shallow queues for the packets; or cloud, whose queues
    /// are shared with others: DSCP 0, and an adaptive rate
    #[arg(long, value_name = "NAME", default_value = "tiny-queues")]
    pub fabric: Fabric,

    /// Bytes of the longest IP packet to send, 576 to 65535. What the path carries is found out, from 1280
    /// up to this; set it where the path carries less than 1280
    #[arg(long, value_name = "BYTES", default_value = "9000",
        value_parser = clap::value_parser!(u16).range(576..))]
    pub mtu: u16,

    /// Paths to spread packets over, 1 to 64: ecmp:N for N source ports, ecmp:NxM for these with M
    /// ports of the other end; flowlabel:N for N IPv6 flow labels; xpath:ADDR,... for addresses of
    /// the other end, each with its own route; file:PATH for a TOML file with a map for each
    /// destination prefix. With CAP_NET_RAW also bounce:ADDR,... for spine switches that
    /// decapsulate, and xpath-ipip:ID,... for destinations of an outer IP header
    #[arg(long, value_name = "MAP", default_value = "ecmp:16")]
    pub paths: PathMap,

    /// DSCP of all packets, 0 to 63 [default: 43, or 0 with --fabric cloud]. In a list of up to 8, the first is that of answers,
    /// and one for each of --classes follows
    #[arg(long, value_name = "N,...", value_delimiter = ',',
        value_parser = clap::value_parser!(u8).range(0..64))]
    pub dscp: Vec<u8>,

    /// Divide packets into classes for switches to serve in order of priority, by the bytes of a message
    /// left to send: left:20000 makes two classes, left:20000/100000 three, each with its own DSCP. Or
    /// by the bytes sent: sent:10000
    #[arg(long, value_name = "BY", default_value_t)]
    pub classes: Classes,

    /// Mark packets as ECN-capable (ECT): on, for switches that mark packets in the queue of their DSCP; or
    /// aeolus, at both ends, for switches that drop packets of new messages first (RED with ECN at one low
    /// threshold)
    #[arg(long, value_name = "MODE", default_value_t)]
    pub ecn: EcnMode,

    /// Record each message, train, report and loss in a new qlog file in DIR, which tools/qlog.html of the
    /// project draws. It contains addresses, but no bytes of files
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,

    /// Transfer files from their beginning. By default, the part that the receiver kept of an interrupted
    /// transfer is verified by BLAKE3, and only the rest is sent. With this option, cbrst-recv keeps nothing
    #[arg(long)]
    pub no_resume: bool,

    /// Print a JSON object for each file on standard output (with --stdout: on standard error), or
    /// one that names no file if the command line is invalid or the program cannot start
    #[arg(long)]
    pub json: bool,

    /// Print only errors, and the command with a new key
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments that may name a file with settings.
pub trait Configured {
    /// The file that `--config` names.
    fn config(&self) -> Option<&Path>;
}

impl Configured for SendArgs {
    fn config(&self) -> Option<&Path> {
        self.common.config.as_deref()
    }
}

impl Configured for RecvArgs {
    fn config(&self) -> Option<&Path> {
        self.common.config.as_deref()
    }
}

impl Configured for DoctorArgs {
    fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}
