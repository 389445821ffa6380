//! Long TCP flows beside the short messages, one after the other from each sender.

use crate::Failure;
use crate::scheme::Congestion;
use cloudburst_core::rng::SplitMix64;
use core::time::Duration;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// How often waiting threads check whether they should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// A flow without progress for this long is given up: its path is dead, and the next flow may take
/// another one.
const STALLED: Duration = Duration::from_secs(2);
/// The size of reads and writes in bytes.
const PIECE: usize = 64 * 1024;
/// The number of flows that a sink accepts at once.
const MAX_FLOWS: usize = 1024;

/// The background flows that one host sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Background {
    /// The sinks, with the paths to each. Each flow takes a random path to a random sink.
    pub(crate) sinks: Vec<Vec<SinkPath>>,
    /// The bytes of a flow.
    pub(crate) bytes: u64,
    pub(crate) congestion: Congestion,
    pub(crate) seed: u64,
}

/// A path to a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SinkPath {
    pub(crate) to: SocketAddr,
    /// The address to send from, so that acknowledgements take the same path. With `None`, the kernel
    /// chooses it.
    pub(crate) from: Option<IpAddr>,
}

/// Receives background flows, and counts their bytes.
#[derive(Debug)]
pub(crate) struct Sink {
    port: u16,
    bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Sink {
    /// Opens a sink that accepts flows from these addresses only.
    pub(crate) fn open(from: Vec<IpAddr>) -> Result<Self, Failure> {
        let doing = || Failure::io("cannot open a sink for background flows");
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(doing())?;
        listener.set_nonblocking(true).map_err(doing())?;
        let address = listener.local_addr().map_err(doing())?;
        let bytes = Arc::<AtomicU64>::default();
        let is_over = Arc::<AtomicBool>::default();
        let count = bytes.clone();
        let over = is_over.clone();
        let accept = move || accept(&listener, &from, &count, &over);
        let accepting = Some(thread::Builder::new().spawn(accept).map_err(doing())?);
        Ok(Self { port: address.port(), bytes, is_over, accepting })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The number of bytes received so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    from: &[IpAddr],
    count: &Arc<AtomicU64>,
    is_over: &Arc<AtomicBool>,
) {
    let timeout = PollTimeout::from(POLL_INTERVAL.as_millis() as u8);
    let mut taking: Vec<JoinHandle<()>> = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::new(listener.as_fd(), PollFlags::POLLIN)], timeout);
        taking.retain(|taking| !taking.is_finished());
        let Ok((stream, peer)) = listener.accept() else { continue };
        if !from.contains(&peer.ip()) || taking.len() == MAX_FLOWS {
            continue;
        }
        let count = count.clone();
        let is_over = is_over.clone();
        let take = move || drop(take(stream, &count, &is_over));
        taking.extend(thread::Builder::new().spawn(take));
    }
    taking.into_iter().for_each(|taking| drop(taking.join()));
}

fn take(mut stream: TcpStream, count: &AtomicU64, is_over: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut piece = vec![0; PIECE];
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => drop(count.fetch_add(bytes as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends flows until it is dropped, which cuts off the last one.
#[derive(Debug)]
pub(crate) struct Sender {
    is_over: Arc<AtomicBool>,
    /// Why the last flow that failed did so.
    failure: Arc<Mutex<Option<String>>>,
    sending: Option<JoinHandle<()>>,
}

impl Sender {
    pub(crate) fn start(background: Background) -> Result<Self, Failure> {
        let is_over = Arc::<AtomicBool>::default();
        let failure = Arc::<Mutex<_>>::default();
        let over = is_over.clone();
        let failed = failure.clone();
        let send = move || {
            let mut rng = SplitMix64::new(background.seed);
            while !over.load(Ordering::Relaxed) && !background.sinks.is_empty() {
                if let Err(why) = flow(&background, &mut rng, &over) {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_string());
                    thread::sleep(POLL_INTERVAL);
                }
            }
        };
        let sending = thread::Builder::new().name("background".into()).spawn(send);
        let sending =
            Some(sending.map_err(Failure::io("cannot start a thread for background flows"))?);
        Ok(Self { is_over, failure, sending })
    }

    /// Why the last flow that failed did so, if any has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(sending) = self.sending.take() {
            let _ = sending.join();
        }
    }
}

fn flow(background: &Background, rng: &mut SplitMix64, is_over: &AtomicBool) -> io::Result<()> {
    let sink = &background.sinks[rng.below(background.sinks.len() as u64) as usize];
    let path = rng.below(sink.len().max(1) as u64) as usize;
    let path = sink.get(path).ok_or(io::ErrorKind::AddrNotAvailable)?;
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(path.to),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    socket.set_tcp_congestion(background.congestion.name().as_bytes())?;
    if let Some(from) = path.from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&path.to.into(), Duration::from_secs(1))?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(POLL_INTERVAL))?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    let piece = vec![0x5a; PIECE];
    let mut left = background.bytes;
    let mut moved = Instant::now();
    // The kernel accepts bytes before they arrive: the flow is over when the sink closes it.
    let mut is_sent = false;
    while !is_over.load(Ordering::Relaxed) && moved.elapsed() < STALLED {
        let done = if left > 0 {
            stream.write(&piece[..piece.len().min(left.try_into().unwrap_or(PIECE))])
        } else {
            if !is_sent {
                stream.shutdown(Shutdown::Write)?;
                is_sent = true;
            }
            stream.read(&mut [0])
        };
        match done {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                left = left.saturating_sub(bytes as u64);
                moved = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn background(sinks: &[&Sink]) -> Background {
        let path =
            |sink: &&Sink| vec![SinkPath { to: (HERE, sink.port()).into(), from: Some(HERE) }];
        let sinks = sinks.iter().map(path).collect();
        Background { sinks, bytes: 1_000_000, congestion: Congestion::Cubic, seed: 1 }
    }

    #[test]
    fn background_flows_follow_each_other_until_the_sender_is_dropped() {
        let one = Sink::open(vec![HERE]).unwrap();
        let other = Sink::open(vec![HERE]).unwrap();
        let sender = Sender::start(background(&[&one, &other])).unwrap();
        while one.bytes().min(other.bytes()) < 5_000_000 {
            thread::yield_now();
        }
        assert_eq!(sender.failure(), None);
        drop(sender);
        drop((one, other));
    }

    #[test]
    fn bytes_from_unknown_addresses_are_not_counted() {
        let sink = Sink::open(vec![Ipv4Addr::new(127, 0, 0, 2).into()]).unwrap();
        let mut stream = TcpStream::connect((HERE, sink.port())).unwrap();
        // The sink closes it at once: the stream ends, or is reset.
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)));
        assert_eq!(sink.bytes(), 0);
    }

    #[test]
    fn the_sender_reports_why_a_flow_failed() {
        let port = Sink::open(Vec::new()).unwrap().port();
        let mut nobody = background(&[]);
        nobody.sinks.push(vec![SinkPath { to: (HERE, port).into(), from: None }]);
        let sender = Sender::start(nobody).unwrap();
        while sender.failure().is_none() {
            thread::yield_now();
        }
        assert!(sender.failure().unwrap().contains("refused"));
    }
}
