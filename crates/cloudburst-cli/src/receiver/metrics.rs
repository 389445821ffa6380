//! Metrics for Prometheus, over HTTP.

use cloudburst_net::Endpoint;
use core::time::Duration;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

/// How long a connection may take, while others wait.
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

/// Serves the metrics of `endpoint` at `addr`, in a thread of its own, as long as the process lives.
///
/// Serves one connection at a time, and each for at most a second, so that many connections cannot use up the
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
    let mut metrics = endpoint.metrics();
    let mut page = move || {
        // Once the endpoint has ended, this publishes nothing, and the last values remain.
        metrics.publish();
        let page = handle.render();
        handle.run_upkeep();
        page
    };
    let run = move || {
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
    let (mut request, mut bytes) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST_REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(&bytes[..read]),
        }
    }
    let (status, body) = match is_for_metrics(&request) {
        true => ("200 OK", page()),
        false => ("404 Not Found", String::new()),
    };
    stream.set_write_timeout(Some(LONGEST))?;
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes())
}

/// Whether the request is for `/metrics`, with or without a query.
fn is_for_metrics(request: &[u8]) -> bool {
    let rest = request.strip_prefix(b"GET /metrics");
    rest.is_some_and(|rest| rest.starts_with(b" ") || rest.starts_with(b"?"))
}
