//! Both configurations, out of the input's first bytes.

use crate::input::Input;
use cloudburst_core::code::{Code, Degree};
use cloudburst_core::config::{BurstPolicy, Config, Security};
use cloudburst_core::path::Order;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use core::time::Duration;

/// The port of lane 0; lane k has this plus k.
pub(super) const PORT: u16 = 7000;

/// What the pair is made of.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) a: Config,
    pub(super) b: Config,
    pub(super) security: Security,
    pub(super) lanes: u16,
    pub(super) start: Instant,
    /// Whether the network works again at the end.
    pub(super) heals: bool,
    /// How long nothing is sent before each message that must arrive then.
    pub(super) rest: Duration,
}

impl Setup {
    pub(super) fn read(input: &mut Input<'_>) -> Self {
        let flags = input.u8();
        let trusted = flags & 2 != 0;
        Self {
            heals: flags & 1 == 0,
            rest: Duration::from_secs(5) * u32::from(flags >> 5),
            security: if trusted {
                Security::trusted_network()
            } else {
                Security::pre_shared([7; 32])
            },
            lanes: 1 + u16::from(flags >> 2 & 3),
            start: Instant::from_nanos(if flags & 16 != 0 { 0 } else { 1_000_000_000 }),
            a: config(input),
            b: config(input),
        }
    }
}

fn config(input: &mut Input<'_>) -> Config {
    let max_message = input.pick(&[131_072, 2_000, 16_384]);
    let config = Config {
        max_message,
        max_datagram: input.pick(&[548, 1452]),
        capacity: input.pick(&[1_000_000_000, 10_000_000, 1_000_000]),
        rate: input.pick(&[1.0, 0.5]),
        run: input.pick(&[4, 1, 16]),
        code: input.pick(&CODES),
        policy: input.pick(&POLICIES),
        deadline: input.pick(&[2_000, 10, 100, 5].map(Duration::from_millis)),
        max_redundancy: input.pick(&[32, 2, 8]),
        blocks_in_flight: input.pick(&[2, 1, 3]),
        send_messages: input.pick(&[64, 1, 4]),
        send_bytes: input.pick(&[1 << 20, 1_000, 20_000]),
        receive_messages: input.pick(&[1024, 1, 2]),
        receive_bytes: input.pick(&[1 << 20, 1_000, 10_000]),
        decode_bytes: 2 * max_message + input.pick(&[1 << 20, 0, 10_000]),
        decode_bytes_per_peer: 2 * max_message + input.pick(&[1 << 20, 0, 10_000]),
        decode_timeout: input.pick(&[5_000, 100, 10].map(Duration::from_millis)),
        max_peers: input.pick(&[4096, 1, 2]),
        port: PORT,
        ports: 1,
        reuse_port: false,
        busy_poll: Duration::ZERO,
        order: Order::default(),
        // It changes marks alone, which no state machine sees.
        aeolus: false,
    };
    config.check().expect("every choice above is in its range");
    config
}

/// What one message wants otherwise.
pub(super) fn options(input: &mut Input<'_>) -> SendOptions {
    let choices = input.u8();
    let deadline = [None, Some(1), Some(20), Some(200), Some(2_000)][usize::from(choices % 5)];
    SendOptions {
        deadline: deadline.map(Duration::from_millis),
        code: CODES.get(usize::from(choices / 5) % (CODES.len() + 1)).copied(),
        policy: POLICIES.get(usize::from(choices / 35)).copied(),
        priority: choices % (SendOptions::MAX_PRIORITY + 1),
    }
}

const CODES: [Code; 6] = [
    Code::Rlf256,
    Code::Lt(Degree::Fixed(5)),
    Code::LtSystematic(Degree::Dense),
    Code::Lt(Degree::RobustSoliton),
    Code::Lt(Degree::Fixed(2)),
    Code::LtSystematic(Degree::IdealSoliton),
];

const POLICIES: [BurstPolicy; 4] = [
    BurstPolicy::Budgeted { margin: 1.0 / 16.0 },
    BurstPolicy::Budgeted { margin: 0.0 },
    BurstPolicy::Oblivious,
    BurstPolicy::Budgeted { margin: 4.0 },
];
