//! Decides when packets may be sent: pacing, the limit of the sending rate, and the rate of pulls.
//!
//! A [`Pacer`] spaces packets as in Algorithm 1. `RateLimit` adapts the sending rate to
//! what the network carries, on the `Evidence` of what peers report. Endpoints that pull
//! over one link share its rate, a [`Downlink`].
//!
//! Which path a packet takes is decided in [`path`](crate::path), which knows nothing of rates.

mod downlink;
mod evidence;
mod limit;
mod pacer;

pub use downlink::Downlink;
pub(crate) use downlink::Share;
pub(crate) use evidence::Evidence;
pub(crate) use limit::{HEADROOM, RateLimit, RoundTrips};
pub(crate) use pacer::LIMITED_DEPTH;
pub use pacer::Pacer;
