//! Emulated links with deliberate faults, and counters that prove that the faults occurred.
//!
//! ```text
//!                    ┌────────────── link ──────────────┐
//!   send(now, ..) ─▶ │ down? MTU? queue, trimming, rate │
//!                    │ loss, duplication, damage        │ ─▶ poll(now)
//!   stats() ◀─────── │ delay, jitter, holding back      │
//!                    └──────────────────────────────────┘
//!   client k ◀──▶ relay: one link up and one link down per client ◀──▶ target
//! ```
//!
//! | module | role |
//! |---|---|
//! | [`link`] | one link in one direction, without I/O: time is an argument, randomness is a seed |
//! | [`queue`] | a drop-tail FIFO with an ECN threshold |
//! | [`relay`] | a UDP relay on the loopback interface whose paths are such links |
//!
//! The crate is independent of the protocol that it carries, and depends only on the standard
//! library. Every fault has a counter in [`LinkStats`], so that a test can prove that the faults
//! that it claims to survive did occur.
//!
//! # Example
//!
//! A link that loses one packet in ten and delays the others by 20 ms:
//!
//! ```
//! use cloudburst_netem::{Link, LinkConfig, Loss};
//! use core::time::Duration;
//!
//! let delay = Duration::from_millis(20);
//! let config = LinkConfig { loss: Loss::Independent(0.1), delay, ..LinkConfig::default() };
//! let mut link = Link::new(config, 7)?;
//!
//! for number in 0..100_u8 {
//!     link.send(Duration::ZERO, &[number]);
//! }
//! assert_eq!(link.next_at(), Some(delay));
//! assert_eq!(link.poll(Duration::ZERO), None);
//!
//! let mut arrived = 0;
//! while let Some(packet) = link.poll(delay) {
//!     assert_eq!(packet.len(), 1);
//!     arrived += 1;
//! }
//! assert!(link.stats().lost > 0);
//! assert_eq!(arrived + link.stats().lost, 100);
//! # Ok::<(), cloudburst_netem::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

pub mod link;
pub mod queue;
pub mod relay;
mod rng;

pub use link::{ConfigError, Link, LinkConfig, LinkStats, Loss, Losses, Mark, Trim};
pub use relay::{Relay, RelayError};
