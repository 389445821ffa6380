//! What all transfers of one run of `cbrst-send` have in common.

use super::address::{self, ResolveError};
use super::unresponsive::Unresponsive;
use crate::courier::Courier;
use crate::pairing::{self, PairingError};
use crate::plan::SendPlan;
use crate::protocol::{Body, Frame, FrameTag, InvocationId, MAX_CHUNK, TransferId};
use crate::signals::Interrupts;
use crate::text;
use crate::ui::Ui;
use cloudburst_net::{BuildError, BurstPolicy, Capacity, Security, SendOptions};
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// The fewest bytes in a chunk.
const MIN_CHUNK: usize = 16 << 10;
/// Chunks are first sent without repair symbols: while one waits for lost symbols to be replaced, the
/// others use the link. Measured against the default margin of 1/16: a quarter faster over
/// loopback, and as fast at 5 % loss and 10 ms RTT, for 6 % fewer packets without loss.
const CHUNK_POLICY: BurstPolicy = BurstPolicy::Budgeted { margin: 0.0 };
/// How long a frame whose delivery does not matter may take.
const UNCONFIRMED_TIMEOUT: Duration = Duration::from_millis(500);

/// Why the program could not start to send.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("{peer} cannot be reached: {source}{}", address::after_connect(source))]
    NoRoute { peer: SocketAddr, source: io::Error },
    #[error("{}", text::not_built(.0, "ADDR"))]
    Endpoint(#[from] BuildError),
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// Identifies a frame in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) transfer: TransferId,
    pub(super) tag: FrameTag,
    /// The bytes of the file in it.
    pub(super) bytes: u64,
}

/// One run of `cbrst-send`: the state that all its transfers share.
pub(super) struct Session {
    pub(super) id: InvocationId,
    pub(super) peer: SocketAddr,
    pub(super) deadline: Duration,
    /// Bytes in a chunk.
    pub(super) chunk: usize,
    /// The burst policy of chunks.
    pub(super) policy: BurstPolicy,
    pub(super) courier: Courier<InFlight>,
    /// Whether to resume from the prefixes that the receiver has.
    pub(super) resumes: bool,
    /// Whether a message was ever delivered to the receiver.
    pub(super) is_known: bool,
    unresponsive: Unresponsive,
    pub(super) interrupts: Interrupts,
    pub(super) ui: Ui,
}

impl Session {
    pub(super) fn start(plan: &SendPlan, ui: Ui) -> Result<Self, StartError> {
        let interrupts = Interrupts::install().map_err(StartError::Signals)?;
        let deadline = plan.common.deadline;
        let peer = address::resolve(&plan.host, deadline)?;
        // The source address of packets determines the interface, and so the capacity.
        let local =
            address::local_for(peer).map_err(|source| StartError::NoRoute { peer, source })?;
        let security = match plan.pair {
            Some(code) => Security::pre_shared(pairing::pair_with(peer, code, deadline)?),
            None => plan.common.key.security(),
        };
        let builder = plan.common.builder(local, plan.order);
        let courier = Courier::new(builder.security(security).build()?);
        Ok(Self {
            id: InvocationId(rand::random()),
            peer,
            deadline,
            chunk: chunk_for(plan.common.capacity, plan.common.rate.share()),
            policy: chunk_policy(plan.pull),
            courier,
            resumes: plan.common.resumes,
            is_known: false,
            unresponsive: Unresponsive::new(Instant::now(), deadline),
            interrupts,
            ui,
        })
    }

    /// Reports early why the receiver may be unresponsive, without ending the transfer: an attacker that forges
    /// or suppresses the evidence only changes a line on the screen.
    pub(super) fn report_unresponsive(&mut self, now: Instant) {
        let counters = self.courier.endpoint().counters().sender;
        let signs = counters.sessions_opened
            + counters.stops_received
            + counters.nacks_received
            + counters.pulls_received
            + counters.busy_received;
        let is_pending = self.courier.under_way().next().is_some();
        if let Some(cause) = self.unresponsive.poll(now, self.peer, signs, is_pending) {
            let peer = self.peer;
            let deadline = self.deadline.as_secs_f64();
            self.ui.status(&format!(
                "{cause}; trying for {deadline} s in all; cbrst-doctor {peer} examines the network"
            ));
        }
    }

    /// Returns how long to search for the cause if nothing is heard. For a receiver that never answered, this is part
    /// of the deadline; otherwise it comes on top.
    pub(super) fn search(&self) -> Duration {
        // A stalled transfer has had all of its deadline: with less, transfers would fail over
        // links that recover.
        if self.is_known { address::PROBE_FOR } else { address::PROBE_FOR.min(self.deadline / 2) }
    }

    /// Returns how long to wait for the delivery of an OFFER.
    pub(super) fn patience(&self) -> Duration {
        if self.is_known { self.deadline } else { self.deadline - self.search() }
    }

    /// Sends a frame whose delivery does not matter.
    pub(super) fn send_unconfirmed(&mut self, transfer: TransferId, body: Body) {
        let frame = Frame { transfer, body }.encode();
        let options = SendOptions::default().deadline(UNCONFIRMED_TIMEOUT);
        let in_flight = InFlight { transfer, tag: FrameTag::Alive, bytes: 0 };
        let _ = self.courier.send(in_flight, self.peer, frame, options);
    }

    /// Ends the session, with a BYE if the receiver has answered.
    pub(super) fn end(mut self) {
        if self.is_known {
            self.send_unconfirmed(TransferId { session: self.id, file: 0 }, Body::Bye);
            self.courier.close(UNCONFIRMED_TIMEOUT);
        }
    }
}

/// Returns the number of bytes in a chunk for a link of this capacity. Over loopback, 180 kB to 1 MiB are
/// equally fast, and the largest costs the least bookkeeping. On a slow link, a chunk should take a
/// tenth of a second, so that some chunk arrives well before either end gives up.
fn chunk_for(capacity: Capacity, share: f64) -> usize {
    let tenth = match capacity {
        Capacity::BitsPerSecond(bits) => bits as f64 * share / 80.0,
        _ => f64::INFINITY,
    };
    (tenth as usize).clamp(MIN_CHUNK, MAX_CHUNK)
}

/// Returns the burst policy of chunks, which the receiver pulls if `pull` is set.
const fn chunk_policy(pull: bool) -> BurstPolicy {
    if pull { BurstPolicy::Pulled { window: None } } else { CHUNK_POLICY }
}
