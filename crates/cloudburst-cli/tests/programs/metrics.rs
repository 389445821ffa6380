//! The metrics that `cbrst-recv` serves. The documentation and the dashboard match those of files.

use crate::common::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

const DOCS: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../../tools/grafana.json");

/// An address for metrics, of this process and this number alone, since the port is to be known.
fn address(number: u16) -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("127.64.{high}.{}:{}", low.max(1), 9464 + number)
}

/// The answer to a request such as `GET /metrics`.
fn ask(addr: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("metrics are served");
    write!(stream, "{request} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n")
        .expect("a request is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is text");
    answer
}

/// The page at `http://addr/metrics`, once it is as `wanted`.
fn scrape(addr: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut page = String::new();
    wait_until("the metrics have the expected values", || {
        page = ask(addr, "GET /metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        wanted(&page)
    });
    page
}

#[test]
fn metrics_are_served_at_the_printed_address() {
    let (_dir, paths) = files(&[("a", &noise(300_000, 11))]);
    let addr = address(0);
    let mut receiver = Receiver::start(&["--metrics", &addr]);
    receiver.running.line(&format!("metrics at http://{addr}/metrics"));
    // This connection sends nothing, and does not block the others for long.
    let _idle = TcpStream::connect(&addr).unwrap();
    let nothing = "\ncloudburst_messages_received_total 0\n";
    scrape(&addr, |page| page.contains(nothing));
    assert!(ask(&addr, "GET /metrics?name=x").contains(nothing));
    for other in ["GET /metricsfoo", "GET /metrics/", "GET /", "POST /"] {
        let answer = ask(&addr, other);
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{other}: {answer}");
    }
    for other in ["POST /metrics", "get /metrics", "DELETE /metrics?name=x"] {
        let answer = ask(&addr, other);
        let status = "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n";
        assert!(answer.starts_with(status), "{other}: {answer}");
    }
    // As GET, but without the page.
    let page = ask(&addr, "GET /metrics");
    let head = ask(&addr, "HEAD /metrics");
    let length = |answer: &str| -> usize {
        let length = answer.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        length.unwrap().parse().unwrap()
    };
    assert!(page.ends_with('\n') && length(&page) > 1000, "{page}");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(length(&head) > 1000, "{head}");
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    // These are published last.
    let count = "\ncloudburst_receive_duration_seconds_count ";
    let page = scrape(&addr, |page| {
        page.split_once(count).is_some_and(|(_, count)| !count.starts_with('0'))
    });
    assert!(!page.contains(nothing), "{page}");
    assert!(page.contains("\n# TYPE cloudburst_receive_duration_seconds histogram\n"), "{page}");
    assert!(
        page.contains("\ncloudburst_receive_duration_seconds_bucket{le=\"0.00005\"}"),
        "{page}"
    );

    // A second one cannot have the same address.
    let other = tempfile::tempdir().unwrap();
    let taken = &addr;
    let out = other.path().to_str().unwrap();
    let args = ["--listen", "127.0.0.1:0", "--out", out, "--insecure", "--metrics", taken];
    let ended = Running::start(&mut command(RECV, &args)).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(&format!("cannot serve metrics at {addr}: ")),
        "{}",
        ended.stderr
    );
}

/// The value of the one series with this text.
fn value(page: &str, series: &str) -> u64 {
    let values = page.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let values: Vec<&str> = values.collect();
    let [value] = values[..] else { panic!("{series} in {page}") };
    value.parse().unwrap()
}

#[test]
fn files_are_counted_by_their_outcome_and_their_bytes_by_their_origin() {
    let (_dir, paths) =
        files(&[("a", &noise(300_000, 13)), ("b", b"b"), ("c", &noise(500_000, 14))]);
    let addr = address(1);
    let mut receiver = Receiver::start(&["--metrics", &addr, "--max-size", "400k"]);
    receiver.running.line("metrics at ");
    let counts = |page: &str| {
        let files = ["done", "failed", "refused"].map(|outcome| {
            value(page, &format!("cbrst_recv_files_total{{outcome=\"{outcome}\"}}"))
        });
        let bytes = ["resumed", "transferred"].map(|origin| {
            value(page, &format!("cbrst_recv_file_bytes_total{{origin=\"{origin}\"}}"))
        });
        (files, bytes, value(page, "cbrst_recv_transfers"))
    };
    assert_eq!(counts(&scrape(&addr, |_| true)), ([0; 3], [0; 2], 0));
    let all: Vec<&Path> = paths.iter().map(|path| &**path).collect();
    assert_eq!(receiver.send(&[], &all).code, Some(1));
    assert_eq!(receiver.send(&[], &all[..1]).code, Some(0));
    scrape(&addr, |page| counts(page) == ([3, 0, 1], [300_000, 300_001], 0));
    // The size of a pipe is not known before it is exceeded.
    let mut command = sender(&receiver.addr, &receiver.key, &[], &[Path::new("-")]);
    let mut sending = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = sending.stdin();
    stdin.write_all(b"x").unwrap();
    scrape(&addr, |page| counts(page).2 == 1);
    let _ = stdin.write_all(&fs::read(&paths[2]).unwrap());
    drop(stdin);
    assert_eq!(sending.end().code, Some(1));
    scrape(&addr, |page| counts(page) == ([3, 1, 1], [300_000, 300_001], 0));
}

/// The rows of the documentation's table for the metrics of files on a page, and their labels by name.
fn published(page: &str) -> (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let mut rows = BTreeSet::new();
    let mut labels = BTreeMap::new();
    let of = |what: &str, name: &str| {
        let begin = format!("# {what} {name} ");
        page.lines().find_map(|line| line.strip_prefix(&begin)).unwrap().to_owned()
    };
    let help = page.lines().filter_map(|line| line.strip_prefix("# HELP cbrst_recv_"));
    for name in help.map(|line| format!("cbrst_recv_{}", line.split(' ').next().unwrap())) {
        let series = page.lines().filter_map(|line| line.strip_prefix(&name)?.strip_prefix('{'));
        let series =
            series.map(|series| series.split_once('}').unwrap().0.split_once('=').unwrap());
        let mut all = BTreeMap::<&str, BTreeSet<String>>::new();
        for (label, value) in series {
            all.entry(label).or_default().insert(value.replace('"', "`"));
        }
        let label = all.iter().map(|(label, values)| {
            format!("`{label}`: {}", values.iter().cloned().collect::<Vec<_>>().join(", "))
        });
        let label = label.collect::<Vec<_>>().join("; ");
        let unit = if name.contains("_bytes") { "byte" } else { "" };
        rows.insert(format!(
            "| `{name}` | {} | {unit} | {label} | {} |",
            of("TYPE", &name),
            of("HELP", &name)
        ));
        labels.insert(name, all.into_keys().map(str::to_owned).collect());
    }
    (rows, labels)
}

#[test]
fn the_documentation_and_the_dashboard_match_the_metrics_of_files() {
    let addr = address(2);
    let mut receiver = Receiver::start(&["--metrics", &addr]);
    receiver.running.line("metrics at ");
    let (expected, labels) = published(&scrape(&addr, |_| true));
    assert_eq!(expected.len(), 3, "{expected:#?}");
    let rows: BTreeSet<String> =
        DOCS.lines().filter(|line| line.starts_with("| `cbrst_recv_")).map(Into::into).collect();
    assert_eq!(rows, expected, "the table of docs/metrics.md");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut queries = 0;
    for line in DASHBOARD.lines().filter(|line| line.contains("cbrst_recv_")) {
        let query = line.split_once("\"expr\": ").unwrap().1;
        let name = query.split(|c| !is_word(c)).find(|word| word.starts_with("cbrst_recv_"));
        let labels = labels.get(name.unwrap()).unwrap_or_else(|| panic!("no metric of {query}"));
        if let Some((_, by)) = query.split_once("by (") {
            assert!(labels.contains(by.split(')').next().unwrap()), "{query}");
        }
        queries += 1;
    }
    assert!(queries > 0);
}

#[test]
fn a_receiver_pulls_at_the_capacity_of_its_link_or_of_the_option() {
    let cases = [(&[][..], "10000000000"), (&["--capacity", "100M", "--rate", "0.5"], "50000000")];
    for (number, (args, rate)) in (8..).zip(cases) {
        let addr = address(number);
        let mut receiver = Receiver::start(&[&["--metrics", &addr], args].concat());
        receiver.running.line("metrics at ");
        let line = format!("\ncloudburst_rate_bits_per_second {rate}\n");
        let page = scrape(&addr, |page| page.contains("\ncloudburst_rate_bits_per_second "));
        assert!(page.contains(&line), "{page}");
    }
}
