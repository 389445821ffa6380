//! The metrics of endpoints, as an exporter for Prometheus renders them; and that the documentation and the
//! dashboard match them.

use crate::common::{TIMEOUT, builder, bytes, endpoint, eventually};
use cloudburst_net::{Overloaded, PathMap, RequestParts, SendError};
use metrics::with_local_recorder;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

const DOCS: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../../tools/grafana.json");

fn recorder() -> (PrometheusRecorder, PrometheusHandle) {
    let recorder = PrometheusBuilder::new().set_buckets(&[60.0]).unwrap().build_recorder();
    let handle = recorder.handle();
    (recorder, handle)
}

/// The value of the one series with this text.
fn value(page: &PrometheusHandle, series: &str) -> f64 {
    let page = page.render();
    let values: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).collect();
    let [value] = values[..] else { panic!("{series} in {page}") };
    value.parse().unwrap()
}

#[test]
fn published_metrics_equal_the_counters() {
    let (recorder, page) = recorder();
    let one = builder().paths(PathMap::ecmp(2)).build().unwrap();
    let other = endpoint();
    with_local_recorder(&recorder, || {
        let mut metrics = one.metrics();
        for round in 1..=3 {
            one.send(other.local_addr(), bytes(20_000, 1)).wait().unwrap();
            assert!(metrics.publish());
            // Nothing is counted twice.
            assert!(metrics.publish());
            let delivered = "cloudburst_messages_sent_total{outcome=\"delivered\"}";
            assert_eq!(value(&page, delivered), f64::from(round));
            assert_eq!(value(&page, "cloudburst_send_duration_seconds_count"), f64::from(round));
            let sent = value(&page, "cloudburst_message_sent_bytes_total");
            assert_eq!(sent, 20_000.0 * f64::from(round));
        }
        let counted = one.counters().sender;
        let symbols = value(&page, "cloudburst_symbols_sent_total");
        assert_eq!(symbols, counted.symbols_sent as f64);
        let needed = value(&page, "cloudburst_symbols_needed_total");
        assert!(0.0 < needed && needed <= symbols, "{needed} {symbols}");
        let on_paths: f64 = (0..2)
            .map(|egress| format!("cloudburst_path_packets_sent_total{{egress=\"{egress}\"}}"))
            .map(|series| value(&page, &series))
            .sum();
        assert_eq!(on_paths, (counted.symbols_sent + counted.handshakes_sent) as f64);
        let sum = value(&page, "cloudburst_send_duration_seconds_sum");
        let exact = one.latencies().sent.sum().as_secs_f64();
        assert!((sum - exact).abs() <= 0.02 * exact, "{sum} {exact}");
    });
}

#[test]
fn calls_are_counted_by_outcome_at_both_ends() {
    let (recorder, page) = recorder();
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let took = Duration::from_millis(20);
    thread::scope(|scope| {
        let handler = |request: RequestParts| match &request.bytes[..] {
            b"overload" => Err(Box::<dyn Error + Send + Sync>::from(Overloaded)),
            b"fail" => Err("no answer".into()),
            b"late" => {
                while !request.is_cancelled() {
                    thread::yield_now();
                }
                Ok("nobody waits")
            }
            _ => {
                thread::sleep(took);
                Ok("an answer")
            }
        };
        let service = server.clone();
        scope.spawn(move || service.blocking_try_serve(1, handler));
        let call = |peer, request: &'static str| client.call(peer, request);
        call(to, "answer").wait().unwrap();
        call(to, "answer").wait().unwrap();
        assert_eq!(call(to, "overload").wait(), Err(SendError::Overloaded));
        assert_eq!(call(to, "fail").wait(), Err(SendError::Unanswered));
        let late = call(to, "late").deadline(took).wait();
        assert_eq!(late, Err(SendError::NoResponse));
        let nobody = call(silent.local_addr().unwrap(), "rejected").deadline(took).wait();
        assert_eq!(nobody, Err(SendError::NoAnswer));
        assert!(call(to, "late").wait_for(took).is_none(), "abandoned");
        eventually("all are served", || server.counters().calls.requests_cancelled == 2);
        assert!(server.blocking_shutdown(TIMEOUT));
    });
    with_local_recorder(&recorder, || {
        client.metrics().label("end", "client").publish();
        server.metrics().label("end", "server").publish();
    });
    let calls = |outcome: &str| {
        value(&page, &format!("cloudburst_calls_total{{end=\"client\",outcome=\"{outcome}\"}}"))
    };
    for (outcome, count) in [
        ("answered", 2.0),
        ("rejected", 1.0),
        ("unknown", 0.0),
        ("deadline", 1.0),
        ("unanswered", 1.0),
        ("overloaded", 1.0),
        ("cancelled", 1.0),
    ] {
        assert_eq!(calls(outcome), count, "{outcome}");
    }
    for (outcome, count) in
        [("answered", 2.0), ("unanswered", 1.0), ("overloaded", 1.0), ("cancelled", 2.0)]
    {
        let series = "cloudburst_requests_served_total{end=\"server\",outcome";
        assert_eq!(value(&page, &format!("{series}=\"{outcome}\"}}")), count, "{outcome}");
    }
    // Published from when `metrics` was called, so read here.
    let calls = client.latencies().calls;
    let requests = server.latencies().requests;
    assert_eq!((calls.count(), requests.count()), (2, 2));
    assert!(calls.sum() >= requests.sum() && requests.sum() >= 2 * took);
}

#[test]
fn metrics_do_not_keep_an_endpoint_alive_and_report_its_end() {
    let (recorder, page) = recorder();
    with_local_recorder(&recorder, || {
        let one = endpoint();
        let other = endpoint();
        one.send(other.local_addr(), "hello").wait().unwrap();
        let mut metrics = one.metrics().label("endpoint", "one");
        assert!(metrics.publish());
        assert_eq!(value(&page, "cloudburst_peers{endpoint=\"one\"}"), 1.0);
        let paths = "cloudburst_paths{endpoint=\"one\",egress=\"0\"}";
        assert_eq!(value(&page, paths), 1.0);
        drop(one);
        assert!(!metrics.publish());
        assert_eq!(value(&page, "cloudburst_peers{endpoint=\"one\"}"), 0.0);
        assert_eq!(value(&page, paths), 0.0);
        let sent = "cloudburst_messages_sent_total{endpoint=\"one\",outcome=\"delivered\"}";
        assert_eq!(value(&page, sent), 1.0, "counters stay");
    });
}

/// A metric as it is published: its kind, its description, and its labels with their values.
#[derive(Default)]
struct Published {
    kind: String,
    help: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// All metrics of two endpoints, one of which has sent something, by name.
fn published() -> BTreeMap<String, Published> {
    let (recorder, page) = recorder();
    let one = endpoint();
    let other = endpoint();
    with_local_recorder(&recorder, || {
        one.send(other.local_addr(), "hello").wait().unwrap();
        for endpoint in [&one, &other] {
            assert!(endpoint.metrics().publish());
        }
    });
    let page = page.render();
    let mut all = BTreeMap::<String, Published>::new();
    for line in page.lines() {
        if let Some((name, help)) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            all.entry(name.into()).or_default().help = help.into();
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            all.entry(name.into()).or_default().kind = kind.into();
        } else if let Some((name, labels)) = line.split_once('{')
            && let Some(known) = all.get_mut(name)
        {
            let labels = labels.split_once('}').unwrap().0;
            for (label, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
                let value = value.trim_matches('"').to_owned();
                known.labels.entry(label.into()).or_default().insert(value);
            }
        }
    }
    all
}

fn unit(name: &str) -> &'static str {
    match name.trim_end_matches("_total") {
        name if name.ends_with("_bits_per_second") => "bit/s",
        name if name.ends_with("_seconds") => "s",
        name if name.ends_with("_bytes") => "byte",
        name if name.ends_with("_ratio") => "0 to 1",
        _ => "",
    }
}

#[test]
fn the_documentation_lists_each_metric_with_its_unit_and_labels() {
    let rows: BTreeSet<String> =
        DOCS.lines().filter(|line| line.starts_with("| `cloudburst_")).map(Into::into).collect();
    let expected = published().into_iter().map(|(name, metric)| {
        let label = metric.labels.iter().map(|(label, values)| match label.as_str() {
            "egress" => "`egress`".into(),
            _ => {
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                format!("`{label}`: {}", values.join(", "))
            }
        });
        let label = label.collect::<Vec<String>>().join("; ");
        let unit = unit(&name);
        let Published { kind, help, .. } = &metric;
        format!("| `{name}` | {kind} | {unit} | {label} | {help} |")
    });
    let expected: BTreeSet<String> = expected.collect();
    let differences: Vec<_> = expected.symmetric_difference(&rows).collect();
    let table = Vec::from_iter(&expected);
    assert!(differences.is_empty(), "not the table of docs/metrics.md, but {table:#?}");
}

/// All strings under `key`, wherever they are.
fn strings<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == key => found.push(text),
                    _ => strings(field, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_uses_metrics_and_labels_that_exist() {
    let metrics = published();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries = Vec::new();
    strings(&dashboard, "expr", &mut queries);
    assert!(queries.len() >= 10, "{queries:?}");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // The tests of `cloudburst-cli` check the queries for metrics of files.
    for query in queries.into_iter().filter(|query| !query.contains("cbrst_recv_")) {
        let names = query.split(|c| !is_word(c)).filter(|word| word.starts_with("cloudburst_"));
        let find = |name: &str| {
            let of_histogram = |name: &str| {
                let metric = metrics.get(name.strip_suffix("_bucket")?)?;
                (metric.kind == "histogram").then_some(metric)
            };
            let found = metrics.get(name).filter(|metric| metric.kind != "histogram");
            let found = found.or_else(|| of_histogram(name));
            found.unwrap_or_else(|| panic!("no metric is called {name}: {query}"))
        };
        let metrics: Vec<&Published> = names.map(find).collect();
        assert!(!metrics.is_empty(), "{query}");
        for (_, rest) in query.match_indices("by (").map(|(at, by)| query.split_at(at + by.len())) {
            let label = rest.split(')').next().unwrap();
            let is_known = |metric: &&Published| label == "le" || metric.labels.contains_key(label);
            assert!(metrics.iter().all(is_known), "no label {label}: {query}");
        }
        // label="value" and label=~"value|value"; jobs and instances are Prometheus' own.
        let mut parts = query.split('"');
        while let (Some(before), Some(value)) = (parts.next(), parts.next()) {
            let label = before.trim_end_matches(['=', '~', '!']).rsplit(|c| !is_word(c)).next();
            let label = label.unwrap();
            if ["job", "instance"].contains(&label) {
                continue;
            }
            let known = metrics.iter().filter_map(|metric| metric.labels.get(label));
            let known: BTreeSet<&str> = known.flatten().map(String::as_str).collect();
            assert!(value.split('|').all(|value| known.contains(value)), "{value}: {query}");
        }
    }
}
