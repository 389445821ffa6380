//! The responding end, with a thread for each connection.

use super::TcpSettings;
use super::exchange::poll_until;
use crate::transport::{HEADER, LONGEST, RequestHeader};
use core::time::Duration;
use nix::poll::{PollFd, PollFlags};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The number of connections that may wait to be accepted. The kernel lowers it to
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// The number of connections that are served at once. Further ones are closed.
const MOST_CONNECTIONS: usize = 4096;

/// How long to pause accepting if the system is out of descriptors or threads.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens until it is dropped, which ends its connections and threads.
pub(super) struct Server {
    port: u16,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn open(settings: &TcpSettings) -> Result<Self, String> {
        let socket = settings.socket()?;
        let listen = || {
            socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)
        };
        listen().map_err(|reason: io::Error| format!("cannot listen: {reason}"))?;
        let listener = TcpListener::from(socket);
        let settings = settings.clone();
        let answer = vec![0x5a; LONGEST].into();
        let start = || {
            let port = listener.local_addr()?.port();
            let (stopped, stop) = pipe()?;
            let thread = thread::Builder::new()
                .name("tcp accept".into())
                .spawn(move || accept(&listener, &stopped, &settings, &answer))?;
            Ok(Self { port, stop: Some(stop), thread: Some(thread) })
        };
        start().map_err(|reason: io::Error| format!("cannot serve: {reason}"))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    stopped: &PipeReader,
    settings: &TcpSettings,
    answer: &Arc<[u8]>,
) {
    let mut connections: Vec<(Arc<TcpStream>, JoinHandle<()>)> = Vec::new();
    loop {
        let stop = PollFd::new(stopped.as_fd(), PollFlags::POLLIN);
        let mut fds = [stop, PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if poll_until(&mut fds, None).map_or(true, |ready| ready[0]) {
            break;
        }
        connections.retain(|(_, thread)| !thread.is_finished());
        let accepted = listener.accept().and_then(|(stream, _)| {
            let is_refused = connections.len() >= MOST_CONNECTIONS;
            if is_refused || settings.tune(&stream).is_err() {
                return Ok(None);
            }
            let stream = Arc::new(stream);
            let served = Arc::clone(&stream);
            let answer = Arc::clone(answer);
            let thread = thread::Builder::new().name("tcp serve".into()).spawn(move || {
                // Whatever ends it, the peer sees the connection closed.
                let _ = serve(&served, &answer);
                let _ = served.shutdown(Shutdown::Both);
            })?;
            Ok(Some((stream, thread)))
        });
        match accepted {
            Ok(connection) => connections.extend(connection),
            Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => {
                let _ = poll_until(&mut fds[..1], Some(Instant::now() + PAUSE));
            }
        }
    }
    for (stream, _) in &connections {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for (_, thread) in connections {
        let _ = thread.join();
    }
}

/// Responds until the peer closes the connection or sends an invalid request.
fn serve(mut stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(16 << 10, stream);
    loop {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        let header = RequestHeader::decode(&header).ok_or(io::ErrorKind::InvalidData)?;
        skip(&mut reader, header.request - HEADER)?;
        stream.write_all(&answer[..header.response])?;
    }
}

/// Reads and discards this many bytes.
fn skip(reader: &mut impl BufRead, len: usize) -> io::Result<()> {
    let skipped = io::copy(&mut reader.take(len as u64), &mut io::sink())?;
    if skipped < len as u64 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
