//! An adversarial network of endpoints in virtual time.
//!
//! Tests of the core, the fuzzer and seeded soaks drive endpoints through this crate alone, so
//! there is one driver of the contract, one model of the network, and one clock.
//!
//! ```text
//!   application ─► host ── Endpoint ──► departure ─► link ─► arrival ──► Endpoint ── host
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
//! | `setup`, `weather`, `step`, `scope` | the decisions: configurations, links, steps, and the faults that may occur |
//! | `adversary` | packets that are held back, damaged, replayed, reflected, redirected, forged |
//! | `ledger`, `verdict`, `accounts` | messages sent, delivered and ended; checks of reported outcomes; traffic by address |
//! | `book`, `trace` | the records of a running world, and its hash |
//! | `world`, `act`, `invariants`, `ending`, `play` | hosts and network, effects of steps, invariants after each step, the end of a world, and the main loop |
//!
//! # A world from a seed
//!
//! ```
//! use cloudburst_world::{Choices, Scope, play};
//!
//! assert_eq!(play(Choices::seed(1), Scope::ALL), play(Choices::seed(1), Scope::ALL));
//! ```

#![forbid(unsafe_code)]

mod accounts;
mod act;
mod adversary;
mod book;
mod choices;
pub mod drive;
mod ending;
pub mod host;
mod invariants;
mod ledger;
pub mod network;
mod play;
pub mod recipe;
mod scope;
mod setup;
mod step;
mod trace;
mod verdict;
mod weather;
mod world;

pub use choices::Choices;
pub use ending::LIVELY;
pub use host::{Departure, Host};
pub use network::{Hop, Network};
pub use play::{play, play_aloud};
pub use recipe::Recipe;
pub use scope::Scope;
