//! A request and its response on one connection, which `poll` drives.

use super::TcpSettings;
use core::fmt::Display;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A route to a peer, and its idle connections.
#[derive(Debug)]
pub(super) struct Route {
    host: u16,
    to: SocketAddr,
    /// The address of this host, to which responses return. With `None`, the kernel chooses it.
    from: Option<IpAddr>,
    idle: Mutex<Vec<TcpStream>>,
}

impl Route {
    pub(super) fn new(host: u16, to: SocketAddr, from: Option<IpAddr>) -> Self {
        Self { host, to, from, idle: Mutex::default() }
    }

    /// Opens a connection, and starts to connect it.
    fn open(&self, settings: &TcpSettings) -> Result<TcpStream, String> {
        let socket = settings.socket()?;
        let connect = || {
            if let Some(from) = self.from {
                socket.bind(&SocketAddr::new(from, 0).into())?;
            }
            socket.set_nonblocking(true)?;
            match socket.connect(&self.to.into()) {
                Err(reason) if reason.raw_os_error() == Some(Errno::EINPROGRESS as i32) => Ok(()),
                outcome => outcome,
            }
        };
        connect().map_err(|reason| self.blame("not connected", reason))?;
        Ok(socket.into())
    }

    fn blame(&self, state: &str, reason: impl Display) -> String {
        let by = self.from.map_or_else(String::new, |from| format!(" from {from}"));
        format!("host {} at {}{by}: {state}: {reason}", self.host, self.to)
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.idle.lock().unwrap().len()
    }
}

/// One copy of a call.
#[derive(Debug)]
pub(super) struct Exchange {
    route: Arc<Route>,
    stream: TcpStream,
    request: Arc<[u8]>,
    response: usize,
    stage: Stage,
    /// When to give up.
    pub(super) until: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Connecting,
    /// This many bytes of the request have been sent.
    Sending(usize),
    /// This many bytes of the response have arrived.
    Receiving(usize),
}

/// The largest number of bytes of a response that are read at once.
const PIECE: usize = 16 << 10;

impl Exchange {
    /// Begins on an idle connection, or opens another one if none is idle.
    pub(super) fn begin(
        route: &Arc<Route>,
        settings: &TcpSettings,
        request: &Arc<[u8]>,
        response: usize,
        until: Instant,
    ) -> Result<Self, String> {
        // The most recently used one has the warmest congestion window.
        let idle = route.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (stream, stage) = match idle {
            Some(stream) => (stream, Stage::Sending(0)),
            None => (route.open(settings)?, Stage::Connecting),
        };
        let route = Arc::clone(route);
        let request = Arc::clone(request);
        Ok(Self { route, stream, request, response, stage, until })
    }

    /// Proceeds as far as possible without blocking. Returns whether the whole response has arrived.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        let advanced = loop {
            match self.step() {
                Ok(false) => {}
                Err(reason) if reason.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        match advanced {
            Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => Ok(false),
            outcome => outcome,
        }
    }

    fn step(&mut self) -> io::Result<bool> {
        match self.stage {
            Stage::Connecting => {
                if let Some(reason) = self.stream.take_error()? {
                    return Err(reason);
                }
                // Until it is connected, this returns `NotConnected`.
                match self.stream.peer_addr() {
                    Err(reason) if reason.kind() == io::ErrorKind::NotConnected => {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    outcome => outcome?,
                };
                self.stage = Stage::Sending(0);
            }
            Stage::Sending(sent) if sent == self.request.len() => self.stage = Stage::Receiving(0),
            Stage::Sending(sent) => {
                self.stage = Stage::Sending(sent + self.stream.write(&self.request[sent..])?);
            }
            Stage::Receiving(got) if got == self.response => return Ok(true),
            Stage::Receiving(got) => {
                let mut piece = [0; PIECE];
                let more = self.stream.read(&mut piece)?;
                if more == 0 {
                    let reason = "the peer closed the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
                }
                if more > self.response - got {
                    let reason = "the peer sent more than the response";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                self.stage = Stage::Receiving(got + more);
            }
        }
        Ok(false)
    }

    /// Returns the connection to the idle ones. The whole response must have arrived.
    pub(super) fn finish(self) {
        self.route.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.stream);
    }

    /// The descriptor and the events to wait for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        let events = match self.stage {
            Stage::Connecting | Stage::Sending(_) => PollFlags::POLLOUT,
            Stage::Receiving(_) => PollFlags::POLLIN,
        };
        PollFd::new(self.stream.as_fd(), events)
    }

    /// A text that says how far this copy got, and why it failed.
    pub(super) fn blame(&self, reason: impl Display) -> String {
        let state = match self.stage {
            Stage::Connecting => "not connected".into(),
            Stage::Sending(sent) => {
                format!("{sent} of {} bytes of the request sent", self.request.len())
            }
            Stage::Receiving(got) => {
                format!("{got} of {} bytes of the response received", self.response)
            }
        };
        self.route.blame(&state, reason)
    }
}

/// Waits until a descriptor is ready, or until `until`. Returns for each whether it is ready.
pub(super) fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<Vec<bool>> {
    let timeout = until.map_or(PollTimeout::NONE, |until| {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, because waking early only polls again.
        let millis = left.as_nanos().div_ceil(1_000_000);
        PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
    });
    match poll(fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(reason) => return Err(reason.into()),
    }
    Ok(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect())
}
