//! Metrics for Prometheus, over HTTP.

use ::metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use cloudburst_net::Endpoint;
use core::time::Duration;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

/// How long a connection may take, from its request to the end of its answer, while others wait.
const LONGEST: Duration = Duration::from_secs(1);
/// The most bytes of a request.
const LONGEST_REQUEST: usize = 8192;
/// How long to wait after a failure to accept a connection, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Upper bounds of the histogram buckets of times, in seconds: from a round trip within a rack to the default deadline.
const BUCKETS: [f64; 17] = [
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0, 2.5, 5.0, 10.0,
];

const FILES: &str = "cbrst_recv_files_total";
const FILE_BYTES: &str = "cbrst_recv_file_bytes_total";
const TRANSFERS: &str = "cbrst_recv_transfers";

/// How the transfer of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    Failed,
    Refused,
}

impl Ended {
    /// Counts a file.
    pub(super) fn count(self) {
        self.add(1);
    }

    fn add(self, files: u64) {
        let outcome = match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
        };
        counter!(FILES, "outcome" => outcome).increment(files);
    }
}

/// Counts the bytes of a file that was stored: those that were transferred, and those that were there before.
pub(super) fn count_bytes(transferred: u64, resumed: u64) {
    counter!(FILE_BYTES, "origin" => "transferred").increment(transferred);
    counter!(FILE_BYTES, "origin" => "resumed").increment(resumed);
}

/// Sets the number of transfers in progress.
pub(super) fn set_transfers(transfers: usize) {
    gauge!(TRANSFERS).set(transfers as f64);
}

/// Describes the metrics of files, and begins all series at zero.
fn begin() {
    describe_counter!(
        FILES,
        Unit::Count,
        "Files, directories and links that were offered, by outcome."
    );
    describe_counter!(
        FILE_BYTES,
        Unit::Bytes,
        "Bytes of the files stored, by whether they were transferred or there from an earlier attempt."
    );
    describe_gauge!(TRANSFERS, Unit::Count, "Files that are being transferred.");
    [Ended::Done, Ended::Failed, Ended::Refused].iter().for_each(|ended| ended.add(0));
    count_bytes(0, 0);
    set_transfers(0);
}

/// Serves the metrics of `endpoint` and of files at `addr`, in a thread of its own, as long as the process lives.
///
/// Serves one connection at a time, and each for at most [`LONGEST`], so that many connections cannot use up the
/// file descriptors that the receiver needs. They can only keep others from the metrics.
///
/// # Errors
///
/// A description of the error, such as that of binding `addr`.
pub(super) fn serve(endpoint: &Endpoint, addr: SocketAddr) -> Result<(), String> {
    let listener = TcpListener::bind(addr).map_err(|error| error.to_string())?;
    let builder = PrometheusBuilder::new().set_buckets(&BUCKETS);
    let recorder = builder.map_err(|error| error.to_string())?.build_recorder();
    let handle = recorder.handle();
    ::metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
    begin();
    let mut metrics = endpoint.metrics();
    let mut page = move || {
        // Once the endpoint has ended, this publishes nothing, and the last values remain.
        metrics.publish();
        let page = handle.render();
        handle.run_upkeep();
        page
    };
    let run = move || {
        // The exporter's own listener limits neither the number of connections nor their duration.
        for stream in listener.incoming() {
            match stream {
                // The client may have closed the connection.
                Ok(stream) => drop(answer(stream, &mut page)),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    };
    let thread = thread::Builder::new().name("cbrst-metrics".into()).spawn(run);
    thread.map(drop).map_err(|error| error.to_string())
}

/// Answers one request.
fn answer(mut stream: TcpStream, page: impl FnOnce() -> String) -> io::Result<()> {
    let until = Instant::now() + LONGEST;
    let mut request = Vec::new();
    let mut bytes = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LONGEST_REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut bytes)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(&bytes[..read]),
        }
    }
    let method = method(&request);
    let (status, body) = match method {
        Some(b"GET" | b"HEAD") => ("200 OK", page()),
        Some(_) => ("405 Method Not Allowed\r\nAllow: GET, HEAD", String::new()),
        None => ("404 Not Found", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let sent = if method == Some(b"HEAD") { "" } else { &body };
    let answer = [&head, sent].concat();
    let mut rest = answer.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns the method of a request for `/metrics`, with or without a query; `None` if it is for something else.
fn method(request: &[u8]) -> Option<&[u8]> {
    let mut words = request.split(|byte| *byte == b' ');
    let method = words.next()?;
    let target = words.next()?;
    let path = target.split(|byte| *byte == b'?').next();
    (path == Some(b"/metrics")).then_some(method)
}
