//! An endpoint in Prometheus' text format, version 0.0.4.
//!
//! Names end in their unit, counters in `_total`. Series by peer and path are as many as the
//! endpoint remembers peers and paths: where those are thousands, leave them out.

use cloudburst_net::{Counters, Endpoint, LatencyHistogram};
use std::fmt::Write;
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds: from a round trip within a rack to the default
/// deadline.
const BOUNDS: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];

/// All metrics of `endpoint`.
pub(crate) fn render(endpoint: &Endpoint) -> String {
    let mut page = Page::default();
    counters(&mut page, &endpoint.counters());
    let latencies = endpoint.latencies();
    page.histogram(
        "cloudburst_send_duration_seconds",
        "From the call to STOP, of messages delivered.",
        &latencies.sent,
    );
    page.histogram(
        "cloudburst_receive_duration_seconds",
        "From the first symbol of a message to the one that made it whole.",
        &latencies.received,
    );
    let buffers = endpoint.granted_buffers();
    page.family("cloudburst_socket_buffer_bytes", "gauge", "Bytes granted to each socket.");
    page.sample(&[("direction", "receive")], buffers.receive as f64);
    page.sample(&[("direction", "send")], buffers.send as f64);
    peers(&mut page, endpoint);
    page.0
}

fn counters(page: &mut Page, counters: &Counters) {
    let Counters { sender, receiver, io, calls, .. } = counters;
    page.counters(
        "cloudburst_messages_sent_total",
        "Messages sent, by how they ended.",
        "outcome",
        &[
            ("delivered", sender.delivered),
            ("rejected", sender.rejected),
            ("unknown", sender.unknown),
        ],
    );
    page.counters(
        "cloudburst_responses_received_total",
        "Responses received, by whether a call waited for them.",
        "use",
        &[("taken", calls.responses_received), ("dropped", calls.responses_dropped)],
    );
    page.counters(
        "cloudburst_requests_received_total",
        "Requests received, by what became of them.",
        "outcome",
        &[
            ("taken", calls.requests_received),
            ("expired", calls.requests_expired),
            ("malformed", calls.malformed),
        ],
    );
    page.counter(
        "cloudburst_requests_unanswered_total",
        "Requests that the application took and did not answer.",
        calls.requests_unanswered,
    );
    page.counter(
        "cloudburst_handlers_panicked_total",
        "Handlers of requests that panicked.",
        calls.handlers_panicked,
    );
    page.counter(
        "cloudburst_messages_received_total",
        "Messages put into the application's queue.",
        receiver.messages_delivered,
    );
    page.counter("cloudburst_received_bytes_total", "Their bytes.", receiver.bytes_delivered);
    page.counter(
        "cloudburst_hellos_sent_total",
        "HELLO and OPEN packets sent.",
        sender.handshakes_sent,
    );
    page.counter("cloudburst_sessions_opened_total", "Sessions in use.", sender.sessions_opened);
    let used = receiver.useful_symbols + receiver.late_symbols;
    let redundant = receiver.symbols_received.saturating_sub(used);
    page.counter("cloudburst_symbols_sent_total", "SYMBOL packets sent.", sender.symbols_sent);
    page.counter(
        "cloudburst_symbol_sent_bytes_total",
        "Bytes of UDP payload in SYMBOL packets sent.",
        sender.symbol_bytes_sent,
    );
    page.counters(
        "cloudburst_symbols_received_total",
        "Authentic SYMBOL packets received, by their use.",
        "use",
        &[
            ("useful", receiver.useful_symbols),
            ("late", receiver.late_symbols),
            ("redundant", redundant),
        ],
    );
    page.counters(
        "cloudburst_answers_received_total",
        "Reports in authentic answers received, by kind.",
        "kind",
        &[
            ("stop", sender.stops_received),
            ("status", sender.statuses_received),
            ("pull", sender.pulls_received),
            ("busy", sender.busies_received),
        ],
    );
    page.counters(
        "cloudburst_answers_sent_total",
        "Reports in answers sent, by kind.",
        "kind",
        &[
            ("stop", receiver.stops_sent),
            ("status", receiver.statuses_sent),
            ("pull", receiver.pulls_sent),
            ("busy", receiver.busies_sent),
            ("reject", receiver.rejects_sent),
            ("forgotten", receiver.forgottens_sent),
        ],
    );
    page.counters(
        "cloudburst_packets_refused_total",
        "Packets received and dropped, by cause.",
        "cause",
        &[
            ("malformed", sender.malformed + receiver.malformed),
            ("unknown_session", sender.unknown_session + receiver.unknown_session),
            ("forged", sender.forged + receiver.forged + receiver.refused_handshakes),
            ("replayed", sender.replayed + receiver.replayed),
            ("misdirected", receiver.misdirected),
            ("nonsense", receiver.nonsense),
            ("truncated", io.truncated),
        ],
    );
    page.counters(
        "cloudburst_datagrams_total",
        "Datagrams that the sockets sent and received.",
        "direction",
        &[("send", io.datagrams_sent), ("receive", io.datagrams_received)],
    );
    page.counters(
        "cloudburst_datagrams_lost_total",
        "Datagrams that this host lost: not sent, or dropped for want of a receive buffer.",
        "direction",
        &[("send", io.send_errors.total()), ("receive", io.kernel_drops)],
    );
    page.counters(
        "cloudburst_datagrams_received_by_ecn_total",
        "Datagrams received, by ECN codepoint.",
        "ecn",
        &[
            ("not_ect", io.ecn.not_ect),
            ("ect0", io.ecn.ect0),
            ("ect1", io.ecn.ect1),
            ("ce", io.ecn.ce),
        ],
    );
    page.counter(
        "cloudburst_foreign_dscp_total",
        "Packets received with another DSCP than the endpoint's own.",
        io.foreign_dscp,
    );
}

/// One label's value, by one or several labels, for each series of a family.
type Series = Vec<(Vec<(&'static str, String)>, f64)>;

fn peers(page: &mut Page, endpoint: &Endpoint) {
    let (now, peers) = (endpoint.now(), endpoint.peers());
    let paths: Vec<_> = peers.iter().map(|peer| endpoint.paths(peer.peer)).collect();
    let by_peer = |value: &dyn Fn(usize) -> Option<f64>| -> Series {
        let labels = |at: usize| vec![("peer", peers[at].peer.to_string())];
        (0..peers.len()).filter_map(|at| Some((labels(at), value(at)?))).collect()
    };
    let seconds = |duration: Duration| duration.as_secs_f64();
    page.families(
        ("cloudburst_peer_delivered_total", "counter", "Messages delivered to the peer."),
        by_peer(&|at| Some(peers[at].sent.delivered as f64)),
    );
    page.families(
        ("cloudburst_peer_retries_total", "counter", "SYMBOL packets sent after silence."),
        by_peer(&|at| Some(peers[at].sent.retries as f64)),
    );
    page.families(
        ("cloudburst_peer_unfinished", "gauge", "Messages to the peer that are under way."),
        by_peer(&|at| Some(peers[at].sent.unfinished as f64)),
    );
    page.families(
        ("cloudburst_peer_round_trip_seconds", "gauge", "Smoothed round trip."),
        by_peer(&|at| peers[at].sent.round_trip.map(seconds)),
    );
    page.families(
        ("cloudburst_peer_session_age_seconds", "gauge", "Age of the session in use."),
        by_peer(&|at| Some(seconds(now.saturating_since(peers[at].sent.session_since?)))),
    );
    let by_path = |value: &dyn Fn(&cloudburst_net::PathStats) -> Option<f64>| -> Series {
        let mut series = Vec::new();
        for (peer, paths) in peers.iter().zip(&paths) {
            for (number, path) in paths.iter().enumerate() {
                let labels = vec![("peer", peer.peer.to_string()), ("path", number.to_string())];
                series.extend(value(path).map(|value| (labels, value)));
            }
        }
        series
    };
    page.families(
        ("cloudburst_path_packets_sent_total", "counter", "Packets sent on the path."),
        by_path(&|path| Some(path.sent as f64)),
    );
    page.families(
        ("cloudburst_path_symbols_arrived_total", "counter", "Symbols known to have arrived."),
        by_path(&|path| Some(path.arrived as f64)),
    );
    page.families(
        ("cloudburst_path_loss_ratio", "gauge", "Share of its last packets that were lost."),
        by_path(&|path| Some(f64::from(path.loss_permille) / 1000.0)),
    );
    page.families(
        ("cloudburst_path_degraded", "gauge", "1 while the path delivers nothing."),
        by_path(&|path| Some(f64::from(u8::from(path.degraded)))),
    );
    page.families(
        ("cloudburst_path_round_trip_seconds", "gauge", "Smoothed round trip."),
        by_path(&|path| path.round_trip.map(seconds)),
    );
}

/// The text so far, and in front of its samples the family's name.
#[derive(Default)]
struct Page(String, String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.1 = name.to_owned();
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let name = self.1.clone();
        self.named(&name, labels, value);
    }

    fn named(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |value: &str| value.replace('\\', r"\\").replace('"', "\\\"");
        let each = |(label, value): &(&str, &str)| format!("{label}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(each).collect();
        let braced =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{braced} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(&[], value as f64);
    }

    fn counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.family(name, "counter", help);
        for (of, value) in values {
            self.sample(&[(label, of)], *value as f64);
        }
    }

    fn families(&mut self, (name, kind, help): (&str, &str, &str), series: Series) {
        self.family(name, kind, help);
        for (labels, value) in series {
            let labels: Vec<(&str, &str)> =
                labels.iter().map(|(label, of)| (*label, of.as_str())).collect();
            self.sample(&labels, value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, latencies: &LatencyHistogram) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for micros in BOUNDS {
            let bound = Duration::from_micros(micros);
            let le = bound.as_secs_f64().to_string();
            self.named(&bucket, &[("le", &le)], latencies.at_most(bound) as f64);
        }
        self.named(&bucket, &[("le", "+Inf")], latencies.count() as f64);
        self.named(&format!("{name}_sum"), &[], latencies.sum().as_secs_f64());
        self.named(&format!("{name}_count"), &[], latencies.count() as f64);
    }
}
