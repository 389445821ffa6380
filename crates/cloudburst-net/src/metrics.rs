//! Publishes the counters of an endpoint through the crate [`metrics`](::metrics).
//!
//! Nothing is published while packets are handled: [`Metrics::publish`] reads counters that exist in any
//! case. `docs/metrics.md` lists what it publishes.

use crate::driver::Inner;
use crate::endpoint::{Counters, Endpoint};
use crate::io::GrantedBuffers;
use ::metrics::{
    Label, SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use cloudburst_core::latency::LatencyHistogram;
use cloudburst_core::path::PathStats;
use cloudburst_core::proto::{Latencies, PeerStats};
use core::{fmt, mem};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// The name of a metric, and its description.
struct Family {
    name: &'static str,
    unit: Unit,
    help: &'static str,
    /// The label that tells its series apart; empty if it has only one.
    label: &'static str,
}

/// A family with its series: the value of the label, and how to read the metric.
type Series<T, V> = (Family, &'static [(&'static str, fn(&T) -> V)]);

/// A family whose series have labels from elsewhere, and how to read the metric.
type Reading<T, V> = (Family, fn(&T) -> V);

const fn family(name: &'static str, unit: Unit, label: &'static str, help: &'static str) -> Family {
    Family { name, unit, help, label }
}

#[rustfmt::skip]
const COUNTERS: &[Series<Counters, u64>] = &[
    (family("cloudburst_messages_sent_total", Unit::Count, "outcome", "Messages sent, by outcome."), &[
        ("delivered", |c| c.sender.delivered),
        ("rejected", |c| c.sender.rejected),
        ("unknown", |c| c.sender.unknown),
    ]),
    (family("cloudburst_message_sent_bytes_total", Unit::Bytes, "", "Bytes of the messages that were delivered to peers."), &[
        ("", |c| c.sender.bytes_delivered),
    ]),
    (family("cloudburst_messages_received_total", Unit::Count, "", "Messages put into the application's queue."), &[
        ("", |c| c.receiver.messages_delivered),
    ]),
    (family("cloudburst_message_received_bytes_total", Unit::Bytes, "", "Bytes of the messages put into the application's queue."), &[
        ("", |c| c.receiver.bytes_delivered),
    ]),
    (family("cloudburst_messages_dropped_total", Unit::Count, "cause", "Messages received in part or whole that were dropped."), &[
        ("no_capacity", |c| c.receiver.messages_dropped),
        ("incomplete", |c| c.receiver.decoders_expired),
    ]),
    (family("cloudburst_symbols_needed_total", Unit::Count, "", "Source symbols of the messages delivered to peers: the packets that a loss-free network needs."), &[
        ("", |c| c.sender.source_symbols),
    ]),
    (family("cloudburst_symbols_sent_total", Unit::Count, "", "SYMBOL packets sent."), &[
        ("", |c| c.sender.symbols_sent),
    ]),
    (family("cloudburst_symbol_sent_bytes_total", Unit::Bytes, "", "UDP payload of the SYMBOL packets sent."), &[
        ("", |c| c.sender.symbol_bytes_sent),
    ]),
    (family("cloudburst_probes_sent_total", Unit::Count, "", "SYMBOL packets without a symbol, sent to request a report."), &[
        ("", |c| c.sender.probes_sent),
    ]),
    (family("cloudburst_symbols_received_total", Unit::Count, "use", "Authentic SYMBOL packets received, by their use."), &[
        ("useful", |c| c.receiver.useful_symbols),
        ("late", |c| c.receiver.late_symbols),
        ("redundant", |c| {
            let used = c.receiver.useful_symbols + c.receiver.late_symbols;
            c.receiver.symbols_received.saturating_sub(used)
        }),
    ]),
    (family("cloudburst_symbols_lost_total", Unit::Count, "", "Symbols of pulled messages that the receiver found lost."), &[
        ("", |c| c.receiver.symbols_lost),
    ]),
    (family("cloudburst_symbols_trimmed_total", Unit::Count, "", "Symbols received whose payload a switch had cut off."), &[
        ("", |c| c.receiver.symbols_trimmed),
    ]),
    (family("cloudburst_answers_received_total", Unit::Count, "kind", "Reports received from receivers, by kind."), &[
        ("stop", |c| c.sender.stops_received),
        ("nack", |c| c.sender.nacks_received),
        ("pull", |c| c.sender.pulls_received),
        ("busy", |c| c.sender.busy_received),
    ]),
    (family("cloudburst_answers_sent_total", Unit::Count, "kind", "Reports sent to senders, by kind."), &[
        ("stop", |c| c.receiver.stops_sent),
        ("nack", |c| c.receiver.nacks_sent),
        ("pull", |c| c.receiver.pulls_sent),
        ("busy", |c| c.receiver.busy_sent),
        ("reject", |c| c.receiver.rejects_sent),
        ("forgotten", |c| c.receiver.forgotten_sent),
    ]),
    (family("cloudburst_handshakes_sent_total", Unit::Count, "", "HELLO and OPEN packets sent."), &[
        ("", |c| c.sender.handshakes_sent),
    ]),
    (family("cloudburst_sessions_opened_total", Unit::Count, "direction", "Sessions opened, by which end sends the messages."), &[
        ("send", |c| c.sender.sessions_opened),
        ("receive", |c| c.receiver.sessions_confirmed),
    ]),
    (family("cloudburst_handshakes_refused_total", Unit::Count, "cause", "Handshakes of peers that were refused."), &[
        ("forged", |c| c.receiver.refused_handshakes),
        ("misdirected", |c| c.receiver.misdirected),
        ("no_capacity", |c| c.receiver.peers_refused),
    ]),
    (family("cloudburst_packets_refused_total", Unit::Count, "cause", "Packets received and dropped."), &[
        ("malformed", |c| c.sender.malformed + c.receiver.malformed),
        ("unknown_session", |c| c.sender.unknown_session + c.receiver.unknown_session),
        ("forged", |c| c.sender.forged + c.receiver.forged),
        ("replayed", |c| c.sender.replayed + c.receiver.replayed),
        ("nonsense", |c| c.receiver.nonsense),
        ("truncated", |c| c.io.truncated),
    ]),
    (family("cloudburst_rate_lowered_total", Unit::Count, "", "Times that the adaptive rate was lowered."), &[
        ("", |c| c.sender.rate_lowered),
    ]),
    (family("cloudburst_path_mtu_lowered_total", Unit::Count, "", "Times that packets to a peer became shorter, because the path proved to carry less."), &[
        ("", |c| c.sender.mtu_lowered),
    ]),
    (family("cloudburst_calls_total", Unit::Count, "outcome", "Calls that ended, by outcome."), &[
        ("answered", |c| c.calls.calls_answered),
        ("rejected", |c| c.calls.calls_rejected),
        ("unknown", |c| c.calls.calls_unknown),
        ("deadline", |c| c.calls.calls_expired),
        ("unanswered", |c| c.calls.calls_unanswered),
        ("overloaded", |c| c.calls.calls_overloaded),
        ("cancelled", |c| c.calls.calls_cancelled),
    ]),
    (family("cloudburst_responses_received_total", Unit::Count, "use", "Responses received, by whether a call waited for them."), &[
        ("taken", |c| c.calls.responses_received),
        ("dropped", |c| c.calls.responses_dropped),
    ]),
    (family("cloudburst_requests_received_total", Unit::Count, "outcome", "Requests received, by outcome."), &[
        ("taken", |c| c.calls.requests_received),
        ("expired", |c| c.calls.requests_expired),
        ("refused", |c| c.calls.requests_refused),
        ("malformed", |c| c.calls.malformed),
    ]),
    (family("cloudburst_requests_withdrawn_total", Unit::Count, "", "Requests that their callers withdrew, before or after the application took them, or whose callers are gone."), &[
        ("", |c| c.calls.requests_withdrawn),
    ]),
    (family("cloudburst_requests_served_total", Unit::Count, "outcome", "Requests that the application took, by what it did with them."), &[
        ("answered", |c| c.calls.requests_answered),
        ("unanswered", |c| c.calls.requests_unanswered),
        ("overloaded", |c| c.calls.requests_overloaded),
        ("cancelled", |c| c.calls.requests_cancelled),
    ]),
    (family("cloudburst_responses_failed_total", Unit::Count, "", "Replies of the application that did not get through."), &[
        ("", |c| c.calls.responses_failed),
    ]),
    (family("cloudburst_handlers_panicked_total", Unit::Count, "", "Handlers of requests that panicked."), &[
        ("", |c| c.calls.handlers_panicked),
    ]),
    (family("cloudburst_datagrams_total", Unit::Count, "direction", "Datagrams that the sockets sent and received."), &[
        ("send", |c| c.io.datagrams_sent),
        ("receive", |c| c.io.datagrams_received),
    ]),
    (family("cloudburst_datagram_batches_total", Unit::Count, "direction", "System calls that sent these datagrams, and buffers that received them."), &[
        ("send", |c| c.io.batches_sent),
        ("receive", |c| c.io.batches_received),
    ]),
    (family("cloudburst_datagrams_lost_total", Unit::Count, "direction", "Datagrams that this host lost: refused by the system, or dropped because a receive buffer was full."), &[
        ("send", |c| c.io.send_errors.total()),
        ("receive", |c| c.io.kernel_drops),
    ]),
    (family("cloudburst_datagrams_by_ecn_total", Unit::Count, "ecn", "Datagrams received, by ECN codepoint."), &[
        ("not_ect", |c| c.io.ecn.not_ect),
        ("ect0", |c| c.io.ecn.ect0),
        ("ect1", |c| c.io.ecn.ect1),
        ("ce", |c| c.io.ecn.ce),
    ]),
    (family("cloudburst_foreign_dscp_total", Unit::Count, "", "Packets received with a DSCP that the endpoint does not send."), &[
        ("", |c| c.io.foreign_dscp),
    ]),
];

#[rustfmt::skip]
const GAUGES: &[Series<View, f64>] = &[
    (family("cloudburst_messages_unfinished", Unit::Count, "", "Messages to peers that wait or are under way."), &[
        ("", |v| v.peers.iter().map(|peer| peer.sent.unfinished as f64).sum()),
    ]),
    (family("cloudburst_peers", Unit::Count, "", "Peers that the endpoint remembers."), &[
        ("", |v| v.peers.len() as f64),
    ]),
    (family("cloudburst_sessions", Unit::Count, "direction", "Peers with a session, by which end sends the messages."), &[
        ("send", |v| v.peers.iter().filter(|peer| peer.sent.session_since.is_some()).count() as f64),
        ("receive", |v| v.peers.iter().filter(|peer| peer.received.session_since.is_some()).count() as f64),
    ]),
    (family("cloudburst_path_mtu_bytes", Unit::Bytes, "", "Smallest MTU of a path to a peer, of the peers with a session that the endpoint sends in."), &[
        ("", |v| v.peers.iter().filter(|peer| peer.sent.session_since.is_some()).map(|peer| peer.sent.mtu).min().unwrap_or(0) as f64),
    ]),
    (family("cloudburst_rate_bits_per_second", Unit::BitsPerSecond, "", "Rate at which symbols may be sent."), &[
        ("", |v| v.counters.sender.rate as f64),
    ]),
    (family("cloudburst_socket_buffer_bytes", Unit::Bytes, "direction", "Bytes that the system granted to each socket."), &[
        ("send", |v| v.buffers.send as f64),
        ("receive", |v| v.buffers.receive as f64),
    ]),
];

/// By egress.
#[rustfmt::skip]
const PATH_COUNTERS: &[Reading<PathStats, u64>] = &[
    (family("cloudburst_path_packets_sent_total", Unit::Count, "egress", "Packets sent on the paths of an egress."), |p| p.sent),
    (family("cloudburst_path_symbols_arrived_total", Unit::Count, "egress", "Symbols that peers reported as received on these paths."), |p| p.arrived),
    (family("cloudburst_path_symbols_marked_total", Unit::Count, "egress", "Of these, symbols that arrived with a CE mark."), |p| p.marked),
];

/// By egress, of the paths in use.
#[rustfmt::skip]
const PATH_GAUGES: &[Reading<EgressState, f64>] = &[
    (family("cloudburst_paths", Unit::Count, "egress", "Paths in use, to all peers."), |e| e.paths),
    (family("cloudburst_paths_degraded", Unit::Count, "egress", "Of these, paths that deliver nothing."), |e| e.degraded),
    (family("cloudburst_path_loss_ratio", Unit::Count, "egress", "Share of recent packets that were lost, as the mean of these paths."), |e| {
        e.loss / e.paths.max(1.0)
    }),
];

type Histogram = fn(&Latencies) -> &LatencyHistogram;

#[rustfmt::skip]
const HISTOGRAMS: &[(Family, Histogram)] = &[
    (family("cloudburst_send_duration_seconds", Unit::Seconds, "", "Time from when a message was accepted to STOP, of messages delivered to peers."), |l| &l.sent),
    (family("cloudburst_receive_duration_seconds", Unit::Seconds, "", "Time from the first symbol of a message to the one that completed it."), |l| &l.received),
    (family("cloudburst_call_duration_seconds", Unit::Seconds, "", "Time from when a call was accepted to its response, of calls that got an answer."), |l| &l.calls),
    (family("cloudburst_request_duration_seconds", Unit::Seconds, "", "Time from when the application took a request to its reply, of requests that it answered."), |l| &l.requests),
];

/// The source of the gauges.
struct View {
    counters: Counters,
    peers: Vec<PeerStats>,
    buffers: GrantedBuffers,
}

/// The paths of one egress that are in use.
#[derive(Default)]
struct EgressState {
    paths: f64,
    degraded: f64,
    loss: f64,
}

/// The counts of one path, in the order of [`PATH_COUNTERS`].
type Counted = [u64; PATH_COUNTERS.len()];

/// Publishes the counters of an endpoint to the recorder of the crate [`metrics`](::metrics). See
/// [`Endpoint::metrics`].
pub struct Metrics {
    endpoint: Weak<Inner>,
    labels: Vec<Label>,
    /// The values that were published last.
    counters: Counters,
    latencies: Latencies,
    /// By peer, and number of the path to it.
    paths: HashMap<(SocketAddr, usize), Counted>,
    egresses: BTreeMap<u16, EgressState>,
}

impl Endpoint {
    /// Returns metrics of this endpoint, for a task or thread to [publish](Metrics::publish) at intervals.
    /// The recorder must be installed before: it gets the descriptions now.
    ///
    /// They do not keep the endpoint open. Latencies count from now on, everything else from the beginning.
    ///
    /// # Example
    ///
    /// ```
    /// # use std::{thread, time::Duration};
    /// # let endpoint = cloudburst_net::doc::endpoint();
    /// let mut metrics = endpoint.metrics().label("service", "search");
    /// let publisher = thread::spawn(move || {
    ///     while metrics.publish() {
    ///         thread::sleep(Duration::from_millis(10));
    ///     }
    /// });
    /// drop(endpoint);
    /// publisher.join().unwrap();
    /// ```
    pub fn metrics(&self) -> Metrics {
        for (kind, &Family { name, unit, help, .. }) in families() {
            match kind {
                "counter" => describe_counter!(name, unit, help),
                "gauge" => describe_gauge!(name, unit, help),
                _ => describe_histogram!(name, unit, help),
            }
        }
        Metrics {
            endpoint: Arc::downgrade(&self.inner),
            labels: Vec::new(),
            counters: Counters::default(),
            latencies: self.latencies(),
            paths: HashMap::new(),
            egresses: BTreeMap::new(),
        }
    }
}

impl Metrics {
    /// Adds a label to all series. Endpoints of one process that have the same labels add up in counters
    /// and histograms, and overwrite each other's gauges.
    #[must_use]
    pub fn label(mut self, name: impl Into<SharedString>, value: impl Into<SharedString>) -> Self {
        self.labels.push(Label::new(name, value));
        self
    }

    /// Publishes what has changed since the last call. Returns whether to continue: `false` if the endpoint
    /// is closed, after which its gauges are 0.
    ///
    /// Delays sending and receiving by a few microseconds, or by more with thousands of peers. If a peer is
    /// forgotten between two calls, the last counts of the paths to it are lost.
    pub fn publish(&mut self) -> bool {
        let Some(inner) = self.endpoint.upgrade() else {
            self.clear_gauges();
            return false;
        };
        let endpoint = Endpoint { inner };
        let peers = endpoint.peers();
        let counters = endpoint.counters();
        for (family, series) in COUNTERS {
            for (value, read) in *series {
                // Differences of existing counters: to tell the facade of each packet would cost an
                // atomic addition and a load of the recorder.
                let more = read(&counters).saturating_sub(read(&self.counters));
                counter!(family.name, self.labels(family, value)).increment(more);
            }
        }
        let view = View { counters, peers, buffers: endpoint.granted_buffers() };
        for (family, series) in GAUGES {
            for (value, read) in *series {
                gauge!(family.name, self.labels(family, value)).set(read(&view));
            }
        }
        let latencies = endpoint.latencies();
        for (family, read) in HISTOGRAMS {
            let histogram = histogram!(family.name, self.labels(family, ""));
            // By the buckets of the HDR histogram, so that each time is published once, to
            // within 1 %.
            for (took, times) in read(&latencies).since(read(&self.latencies)) {
                let times = usize::try_from(times).unwrap_or(usize::MAX);
                histogram.record_many(took.as_secs_f64(), times);
            }
        }
        self.publish_paths(&endpoint, &view.peers);
        self.counters = counters;
        self.latencies = latencies;
        let goes_on = !endpoint.is_closed();
        if !goes_on {
            self.clear_gauges();
        }
        goes_on
    }

    fn publish_paths(&mut self, endpoint: &Endpoint, peers: &[PeerStats]) {
        let mut counted = HashMap::with_capacity(self.paths.len());
        let mut more = BTreeMap::<u16, Counted>::new();
        let mut states = BTreeMap::<u16, EgressState>::new();
        for peer in peers {
            for (number, path) in endpoint.paths(peer.peer).iter().enumerate() {
                let key = (peer.peer, number);
                let before = self.paths.get(&key).copied().unwrap_or_default();
                let now: Counted = core::array::from_fn(|at| PATH_COUNTERS[at].1(path));
                // By egress, of which there are dozens: labels by peer would make as many series as
                // there have ever been peers, and another for each restart of one behind a
                // translator.
                let more = more.entry(path.via.egress).or_default();
                for ((more, now), before) in more.iter_mut().zip(now).zip(before) {
                    // The counts of a peer that was forgotten and came back begin at 0.
                    *more += now.checked_sub(before).unwrap_or(now);
                }
                counted.insert(key, now);
                if !path.removed {
                    let state = states.entry(path.via.egress).or_default();
                    state.paths += 1.0;
                    state.degraded += f64::from(u8::from(path.degraded));
                    state.loss += f64::from(path.loss_permille) / 1000.0;
                }
            }
        }
        for (egress, more) in more {
            for ((family, _), more) in PATH_COUNTERS.iter().zip(more) {
                counter!(family.name, self.labels(family, &egress.to_string())).increment(more);
            }
        }
        for egress in mem::take(&mut self.egresses).into_keys() {
            // The gauges of an egress without paths in use become 0.
            states.entry(egress).or_default();
        }
        self.paths = counted;
        self.egresses = states;
        self.set_path_gauges();
    }

    fn set_path_gauges(&self) {
        for (egress, state) in &self.egresses {
            for (family, read) in PATH_GAUGES {
                gauge!(family.name, self.labels(family, &egress.to_string())).set(read(state));
            }
        }
    }

    /// Sets all gauges to 0, as nothing is under way at an endpoint that is gone.
    fn clear_gauges(&mut self) {
        for (family, series) in GAUGES {
            for (value, _) in *series {
                gauge!(family.name, self.labels(family, value)).set(0.0);
            }
        }
        self.egresses.values_mut().for_each(|state| *state = EgressState::default());
        self.set_path_gauges();
    }

    /// The labels of one series.
    fn labels(&self, family: &Family, value: &str) -> Vec<Label> {
        let own = (!family.label.is_empty()).then(|| Label::new(family.label, value.to_owned()));
        self.labels.iter().cloned().chain(own).collect()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// The families with their kinds, in the order of the documentation.
fn families() -> impl Iterator<Item = (&'static str, &'static Family)> {
    let counters = COUNTERS.iter().map(|(family, _)| family);
    let counters = counters.chain(PATH_COUNTERS.iter().map(|(family, _)| family));
    let gauges = GAUGES.iter().map(|(family, _)| family);
    let gauges = gauges.chain(PATH_GAUGES.iter().map(|(family, _)| family));
    let histograms = HISTOGRAMS.iter().map(|(family, _)| family);
    counters
        .map(|family| ("counter", family))
        .chain(gauges.map(|family| ("gauge", family)))
        .chain(histograms.map(|family| ("histogram", family)))
}
