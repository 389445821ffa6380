//! An adversarial network of endpoints in virtual time.
//!
//! Tests of the core, the fuzzer and seeded soaks drive endpoints through this crate alone, so
//! there is one driver of the contract, one model of the network, and one clock.
//!
//! ```text
//!   application ─► host ── Transceiver ► departure ► link ► arrival ► Transceiver ── host
//!                   ▲                     (Watch)   (netem)                           │
//!                   └────────────── drive: packets first, then timers ◄───────────────┘
//! ```
//!
//! | module | role |
//! |---|---|
//! | [`recipe`] | the configuration of a host, and its addresses |
//! | [`host`] | an endpoint and its application; the driving contract, once |
//! | [`network`] | the links between egresses, made of `cloudburst_netem` |
//! | [`drive`] | hosts and links on one clock |
//! | `choices` | the source of decisions: a seed, or the bytes of a fuzzer |
//! | `setup`, `conditions`, `step`, `faults` | the decisions: configurations, links, steps, and the faults that may occur |
//! | `adversary` | packets that are held back, damaged, replayed, reflected, redirected, forged |
//! | `log` | messages sent, delivered and ended, traffic by address, and their checks; a hash of everything |
//! | `world`, `act`, `invariants`, `ending`, `play` | hosts and network, effects of steps, invariants after each step, the end of a world, and the main loop |
//!
//! # A world from a seed
//!
//! ```
//! use cloudburst_world::{Choices, Faults, play};
//!
//! assert_eq!(play(Choices::seed(1), Faults::ALL), play(Choices::seed(1), Faults::ALL));
//! ```

#![forbid(unsafe_code)]

mod act;
mod adversary;
mod choices;
pub mod clock;
mod conditions;
pub mod drive;
mod ending;
mod faults;
pub mod host;
mod invariants;
mod log;
pub mod network;
mod play;
pub mod recipe;
mod setup;
mod step;
mod world;

pub use choices::Choices;
pub use clock::Clock;
pub use ending::DELIVERY_LIMIT;
pub use faults::Faults;
pub use host::{Departure, Host};
pub use network::{Hop, Network};
pub use play::{play, play_verbose};
pub use recipe::Recipe;
