//! Agrees on a key by a short code: SPAKE2 over TCP, at the number of the receiver's UDP port.
//!
//! ```text
//!   cbrst-send --pair -                                cbrst-recv --pair
//!        | -- MAGIC (12), SPAKE2 message (33) ------------> |
//!        | <------------ MAGIC (12), SPAKE2 message (33) -- |
//!        | -- confirmation (32) --------------------------> |  one guess: a wrong one voids the code
//!        | <-------------------------- confirmation (32) -- |
//! ```
//!
//! Both then derive the pre-shared key of the session. An attacker that does not know the code has one guess for each
//! code that the receiver shows; no message of either end allows guesses to be tried offline.

use crate::signals::Interrupts;
use crate::text;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Instant;

/// Names the protocol and its version.
const MAGIC: [u8; 12] = *b"cbrst-pair 1";
const SPAKE2_LEN: usize = 33;
/// The most bytes to read for a code, which is shorter with separators and a line end.
const MAX_LINE: u64 = 64;
/// The number of codes.
const CODES: u32 = 1_000_000;
/// The most codes that a receiver shows, each after a wrong guess.
// With three guesses at a million codes, guessing succeeds once in 333,000 runs.
pub(crate) const MAX_CODES: u32 = 3;
/// How many ports the system may pick until one is free in both TCP and UDP.
const MAX_PICKS: usize = 16;
/// How long a receiver waits for the right code.
const EXPIRY: Duration = Duration::from_secs(600);
/// How long a connection may take at the receiver, while others wait.
// Connections are served one at a time, so that guesses are counted in order.
const AT_RECEIVER: Duration = Duration::from_secs(1);
/// The same at the sender, which may have to wait for others.
const AT_SENDER: Duration = Duration::from_secs(15);
/// How often to check for signals.
const TICK_MS: u16 = 200;

/// A pairing code: six digits that one person tells another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(u32);

/// Where `cbrst-send` gets its code from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeFrom {
    /// The argument itself.
    Argument(Code),
    /// Standard input: `-`.
    StandardInput,
}

/// The text is not a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the six digits that cbrst-recv --pair shows, such as 123-456")]
pub struct CodeError;

/// Why the ends could not agree on a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PairingError {
    #[error("cannot listen on TCP {addr} for the pairing: {source}")]
    Listen { addr: SocketAddr, source: io::Error },
    #[error(
        "{MAX_CODES} wrong codes were tried, the last from {0}: check that the code is typed as shown; if it was, \
         somebody is guessing"
    )]
    Guessed(SocketAddr),
    #[error("no sender gave the code within {} minutes", EXPIRY.as_secs() / 60)]
    Expired,
    #[error("interrupted")]
    Interrupted,
    #[error(
        "cannot reach cbrst-recv --pair at TCP {peer}: {source}; check that it is waiting there, and that no \
         firewall in between drops TCP to the port"
    )]
    Unreachable { peer: SocketAddr, source: io::Error },
    #[error(
        "the program at TCP {0} is not a cbrst-recv --pair of this version, or has just ended: check whether it still \
         shows a code"
    )]
    NotPairing(SocketAddr),
    #[error("the program at TCP {0} is busy with other connections or says nothing: try again")]
    Unresponsive(SocketAddr),
    #[error(
        "{0} has another code: if cbrst-recv shows a new one, type that; if it still shows the same one, another \
         program answered, and cbrst-recv must be restarted"
    )]
    WrongCode(SocketAddr),
}

/// A receiver that waits for a sender with the right code.
pub(crate) struct Pairing {
    listener: TcpListener,
    /// Keeps the port for the endpoint.
    _reserved: UdpSocket,
    listening: SocketAddr,
}

impl Code {
    /// Draws a random code.
    fn draw() -> Self {
        Self(rand::random_range(0..CODES))
    }

    fn password(self) -> Password {
        Password::new(format!("{:06}", self.0))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}-{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(..)")
    }
}

impl FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
        let is_code = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_code).map(Self).ok_or(CodeError)
    }
}

impl FromStr for CodeFrom {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        if text == "-" { Ok(Self::StandardInput) } else { text.parse().map(Self::Argument) }
    }
}

impl Code {
    /// Reads a line of standard input, with a prompt if that is a terminal.
    ///
    /// # Errors
    ///
    /// The system's error, or [`CodeError`].
    pub(crate) fn read() -> io::Result<Self> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            eprint!("the code that cbrst-recv --pair shows: ");
        }
        let mut line = String::new();
        stdin.lock().take(MAX_LINE).read_line(&mut line)?;
        line.trim_end().parse().map_err(io::Error::other)
    }
}

impl Pairing {
    /// Listens at `addr`.
    ///
    /// # Errors
    ///
    /// If the port is not free in TCP and UDP.
    pub(crate) fn listen(addr: SocketAddr) -> Result<Self, PairingError> {
        // A port that the system picks is free in TCP, but perhaps not in UDP.
        let more = if addr.port() == 0 { MAX_PICKS - 1 } else { 0 };
        let mut bound = Self::bind(addr);
        for _ in 0..more {
            if !matches!(&bound, Err(error) if error.kind() == ErrorKind::AddrInUse) {
                break;
            }
            bound = Self::bind(addr);
        }
        bound.map_err(|source| PairingError::Listen { addr, source })
    }

    fn bind(addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        // TCP, because there is no key for a session yet, and it retransmits these four small
        // messages.
        listener.set_nonblocking(true)?;
        let listening = listener.local_addr()?;
        // Keeps the number from other programs until the receiver listens at it.
        let reserved = UdpSocket::bind(listening)?;
        Ok(Self { listener, _reserved: reserved, listening })
    }

    /// Returns the address at which it listens, and at which the endpoint will.
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.listening
    }

    /// Waits for a sender with the right code. Calls `show` with each code, and with the address of the sender whose
    /// wrong guess ended the one before.
    ///
    /// # Errors
    ///
    /// After [`MAX_CODES`] wrong guesses, ten minutes, or a signal.
    pub(crate) fn wait(
        self,
        interrupts: &Interrupts,
        mut show: impl FnMut(Code, Option<SocketAddr>),
    ) -> Result<[u8; 32], PairingError> {
        let until = Instant::now() + EXPIRY;
        let mut guesses = 0;
        let mut last = None;
        loop {
            let code = Code::draw();
            show(code, last);
            let guesser = loop {
                let (stream, from) = self.accept(interrupts, until)?;
                match pair_sender(stream, code) {
                    Ok(Some(key)) => return Ok(key),
                    Ok(None) => break from,
                    // A peer that did not get as far as a guess has learnt nothing.
                    Err(_) => {}
                }
            };
            guesses += 1;
            if guesses == MAX_CODES {
                return Err(PairingError::Guessed(text::peer(guesser)));
            }
            last = Some(guesser);
        }
    }

    fn accept(
        &self,
        interrupts: &Interrupts,
        until: Instant,
    ) -> Result<(TcpStream, SocketAddr), PairingError> {
        loop {
            if interrupts.is_stopped() {
                return Err(PairingError::Interrupted);
            }
            if Instant::now() >= until {
                return Err(PairingError::Expired);
            }
            if let Ok(accepted) = self.listener.accept() {
                return Ok(accepted);
            }
            let mut ready = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            // The loop checks for signals and the time, whatever ended the wait.
            let _ = poll(&mut ready, PollTimeout::from(TICK_MS));
        }
    }
}

/// Handles one connection at the receiver. Returns the key, or `None` if the sender has another code.
fn pair_sender(stream: TcpStream, code: Code) -> io::Result<Option<[u8; 32]>> {
    stream.set_nonblocking(false)?;
    let mut stream = Timed::new(stream, AT_RECEIVER);
    let (spake2, own) = Spake2::<Ed25519Group>::start_b(&code.password(), &sender(), &receiver());
    let theirs = stream.read_first()?;
    stream.write_first(&own)?;
    let secret = spake2.finish(&theirs).map_err(|_| ErrorKind::InvalidData)?;
    let keys = Keys::of(&secret);
    if !stream.read::<32>().map(|guess| blake3::Hash::from(guess) == keys.of_sender)? {
        return Ok(None);
    }
    stream.0.write_all(keys.of_receiver.as_bytes())?;
    Ok(Some(keys.pre_shared))
}

/// Connects to the receiver at `peer` and returns the key.
///
/// # Errors
///
/// If there is no connection in the time `within`, or the receiver has another code: see [`PairingError`].
pub(crate) fn pair_with(
    peer: SocketAddr,
    code: Code,
    within: Duration,
) -> Result<[u8; 32], PairingError> {
    let failed = |source: io::Error| PairingError::Unreachable { peer, source };
    let stream = TcpStream::connect_timeout(&peer, within).map_err(failed)?;
    let mut stream = Timed::new(stream, AT_SENDER);
    let (spake2, own) = Spake2::<Ed25519Group>::start_a(&code.password(), &sender(), &receiver());
    stream.write_first(&own).map_err(failed)?;
    let unless_unresponsive = |error: io::Error, otherwise| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => PairingError::Unresponsive(peer),
        _ => otherwise,
    };
    let theirs = stream
        .read_first()
        .map_err(|error| unless_unresponsive(error, PairingError::NotPairing(peer)))?;
    let secret = spake2.finish(&theirs).map_err(|_| PairingError::NotPairing(peer))?;
    let keys = Keys::of(&secret);
    stream.0.write_all(keys.of_sender.as_bytes()).map_err(failed)?;
    let confirmation = stream
        .read::<32>()
        .map_err(|error| unless_unresponsive(error, PairingError::WrongCode(peer)))?;
    if blake3::Hash::from(confirmation) != keys.of_receiver {
        return Err(PairingError::WrongCode(peer));
    }
    Ok(keys.pre_shared)
}

fn sender() -> Identity {
    Identity::new(b"cbrst-send")
}

fn receiver() -> Identity {
    Identity::new(b"cbrst-recv")
}

/// Keys derived from the shared secret, which covers both messages. Hashes are compared in constant time.
struct Keys {
    of_sender: blake3::Hash,
    of_receiver: blake3::Hash,
    pre_shared: [u8; 32],
}

impl Keys {
    fn of(secret: &[u8]) -> Self {
        Self {
            of_sender: blake3::derive_key("cloudburst pairing: sender confirms", secret).into(),
            of_receiver: blake3::derive_key("cloudburst pairing: receiver confirms", secret).into(),
            pre_shared: blake3::derive_key("cloudburst pairing: pre-shared key", secret),
        }
    }
}

/// A connection and the time at which it must be done.
struct Timed(TcpStream, Instant);

impl Timed {
    fn new(stream: TcpStream, longest: Duration) -> Self {
        Self(stream, Instant::now() + longest)
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        let mut len = 0;
        while len < N {
            let left = self.1.saturating_duration_since(Instant::now());
            self.0.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.0.read(&mut bytes[len..])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                _ if left.is_zero() => return Err(ErrorKind::TimedOut.into()),
                read => len += read,
            }
        }
        Ok(bytes)
    }

    fn read_first(&mut self) -> io::Result<[u8; SPAKE2_LEN]> {
        if self.read()? != MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        self.read()
    }

    /// So few bytes always fit the send buffer.
    fn write_first(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(&[&MAGIC, message].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// The receiver's listener, and its address.
    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        (listener, addr)
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn both_ends_agree_on_a_new_key_each_time() {
        let code: Code = "012-345".parse().unwrap();
        let once = || {
            let (listener, addr) = listener();
            let pairing = thread::spawn(move || pair_with(addr, code, LONG).unwrap());
            let answered = pair_sender(listener.accept().unwrap().0, code).unwrap().unwrap();
            assert_eq!(pairing.join().unwrap(), answered);
            answered
        };
        assert_ne!(once(), once());
    }

    #[test]
    fn a_wrong_code_counts_as_a_guess_and_is_not_confirmed() {
        let (listener, addr) = listener();
        let pairing = thread::spawn(move || pair_with(addr, Code(1), LONG));
        assert_eq!(pair_sender(listener.accept().unwrap().0, Code(2)).unwrap(), None);
        assert!(matches!(pairing.join().unwrap(), Err(PairingError::WrongCode(_))));
    }

    #[test]
    fn other_traffic_does_not_count_as_a_guess() {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"cbrst-pair 1", b"", &[0xff; 4096]] {
            let (listener, addr) = listener();
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(pair_sender(listener.accept().unwrap().0, Code(1)).is_err(), "{bytes:?}");
        }
        // A point that is not on the curve.
        let (listener, addr) = listener();
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.write_all(&[&MAGIC[..], b"A", &[0xff; 32]].concat()).unwrap();
        assert!(pair_sender(listener.accept().unwrap().0, Code(1)).is_err());
    }

    #[test]
    fn a_reflected_message_is_rejected() {
        let (listener, addr) = listener();
        let pairing = thread::spawn(move || pair_with(addr, Code(1), LONG));
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; MAGIC.len() + SPAKE2_LEN];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(&first).unwrap();
        assert!(matches!(pairing.join().unwrap(), Err(PairingError::NotPairing(_))));
    }

    #[test]
    fn codes_are_six_digits() {
        for text in ["012-345", "012345", " 012 345"] {
            assert_eq!(text.parse::<Code>().unwrap().to_string(), "012-345");
        }
        for text in ["", "12345", "1234567", "+12345", "12a456", "١٢٣٤٥٦"] {
            assert!(text.parse::<Code>().is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", Code(5)), "Code(..)");
    }
}
