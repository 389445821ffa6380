//! Records the events of an endpoint, as a qlog. `docs/qlog.md` lists the events.
//!
//! Threads that handle packets only put events into a bounded queue. A separate thread takes them out at
//! intervals and writes them, so that no thread has to make a system call to wake it.

use crate::io::UdpIo;
use cloudburst_core::id::{MessageId, PathId};
use cloudburst_core::proto::{Observation, Observer, ReportKind, SendEnd};
use cloudburst_core::time::Instant;
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The most events that wait to be written.
const QUEUE: usize = 1 << 14;
/// How often the queue is emptied: at 10 Gb/s, in trains of four packets, it does not fill up in that time.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// The most bytes in a file, apart from its last record.
const MAX_BYTES: u64 = 64 << 20;
/// The separator before each record.
// A JSON text sequence (RFC 7464) stays readable if the program is killed.
const RECORD: &[u8] = b"\x1e";

type Event = (Instant, Observation);

/// The file of an endpoint, and the thread that writes it. Dropping this writes the rest of the queue.
#[derive(Debug)]
pub(crate) struct Qlog {
    pub(crate) observer: Arc<dyn Observer>,
    over: Arc<AtomicBool>,
    writing: Option<JoinHandle<()>>,
}

/// The queue of events.
#[derive(Debug)]
struct Queue {
    events: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
}

impl Observer for Queue {
    fn observe(&self, event: Observation) {
        // Counted as dropped and not waited for: threads that handle packets make no system call
        // here, and never wait for the disk.
        if self.events.try_send((UdpIo::time(), event)).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl Qlog {
    /// Creates a file in `dir` for the endpoint whose own address is `local`.
    pub(crate) fn start(dir: &Path, local: SocketAddr) -> io::Result<Self> {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_clock = since_epoch.unwrap_or_default();
        let at = wall_clock.as_millis();
        let port = local.port();
        // Endpoints of one process may have the same port, at different addresses.
        static FILES: AtomicU64 = AtomicU64::new(0);
        let process = process::id();
        let file = FILES.fetch_add(1, Relaxed);
        let name = format!("cloudburst-{at}-{process}-{file}-{port}.sqlog");
        let began = UdpIo::time();
        let file = File::create_new(dir.join(name))?;
        let (events, queue) = mpsc::sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let mut log = Log { out: BufWriter::new(file), began, bytes: 0, dropped: dropped.clone() };
        log.write(&header(local, wall_clock))?;
        let until = over.clone();
        let write = move || {
            if let Err(error) = log.run(&queue, &until) {
                tracing::warn!(%error, "cannot write the qlog file: recording ends");
            }
        };
        let writing = thread::Builder::new().name("cbrst-qlog".into()).spawn(write)?;
        Ok(Self { observer: Arc::new(Queue { events, dropped }), over, writing: Some(writing) })
    }
}

impl Drop for Qlog {
    fn drop(&mut self) {
        self.over.store(true, Release);
        if let Some(writing) = self.writing.take() {
            writing.thread().unpark();
            // A panic of the thread could not be reported here.
            let _ = writing.join();
        }
    }
}

/// The file that is being written.
struct Log {
    out: BufWriter<File>,
    began: Instant,
    bytes: u64,
    /// Events that were not written.
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Writes events until `over` is set.
    fn run(&mut self, queue: &Receiver<Event>, over: &AtomicBool) -> io::Result<()> {
        loop {
            // Events from before `over` was set are in the queue by now.
            let last = over.load(Acquire);
            for (at, event) in queue.try_iter() {
                if self.bytes >= MAX_BYTES {
                    self.dropped.fetch_add(1, Relaxed);
                } else if let Some((name, data)) = described(event) {
                    self.write_named(at, name, &data)?;
                }
            }
            if last {
                break;
            }
            self.out.flush()?;
            thread::park_timeout(WRITE_EVERY);
        }
        let data = json!({ "dropped_events": self.dropped.load(Relaxed) });
        self.write_named(UdpIo::time(), "log_ended", &data)?;
        self.out.flush()
    }

    fn write_named(&mut self, at: Instant, name: &str, data: &Value) -> io::Result<()> {
        let time = at.saturating_since(self.began).as_nanos() as f64 / 1e6;
        self.write(&json!({ "time": time, "name": format!("cloudburst:{name}"), "data": data }))
    }

    fn write(&mut self, record: &Value) -> io::Result<()> {
        let text = record.to_string();
        self.bytes += text.len() as u64 + 2;
        self.out.write_all(RECORD)?;
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }
}

/// The first record. Times of events are milliseconds since `wall_clock`.
fn header(local: SocketAddr, wall_clock: Duration) -> Value {
    json!({
        "qlog_version": "0.4",
        "qlog_format": "JSON-SEQ",
        "title": format!("cloudburst {local}"),
        "trace": {
            "vantage_point": { "name": local.to_string(), "type": "unknown" },
            "common_fields": {
                "time_format": "relative",
                "reference_time": wall_clock.as_nanos() as f64 / 1e6,
            },
        },
    })
}

/// The name and the data of an event.
fn described(event: Observation) -> Option<(&'static str, Value)> {
    let side = |sends: bool| if sends { "sender" } else { "receiver" };
    Some(match event {
        Observation::SessionOpened { peer, sends } => {
            ("session_opened", json!({ "peer": peer, "as": side(sends) }))
        }
        Observation::MessageStarted { peer, message, bytes, sends } => {
            let data =
                json!({ "peer": peer, "message": message.0, "bytes": bytes, "as": side(sends) });
            ("message_started", data)
        }
        Observation::TrainSent { peer, message, block, path, first_symbol, packets, retry } => {
            let mut data = of_block(peer, message, block);
            data.extend([
                ("path".into(), json!(path.0)),
                ("first_esi".into(), json!(first_symbol)),
                ("count".into(), json!(packets)),
                ("retry".into(), json!(retry)),
            ]);
            ("train_sent", data.into())
        }
        Observation::ProbeSent { peer, message, block, path } => {
            let mut data = of_block(peer, message, block);
            data.insert("path".into(), json!(path.0));
            ("probe_sent", data.into())
        }
        Observation::Report { peer, message, block, kind, sends } => {
            let mut data = of_block(peer, message, block);
            report_kind(kind, &mut data);
            (if sends { "report_received" } else { "report_sent" }, data.into())
        }
        Observation::Lost { peer, path, packets } => {
            ("packets_lost", of_path(peer, path, "count", json!(packets)))
        }
        Observation::PathState { peer, path, degraded } => {
            let state = if degraded { "degraded" } else { "alive" };
            ("path_changed", of_path(peer, path, "state", json!(state)))
        }
        Observation::MtuChanged { peer, mtu } => {
            ("mtu_changed", json!({ "peer": peer, "mtu": mtu }))
        }
        Observation::RateChanged { bits_per_second } => {
            ("rate_changed", json!({ "bits_per_second": bits_per_second }))
        }
        Observation::SendEnded { peer, message, end } => {
            let data = match end {
                SendEnd::Delivered { packets, needed, took } => json!({
                    "peer": peer, "message": message.0, "outcome": "delivered",
                    "packets": packets, "needed": needed, "took": milliseconds(took),
                }),
                SendEnd::Rejected(rejection) => ended(peer, message, "rejected", &rejection),
                SendEnd::Unknown(reason) => ended(peer, message, "unknown", &reason),
                _ => return None,
            };
            ("send_ended", data)
        }
        Observation::Received { peer, message, took } => {
            let took = milliseconds(took);
            ("message_received", json!({ "peer": peer, "message": message.0, "took": took }))
        }
        _ => return None,
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn ended(peer: SocketAddr, message: MessageId, outcome: &str, why: &dyn ToString) -> Value {
    json!({ "peer": peer, "message": message.0, "outcome": outcome, "reason": why.to_string() })
}

fn of_path(peer: SocketAddr, path: PathId, field: &str, value: Value) -> Value {
    json!({ "peer": peer, "path": path.0, field: value })
}

fn of_block(peer: SocketAddr, message: MessageId, block: u32) -> Map<String, Value> {
    Map::from_iter([
        ("peer".into(), json!(peer)),
        ("message".into(), json!(message.0)),
        ("block".into(), json!(block)),
    ])
}

fn report_kind(kind: ReportKind, data: &mut Map<String, Value>) {
    let (kind, number) = match kind {
        ReportKind::StopBlock => ("stop_block", None),
        ReportKind::StopMessage => ("stop", None),
        ReportKind::Nack(needed) => ("nack", Some(("needed", needed))),
        ReportKind::Pull(credit) => ("pull", Some(("credit", credit))),
        ReportKind::Busy => ("busy", None),
        ReportKind::Forgotten => ("forgotten", None),
        ReportKind::Reject(reason) => {
            data.insert("reason".into(), json!(reason.to_string()));
            ("reject", None)
        }
        _ => ("other", None),
    };
    data.insert("kind".into(), json!(kind));
    data.extend(number.map(|(field, number)| (field.into(), json!(number))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 7))
    }

    fn last_record(dir: &Path) -> Value {
        let file = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(file).unwrap();
        let (_, last) = text.rsplit_once('\x1e').unwrap();
        serde_json::from_str(last).unwrap()
    }

    #[test]
    fn qlog_events_that_are_dropped_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (events, queue) = mpsc::sync_channel(2);
        let dropped = Arc::new(AtomicU64::new(0));
        let observer = Queue { events, dropped: dropped.clone() };
        for bits_per_second in 0..5 {
            observer.observe(Observation::RateChanged { bits_per_second });
        }
        let file = File::create_new(dir.path().join("log")).unwrap();
        let mut log = Log { out: BufWriter::new(file), began: UdpIo::time(), bytes: 0, dropped };
        log.run(&queue, &AtomicBool::new(true)).unwrap();
        drop(log);
        assert_eq!(last_record(dir.path())["data"], json!({ "dropped_events": 3 }));
    }

    #[test]
    fn a_full_qlog_file_grows_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let qlog = Qlog::start(dir.path(), local()).unwrap();
        drop(qlog);
        let before = last_record(dir.path());
        assert_eq!(before["name"], "cloudburst:log_ended");

        let (events, queue) = mpsc::sync_channel(2);
        let file = dir.path().join("full");
        let out = BufWriter::new(File::create_new(&file).unwrap());
        let dropped = Arc::new(AtomicU64::new(0));
        let mut log = Log { out, began: UdpIo::time(), bytes: MAX_BYTES, dropped };
        events.try_send((UdpIo::time(), Observation::RateChanged { bits_per_second: 1 })).unwrap();
        log.run(&queue, &AtomicBool::new(true)).unwrap();
        drop(log);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches('\x1e').count(), 1, "the last record alone: {text}");
        assert!(text.contains(r#"{"dropped_events":1}"#), "{text}");
    }
}
