//! Reports of experiments: charts, tables, judged claims, and one page with all of them.
//!
//! ```text
//!   measurements --> statistics: estimates with intervals
//!                             |
//!            +----------------+-----------------+
//!            v                v                 v
//!         figures           Table             claims
//!            |                |                 |
//!            +--> Section <---+                 |
//!                    |                          |
//!                    +-------> Report <---------+
//!                                |
//!                                v
//!        index.html, tables.md, claims.md, figures/*.svg and *.png
//! ```
//!
//! Callers supply the measurements, choose the figures and tables, and judge claims by their own rules.
//! Writing a report is deterministic: the same report gives the same bytes.

pub mod claims;
mod csv;
mod date;
mod error;
pub mod figures;
pub mod numbers;
mod page;
pub mod statistics;
mod table;

pub use csv::write_csv;
pub use date::today;
pub use error::Error;
pub use page::{Report, Section};
pub use table::Table;
