//! A request and its response on one connection, driven by `poll`.

use super::TcpSettings;
use core::fmt::Display;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A way to a peer, and the connections that are idle there.
#[derive(Debug)]
pub(super) struct Route {
    host: u16,
    to: SocketAddr,
    /// The address of this host to which responses come; without, the kernel chooses.
    from: Option<IpAddr>,
    idle: Mutex<Vec<TcpStream>>,
}

impl Route {
    pub(super) fn new(host: u16, to: SocketAddr, from: Option<IpAddr>) -> Self {
        Self { host, to, from, idle: Mutex::default() }
    }

    /// Begins to connect.
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
    /// So many bytes of the request are sent.
    Sending(usize),
    /// So many bytes of the response have come.
    Receiving(usize),
}

/// Bytes of a response that are taken from the kernel at once.
const PIECE: usize = 16 << 10;

impl Exchange {
    /// Takes an idle connection and sends; begins to open one more if none is idle.
    pub(super) fn begin(
        route: &Arc<Route>,
        settings: &TcpSettings,
        request: &Arc<[u8]>,
        response: usize,
        until: Instant,
    ) -> Result<Self, String> {
        // The one that was used last has the warmest congestion window.
        let idle = route.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (stream, stage) = match idle {
            Some(stream) => (stream, Stage::Sending(0)),
            None => (route.open(settings)?, Stage::Connecting),
        };
        let (route, request) = (Arc::clone(route), Arc::clone(request));
        Ok(Self { route, stream, request, response, stage, until })
    }

    /// Does what can be done without waiting. Returns whether the whole response is there.
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
                // Until it is connected, this says `NotConnected`.
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
                    let reason = "it closed the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
                }
                if more > self.response - got {
                    let reason = "it sent more than the response";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                self.stage = Stage::Receiving(got + more);
            }
        }
        Ok(false)
    }

    /// Gives the connection back. The whole response must be there.
    pub(super) fn finish(self) {
        self.route.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.stream);
    }

    /// What to wait for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        let events = match self.stage {
            Stage::Connecting | Stage::Sending(_) => PollFlags::POLLOUT,
            Stage::Receiving(_) => PollFlags::POLLIN,
        };
        PollFd::new(self.stream.as_fd(), events)
    }

    /// Why this copy failed, for people.
    pub(super) fn blame(&self, reason: impl Display) -> String {
        let state = match self.stage {
            Stage::Connecting => "not connected".into(),
            Stage::Sending(sent) => {
                format!("{sent} of {} bytes of the request sent", self.request.len())
            }
            Stage::Receiving(got) => {
                format!("{got} of {} bytes of the response came", self.response)
            }
        };
        self.route.blame(&state, reason)
    }
}

/// Waits until something is ready, or until then; says of each whether it is ready.
pub(super) fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<Vec<bool>> {
    let timeout = until.map_or(PollTimeout::NONE, |until| {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up: waking before the time only polls again.
        let millis = left.as_nanos().div_ceil(1_000_000);
        PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
    });
    match poll(fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(reason) => return Err(reason.into()),
    }
    Ok(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect())
}
