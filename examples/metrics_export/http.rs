//! As much of HTTP/1.1 as a scrape needs: one GET, one answer, and the connection is closed.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Bytes in a request at most; scrapers send a few hundred.
const MAX_REQUEST: usize = 8192;
/// How long a client may pause: one at a time is served.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers scrapes one after the other, for ever.
pub(crate) fn serve(
    listener: &TcpListener,
    body: impl Fn() -> String,
) -> Result<(), Box<dyn Error>> {
    loop {
        let (stream, from) = listener.accept()?;
        if let Err(error) = answer(stream, &body) {
            eprintln!("metrics-export: {from}: {error}");
        }
    }
}

/// Reads one request and answers it.
pub(crate) fn answer(mut stream: TcpStream, body: impl Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
        if read == 0 || request.len() > MAX_REQUEST {
            return respond(&mut stream, "400 Bad Request", "not a request for metrics\n");
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    match (words.next(), words.next().and_then(|target| target.split('?').next())) {
        (Some("GET"), Some("/metrics")) => respond(&mut stream, "200 OK", &body()),
        (Some("GET"), _) => respond(&mut stream, "404 Not Found", "metrics are at /metrics\n"),
        _ => respond(&mut stream, "405 Method Not Allowed", "GET /metrics\n"),
    }
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}
