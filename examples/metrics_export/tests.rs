//! A scrape over TCP, parsed as strictly as the format is specified.

#![allow(clippy::unwrap_used, reason = "a test ends where anything fails")]

use super::{endpoint, http, text};
use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Asks a server that answers once.
fn ask(request: &str, body: impl Fn() -> String + Send + 'static) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let server = thread::spawn(move || http::answer(listener.accept().unwrap().0, body));
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    server.join().unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = format!("Content-Length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
    (head.to_owned(), body.to_owned())
}

/// A sample's name, then its labels in order.
type Key = (String, Vec<(String, String)>);

/// Families with their types, and samples. Panics at whatever Prometheus would refuse, and at names
/// that are against its conventions.
fn parse(page: &str) -> (BTreeMap<String, String>, BTreeMap<Key, f64>) {
    assert!(page.ends_with('\n'), "the last line ends, too");
    let (mut types, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let (mut help, mut family) = (String::new(), String::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').unwrap();
            assert!(!text.is_empty() && !types.contains_key(name), "{line}");
            name.clone_into(&mut help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, help, "HELP comes first");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(name.starts_with("cloudburst_") && is_name(name), "{line}");
            types.insert(name.to_owned(), kind.to_owned());
            name.clone_into(&mut family);
        } else {
            let (key, value) = sample(line);
            let base = match types[&family].as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|suffix| key.0.strip_suffix(suffix))
                    .unwrap(),
                _ => &key.0,
            };
            assert_eq!(base, family, "a family's samples are together");
            assert!(value >= 0.0 && value.is_finite(), "{line}");
            assert!(samples.insert(key, value).is_none(), "twice: {line}");
        }
    }
    (types, samples)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
}

fn sample(line: &str) -> (Key, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
        None => (series, ""),
    };
    assert!(is_name(name), "{line}");
    let label = |text: &str| {
        let (label, value) = text.split_once('=').unwrap();
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
        assert!(is_name(label) && !value.contains(['"', '\\']), "{line}");
        (label.to_owned(), value.to_owned())
    };
    let labels = labels.split(',').filter(|text| !text.is_empty()).map(label).collect();
    ((name.to_owned(), labels), value.parse().unwrap())
}

fn get(samples: &BTreeMap<Key, f64>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    samples[&(name.to_owned(), labels)]
}

#[test]
fn a_scrape_is_in_the_format_and_says_what_the_endpoint_counted() {
    let (one, other) = (endpoint().unwrap(), endpoint().unwrap());
    let to = other.local_addr();
    for _ in 0..25 {
        one.send(to, vec![1; 20_000]).unwrap();
    }
    other.send(one.local_addr(), "an answer").unwrap();
    one.recv().unwrap();
    let scraped = one.clone();
    let request = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    let (head, page) = ask(request, move || text::render(scraped.as_async()));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    let (types, samples) = parse(&page);

    let sent = "cloudburst_messages_sent_total";
    assert_eq!(get(&samples, sent, &[("outcome", "delivered")]), 25.0);
    assert_eq!(get(&samples, sent, &[("outcome", "unknown")]), 0.0);
    assert_eq!(get(&samples, "cloudburst_messages_received_total", &[]), 1.0);
    assert_eq!(get(&samples, "cloudburst_received_bytes_total", &[]), 9.0);
    let symbols = one.counters().sender.symbols_sent as f64;
    assert_eq!(get(&samples, "cloudburst_symbols_sent_total", &[]), symbols);
    let peer = to.to_string();
    assert_eq!(get(&samples, "cloudburst_peer_delivered_total", &[("peer", &peer)]), 25.0);
    let on_paths: f64 = (0..one.paths(to).len())
        .map(|path| {
            let labels = [("peer", peer.as_str()), ("path", &path.to_string())];
            get(&samples, "cloudburst_path_packets_sent_total", &labels)
        })
        .sum();
    let hellos = get(&samples, "cloudburst_hellos_sent_total", &[]);
    assert_eq!(on_paths, symbols + hellos);

    // Every family that has a type has samples, and histograms count up to all.
    let names: HashSet<&str> = samples.keys().map(|(name, _)| name.as_str()).collect();
    for (family, kind) in &types {
        if kind != "histogram" {
            assert!(names.contains(family.as_str()), "{family}");
            continue;
        }
        let bucket = format!("{family}_bucket");
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter(|((name, _), _)| *name == bucket)
            .map(|((_, labels), count)| (labels[0].1.parse().unwrap(), *count))
            .collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{buckets:?}");
        let all = get(&samples, &format!("{family}_count"), &[]);
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, all)));
    }
    assert_eq!(get(&samples, "cloudburst_send_duration_seconds_count", &[]), 25.0);
    let sum = get(&samples, "cloudburst_send_duration_seconds_sum", &[]);
    assert_eq!(sum, one.latencies().sent.sum().as_secs_f64());
}

#[test]
fn what_is_no_scrape_is_refused() {
    let body = || unreachable!("nobody asked for metrics");
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        // One byte too many, so that the server leaves none unread, which would reset the connection.
        (&"x".repeat(8193), "400"),
    ] {
        let (head, _) = ask(request, body);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
}
