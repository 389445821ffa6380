//! Counters of the sockets.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// Counters of an endpoint's sockets since they were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoCounters {
    /// Datagrams that the system accepted for sending.
    pub datagrams_sent: u64,
    /// System calls that sent them: a batch for one path takes one call.
    pub batches_sent: u64,
    /// Sockets whose device cannot segment batches (GSO), and which send datagrams one by one.
    pub gso_fallbacks: u64,
    /// Datagrams that the system refused to send. They count as lost.
    pub send_errors: RefusedDatagrams,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Buffers that they arrived in: the system coalesces datagrams of one flow (GRO).
    pub batches_received: u64,
    /// Receive errors of the sockets, ICMP messages included.
    pub receive_errors: u64,
    /// Datagrams that the system dropped because a socket's receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams that arrived truncated and were discarded.
    pub truncated: u64,
    /// Datagrams that arrived, from any source, by their ECN bits.
    ///
    /// A mark tells the operator that a queue was longer than a switch's marking threshold. It
    /// changes the rate only where that adapts ([`Rate`](crate::Rate)), and paths only with
    /// [`Order::Recycled`](crate::Order::Recycled).
    pub ecn: EcnCounts,
    /// Packets that arrived with a DSCP that this endpoint does not use. Such packets are easy to
    /// forge.
    pub foreign_dscp: u64,
    /// The DSCP of the first such packet.
    pub first_foreign_dscp: Option<u8>,
}

/// Datagrams by ECN codepoint (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EcnCounts {
    /// Not ECN-capable, 00.
    pub not_ect: u64,
    /// ECN-capable, ECT(1), 01.
    pub ect1: u64,
    /// ECN-capable, ECT(0), 10.
    pub ect0: u64,
    /// Marked by a switch instead of being dropped, 11.
    pub ce: u64,
}

/// Datagrams that the system refused to send, by error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedDatagrams {
    /// A buffer or a queue of this host is full (EAGAIN, ENOBUFS, ENOMEM).
    pub no_buffer: u64,
    /// The peer's host reported a closed port (ECONNREFUSED).
    pub refused: u64,
    /// No route, no address, or no interface (ENETUNREACH, EHOSTUNREACH and similar), or no way there from
    /// the address that the endpoint is bound to (EINVAL).
    pub unreachable: u64,
    /// Denied by this host's firewall (EPERM), or because of a route or the kind of address
    /// (EACCES).
    pub denied: u64,
    /// Larger than the MTU of the interface (EMSGSIZE), which has shrunk: packets become shorter.
    pub too_large: u64,
    /// Anything else.
    pub other: u64,
}

impl IoCounters {
    /// The names of the counts, and their values.
    // Destructured, so that a new counter does not compile before it is listed.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let Self {
            datagrams_sent,
            batches_sent,
            gso_fallbacks,
            send_errors:
                RefusedDatagrams { no_buffer, refused, unreachable, denied, too_large, other },
            datagrams_received,
            batches_received,
            receive_errors,
            kernel_drops,
            truncated,
            ecn: EcnCounts { not_ect, ect1, ect0, ce },
            foreign_dscp,
            first_foreign_dscp: _,
        } = *self;
        [
            ("datagrams_sent", datagrams_sent),
            ("batches_sent", batches_sent),
            ("gso_fallbacks", gso_fallbacks),
            ("send_errors.no_buffer", no_buffer),
            ("send_errors.refused", refused),
            ("send_errors.unreachable", unreachable),
            ("send_errors.denied", denied),
            ("send_errors.too_large", too_large),
            ("send_errors.other", other),
            ("datagrams_received", datagrams_received),
            ("batches_received", batches_received),
            ("receive_errors", receive_errors),
            ("kernel_drops", kernel_drops),
            ("truncated", truncated),
            ("ecn.not_ect", not_ect),
            ("ecn.ect1", ect1),
            ("ecn.ect0", ect0),
            ("ecn.ce", ce),
            ("foreign_dscp", foreign_dscp),
        ]
        .into_iter()
    }
}

impl RefusedDatagrams {
    /// The total of all classes.
    pub const fn total(&self) -> u64 {
        let Self { no_buffer, refused, unreachable, denied, too_large, other } = *self;
        no_buffer + refused + unreachable + denied + too_large + other
    }
}

/// The counters, to which several threads add.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) datagrams_sent: Count,
    pub(super) batches_sent: Count,
    pub(super) gso_fallbacks: Count,
    pub(super) no_buffer: Count,
    pub(super) refused: Count,
    pub(super) unreachable: Count,
    pub(super) denied: Count,
    pub(super) too_large: Count,
    pub(super) other: Count,
    pub(super) datagrams_received: Count,
    pub(super) batches_received: Count,
    pub(super) receive_errors: Count,
    pub(super) kernel_drops: Count,
    pub(super) truncated: Count,
    /// By ECN bits.
    pub(super) ecn: [Count; 4],
    pub(super) foreign_dscp: Count,
    pub(super) first_foreign_dscp: OnceLock<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Returns the count before.
    pub(super) fn add(&self, more: usize) -> u64 {
        self.0.fetch_add(more as u64, Relaxed)
    }

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Meter {
    pub(super) fn read(&self) -> IoCounters {
        let [not_ect, ect1, ect0, ce] = self.ecn.each_ref().map(Count::read);
        IoCounters {
            datagrams_sent: self.datagrams_sent.read(),
            batches_sent: self.batches_sent.read(),
            gso_fallbacks: self.gso_fallbacks.read(),
            send_errors: RefusedDatagrams {
                no_buffer: self.no_buffer.read(),
                refused: self.refused.read(),
                unreachable: self.unreachable.read(),
                denied: self.denied.read(),
                too_large: self.too_large.read(),
                other: self.other.read(),
            },
            datagrams_received: self.datagrams_received.read(),
            batches_received: self.batches_received.read(),
            receive_errors: self.receive_errors.read(),
            kernel_drops: self.kernel_drops.read(),
            truncated: self.truncated.read(),
            ecn: EcnCounts { not_ect, ect1, ect0, ce },
            foreign_dscp: self.foreign_dscp.read(),
            first_foreign_dscp: self.first_foreign_dscp.get().copied(),
        }
    }
}
