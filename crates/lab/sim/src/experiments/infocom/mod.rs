//! Section V of the Cloudburst paper (INFOCOM 2022), at its own rates.
//!
//! | file | experiment | the paper |
//! |---|---|---|
//! | `design_choices` | the contributions of coding, many paths and tiny queues | V-A, Figures 9 to 11 |
//! | `rivals` | Cloudburst compared with DCTCP, PIAS, replicated DCTCP and MPTCP | V-B, Figures 12 and 13, Table 14 |
//! | `incast` | N messages to one host at the same time | V-C, Figure 15 |
//! | `dead_paths` | dead spines | V-C, Figure 16 |
//! | `large` | 144 hosts at 10 Gb/s | V-D, Figure 17 |
//! | `oversubscribed` | the rate r at an over-subscription of 2:1 | V-D, Figure 18 |
//! | `adaptive_rate` | the cost of the adaptive rate | none |
//! | `path_orders` | round robin, random and recycled orders of paths where spines differ | none |
//! | `site`, `setup`, `traffic`, `show` | shared: the networks, the schemes, the requests, figures and tables | |

mod adaptive_rate;
mod dead_paths;
mod design_choices;
mod incast;
mod large;
mod oversubscribed;
mod path_orders;
mod rivals;
mod setup;
mod show;
mod site;
mod traffic;

pub use adaptive_rate::EXPERIMENT as ADAPTIVE_RATE;
pub use dead_paths::EXPERIMENT as DEAD_PATHS;
pub use design_choices::EXPERIMENT as DESIGN_CHOICES;
pub use incast::EXPERIMENT as INCAST;
pub use large::EXPERIMENT as LARGE;
pub use oversubscribed::EXPERIMENT as OVERSUBSCRIBED;
pub use path_orders::EXPERIMENT as PATH_ORDERS;
pub use rivals::EXPERIMENT as RIVALS;
