//! The counters of a sender.

/// Counters of what a sender has done and seen since it was created.
///
/// # Example
///
/// ```
/// # use cloudburst_core::proto::SenderCounters;
/// fn log(sender: &SenderCounters) {
///     let SenderCounters { delivered, rejected, unknown, .. } = sender;
///     println!("{delivered} delivered, {rejected} not, {unknown} unknown");
///     let needed = sender.source_symbols.max(1) as f64;
///     println!("{:.2} packets for each that was needed", sender.symbols_sent as f64 / needed);
/// }
/// # log(&SenderCounters::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are self-explanatory; docs/spec.md lists them")]
#[non_exhaustive]
pub struct SenderCounters {
    pub handshakes_sent: u64,
    pub sessions_opened: u64,
    pub symbols_sent: u64,
    pub symbol_bytes_sent: u64,
    pub probes_sent: u64,
    pub delivered: u64,
    pub bytes_delivered: u64,
    pub source_symbols: u64,
    pub rejected: u64,
    pub unknown: u64,
    pub stops_received: u64,
    pub statuses_received: u64,
    pub pulls_received: u64,
    pub busies_received: u64,
    pub false_stops: u64,
    pub late_answers: u64,
    pub malformed: u64,
    pub unknown_session: u64,
    pub forged: u64,
    pub replayed: u64,
    pub rate: u64,
    pub rate_lowered: u64,
}
