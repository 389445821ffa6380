//! What an endpoint may be told, with defaults, trade-offs and limits.

use crate::code::{Code, MAX_SOURCE_SYMBOLS};
use crate::path::Order;
use crate::wire::{keys::PresharedKey, symbol::SYMBOL_OVERHEAD};
use core::time::Duration;

/// Blocks of one message that may be under way at a time; a receiver decodes no more at once.
pub(crate) const MAX_BLOCKS_IN_FLIGHT: usize = 8;
/// Ports of one endpoint that take messages.
pub(crate) const MAX_PORTS: u16 = 64;

/// How an endpoint tells its peers from strangers. There is no default: choose by name.
#[derive(Clone, Debug)]
pub struct Security(Mode);

#[derive(Clone, Debug)]
enum Mode {
    PreShared(PresharedKey),
    TrustedNetwork,
}

impl Security {
    /// Only endpoints that hold the same 32 bytes can talk to each other, and nobody else can
    /// read, forge or replay their messages.
    pub const fn pre_shared(key: [u8; 32]) -> Self {
        Self(Mode::PreShared(PresharedKey::new(key)))
    }

    /// The key that 64 hexadecimal digits say, as key files have them; `None` if they are none.
    /// Blanks and line ends around them are fine.
    pub fn key_from_hex(text: &str) -> Option<[u8; 32]> {
        let digits = text.trim().as_bytes();
        let mut key = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok()?;
        }
        Some(key)
    }

    /// Anyone who can reach this endpoint may send to it, and anyone on the way can read along.
    ///
    /// Packets are sealed all the same, under keys that both ends derive from what they say in
    /// the open: that finds damage, and keeps out whoever cannot see the handshake.
    pub const fn trusted_network() -> Self {
        Self(Mode::TrustedNetwork)
    }

    /// Whether anyone may talk to this endpoint.
    pub const fn is_trusted_network(&self) -> bool {
        matches!(self.0, Mode::TrustedNetwork)
    }

    pub(crate) fn key(&self) -> PresharedKey {
        match &self.0 {
            Mode::PreShared(key) => key.clone(),
            // Not thirty-two zeros: a key that somebody sets by mistake must not equal it.
            Mode::TrustedNetwork => PresharedKey::new(*b"cloudburst v1: a trusted network"),
        }
    }
}

/// How long and how hard a sender bursts before it hears from the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BurstPolicy {
    /// Algorithm 1: symbols at the rate until STOP, without ACK requests. After eight times the
    /// block the burst thins out to a trickle. Lowest latency under loss that nobody reports; one
    /// round trip of needless packets a message.
    Oblivious,
    /// Opens with as many symbols as decode without loss plus `margin` of them, requests an ACK and
    /// sends what is missing (section III-D); thins out while nobody answers.
    Budgeted {
        /// Share of the block that is sent on top at once; 0.0 to 4.0. More hides more loss
        /// without a round trip, and costs as much more load.
        margin: f32,
    },
}

impl Default for BurstPolicy {
    fn default() -> Self {
        Self::Budgeted { margin: 1.0 / 16.0 }
    }
}

/// Everything that can be set about an endpoint. Every limit is mandatory: none means "no limit".
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes in a UDP payload at most. Default 1,452: IP packets of 1,500 bytes, IPv6 included.
    /// More than the path carries loses every packet.
    pub max_datagram: usize,
    /// The link's capacity in bits a second (LINK_CAP of Algorithm 1). Default 1 Gb/s, for which an
    /// endpoint with sockets puts what its interface reports.
    pub capacity: u64,
    /// The share `r` of the capacity that all messages together may use, in 0.0 < r <= 1.0.
    /// Default 1.0; in an over-subscribed fabric, the over-subscription ratio.
    pub rate: f64,
    /// Longest packet train, in packets: packets sent back to back on one path by one system call.
    /// Default 4, 1 to 64; Algorithm 1 says 1. A path that was not heard of for a second gets its
    /// share alone.
    ///
    /// Longer trains save calls, and want more places in the switches' queues, where trains of
    /// several senders meet: at most half of what the tiny queue holds, then. Four pairs of hosts,
    /// 93 KB by an address for each of four spines at 100 Mb/s (`fabric-trains` in `benches`), and
    /// 93 KB over one link that loses nothing (`cargo bench -p cloudburst-benches --bench latency
    /// -- trains`):
    ///
    /// | train | 1 | 2 | 4 | 8 | 16 |
    /// |---|---:|---:|---:|---:|---:|
    /// | dropped by queues of 8 packets, % | 0.00 | 0.00 | 0.07 | 3.4 | 9.9 |
    /// | dropped by queues of 16 packets, % | 0.00 | 0.00 | 0.00 | 0.06 | 2.0 |
    /// | deepest queue seen, of 256 | 1 | 2 | 9 | 22 | 30 |
    /// | packets a source symbol, queues of 8 | 1.05 | 1.05 | 1.06 | 1.09 | 1.16 |
    /// | median of a response, of that with 4 | 2.5 | 1.5 | 1 | 0.77 | 0.63 |
    /// | goodput, 32 in flight, of that with 4 | 0.5 | 0.7 | 1 | 1.2 | 1.5 |
    ///
    /// Hashed paths collide: queues of 8 drop 5 to 7 % of these with up to 4, 14 % with 16. An
    /// incast overruns the queue with any.
    pub train: usize,
    /// In which order packets visit the paths to a peer, each from a random place on. Default
    /// round robin. Digit reversal keeps queues shorter where paths share links below the spines,
    /// the more so the smaller `train` is. It must fit the path map, or every send is refused.
    pub order: Order,
    /// The code of messages that do not choose their own.
    pub code: Code,
    /// The burst policy of messages that do not choose their own.
    pub policy: BurstPolicy,
    /// How long a message may take that does not say so itself. Default 10 s.
    pub deadline: Duration,
    /// Packets for one block at most: this many times its source symbols, plus 256. Default 32.
    pub max_redundancy: u32,
    /// Blocks of one message under way at a time, at most 8. Default 2.
    pub blocks_in_flight: usize,
    /// Messages that may wait or be under way, to all peers, and calls that may be in flight.
    /// Default 65,536.
    pub send_messages: usize,
    /// Bytes that may wait or be under way, to all peers. Default 256 MiB.
    pub send_bytes: usize,
    /// The longest message to send or to accept, in bytes. Default 16 MiB.
    pub max_message: usize,
    /// Messages that were delivered and that the application has not taken yet; as many requests
    /// beside plain messages. Default 1,024.
    pub receive_messages: usize,
    /// Their bytes, of either. Default 64 MiB; one message always fits.
    pub receive_bytes: usize,
    /// Bytes of messages being received, of all peers. Default 256 MiB.
    pub decode_bytes: usize,
    /// Bytes of messages being received, of one peer. Default 64 MiB.
    pub decode_bytes_per_peer: usize,
    /// A message of which nothing new arrived for this long is forgotten by its receiver; so is a
    /// whole one that the application has not taken, when its sender has not asked after it for as
    /// long. Default 15 s: longer than the default deadline, after which its sender has given up.
    pub decode_timeout: Duration,
    /// How long a thread that waits for packets busy-polls before it sleeps, if the last packets
    /// arrived as quickly, or in twice the time while it slept. Default 50 us, which takes the
    /// wake-up out of round trips that follow each other; it yields to whatever else wants the
    /// processor, and sleeps for a while where that takes long. A service with cores to spare may
    /// busy-poll for longer; calls then notice their deadlines as much later. 0: always sleep.
    pub busy_poll: Duration,
    /// Peers to remember, sending and receiving each. Default 4,096.
    pub max_peers: usize,
    /// Whether the network may tell packets that can be spared from others by their ECN bits, as
    /// in Aeolus (SIGCOMM 2020). Default false: all packets are Not-ECT.
    ///
    /// If set, symbols that are sent before the receiver has answered anything of their message
    /// stay Not-ECT; all others, and all handshakes and answers, are marked ECT(0). A switch that
    /// marks (RED with ECN) at one low threshold, such as 6 KB, then drops the first beyond it and
    /// spares the others. Set it at both ends, or the answers are dropped first. Without such a
    /// switch it gains nothing. A mark (CE) that arrives does not change the rate.
    pub aeolus: bool,
    /// The UDP port to tell peers for their answers; 0 for the one that packets come from.
    pub port: u16,
    /// How many ports take messages: that one and those right after it. Peers are told, and spread
    /// symbols over them if their path map does. Default 1; at most 64.
    pub ports: u16,
    /// Whether others answer handshakes at the port that peers know this endpoint by, too. Default
    /// false.
    ///
    /// If set, peers are told `port` with the handshake, and send everything else there: what comes
    /// to the shared port reaches any of those that share it. So `port` must not be 0, for which
    /// endpoints with sockets put one of their own.
    pub reuse_port: bool,
}

impl Default for Config {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            max_datagram: 1452,
            capacity: 1_000_000_000,
            rate: 1.0,
            train: 4,
            order: Order::default(),
            code: Code::default(),
            policy: BurstPolicy::default(),
            deadline: Duration::from_secs(10),
            max_redundancy: 32,
            blocks_in_flight: 2,
            send_messages: 65_536,
            send_bytes: 256 * MIB,
            max_message: 16 * MIB,
            receive_messages: 1024,
            receive_bytes: 64 * MIB,
            decode_bytes: 256 * MIB,
            decode_bytes_per_peer: 64 * MIB,
            decode_timeout: Duration::from_secs(15),
            busy_poll: Duration::from_micros(50),
            max_peers: 4096,
            aeolus: false,
            port: 0,
            ports: 1,
            reuse_port: false,
        }
    }
}

/// A setting that the caller must change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting `{field}` is {value}: it must be {expected}")]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// What it was set to.
    pub value: String,
    /// What it may be set to.
    pub expected: &'static str,
}

impl Config {
    /// The smallest `max_datagram`: what every IPv4 host must take (576) less its headers.
    pub const MIN_DATAGRAM: usize = 548;

    /// The largest symbol that a packet of this configuration carries under `code`.
    pub fn max_symbol(&self, code: Code) -> usize {
        self.max_datagram - SYMBOL_OVERHEAD - code.index_set_len(MAX_SOURCE_SYMBOLS)
    }

    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, value: &dyn ToString, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if !(Self::MIN_DATAGRAM..=65_507).contains(&self.max_datagram) {
            return refuse("max_datagram", &self.max_datagram, "between 548 and 65507 bytes");
        }
        if self.capacity < 8_000 {
            return refuse("capacity", &self.capacity, "at least 8000 bits a second");
        }
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return refuse("rate", &self.rate, "above 0 and at most 1");
        }
        if !(1..=64).contains(&self.train) {
            return refuse("train", &self.train, "between 1 and 64 packets");
        }
        if !(1..=MAX_BLOCKS_IN_FLIGHT).contains(&self.blocks_in_flight) {
            return refuse("blocks_in_flight", &self.blocks_in_flight, "between 1 and 8");
        }
        if !(1..=MAX_PORTS).contains(&self.ports) {
            return refuse("ports", &self.ports, "between 1 and 64");
        }
        if self.port.checked_add(self.ports - 1).is_none() {
            return refuse("port", &self.port, "so low that all `ports` from it on exist");
        }
        self.policy.check()?;
        check_code(self.code)?;
        if self.deadline.is_zero() {
            return refuse("deadline", &"0", "longer than nothing");
        }
        if !(2..=1_000).contains(&self.max_redundancy) {
            return refuse("max_redundancy", &self.max_redundancy, "between 2 and 1000");
        }
        if self.decode_timeout.is_zero() {
            return refuse("decode_timeout", &"0", "longer than nothing");
        }
        for (field, value) in [
            ("send_messages", self.send_messages),
            ("send_bytes", self.send_bytes),
            ("max_message", self.max_message),
            ("receive_messages", self.receive_messages),
            ("receive_bytes", self.receive_bytes),
            ("max_peers", self.max_peers),
        ] {
            if value == 0 {
                return refuse(field, &value, "at least 1");
            }
        }
        for (field, value) in [
            ("decode_bytes", self.decode_bytes),
            ("decode_bytes_per_peer", self.decode_bytes_per_peer),
        ] {
            if value < self.max_message.saturating_mul(2) {
                return refuse(field, &value, "at least twice `max_message`, or one never fits");
            }
        }
        Ok(())
    }
}

/// Refuses a code whose parameter means nothing.
pub(crate) fn check_code(code: Code) -> Result<(), ConfigError> {
    match Code::from_wire(code.to_wire()) {
        Some(known) if known == code => Ok(()),
        _ => Err(ConfigError {
            field: "code",
            value: code.to_string(),
            expected: "a code with a degree that can be drawn, such as d=5",
        }),
    }
}

impl BurstPolicy {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Budgeted { margin } if !(0.0..=4.0).contains(margin) => Err(ConfigError {
                field: "policy.margin",
                value: margin.to_string(),
                expected: "between 0 and 4",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_digits_and_nothing_else_is() {
        let key: [u8; 32] = core::array::from_fn(|at| 0xa0 + at as u8);
        let digits: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
        for text in [&digits, &digits.to_lowercase(), &format!("  {digits}\n")] {
            assert_eq!(Security::key_from_hex(text), Some(key), "{text}");
        }
        for text in ["", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Security::key_from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn the_default_holds_and_carries_the_papers_largest_message_in_one_block() {
        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        for code in [Code::Rlf256, "lt".parse().unwrap()] {
            assert!(config.max_symbol(code) * MAX_SOURCE_SYMBOLS >= 93_000);
        }
    }

    #[test]
    fn a_refusal_names_the_field_the_value_and_the_range() {
        let refusals = [
            Config { rate: 0.0, ..Config::default() },
            Config { rate: f64::NAN, ..Config::default() },
            Config { max_datagram: 100, ..Config::default() },
            Config { train: 0, ..Config::default() },
            Config { max_peers: 0, ..Config::default() },
            Config { decode_bytes: 5, ..Config::default() },
            Config { policy: BurstPolicy::Budgeted { margin: -1.0 }, ..Config::default() },
            Config { capacity: 0, ..Config::default() },
            Config { deadline: Duration::ZERO, ..Config::default() },
            Config { max_redundancy: 1, ..Config::default() },
            Config { ports: 0, ..Config::default() },
            Config { port: 65_535, ports: 2, ..Config::default() },
        ];
        let said: Vec<String> =
            refusals.iter().map(|config| config.check().unwrap_err().to_string()).collect();
        assert_eq!(
            said,
            [
                "setting `rate` is 0: it must be above 0 and at most 1",
                "setting `rate` is NaN: it must be above 0 and at most 1",
                "setting `max_datagram` is 100: it must be between 548 and 65507 bytes",
                "setting `train` is 0: it must be between 1 and 64 packets",
                "setting `max_peers` is 0: it must be at least 1",
                "setting `decode_bytes` is 5: it must be at least twice `max_message`, or one \
                 never fits",
                "setting `policy.margin` is -1: it must be between 0 and 4",
                "setting `capacity` is 0: it must be at least 8000 bits a second",
                "setting `deadline` is 0: it must be longer than nothing",
                "setting `max_redundancy` is 1: it must be between 2 and 1000",
                "setting `ports` is 0: it must be between 1 and 64",
                "setting `port` is 65535: it must be so low that all `ports` from it on exist",
            ]
        );
    }
}
