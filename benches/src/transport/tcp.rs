//! Kernel TCP: one connection without Nagle's algorithm, and one thread at each end.

use super::{Blocking, Flood, HEADER, LONGEST, PATIENCE, lengths, message, start};
use crate::Result;
use crate::ends::Ends;
use bytes::Bytes;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a connection that spins does so: a server, between two trials, must leave its CPU to others.
const LONGEST_SPIN: Duration = Duration::from_millis(1);

/// Calls by threads that sleep in the socket, or spin on it.
#[derive(Debug)]
pub struct Tcp {
    connection: Connection,
    response: Vec<u8>,
}

impl Tcp {
    /// Threads wait in `read` and `write`.
    pub fn asleep(ends: &Ends) -> Result<Self> {
        Self::open(ends, false)
    }

    /// Threads try non-blocking sockets again and again.
    pub fn spinning(ends: &Ends) -> Result<Self> {
        Self::open(ends, true)
    }

    fn open(ends: &Ends, spins: bool) -> Result<Self> {
        let address = ends.server.address();
        // The server ends with the connection.
        let server = start(&ends.server, move |ready| {
            let listener = TcpListener::bind((address, 0))?;
            ready.send(listener.local_addr()?)?;
            let (stream, _) = listener.accept()?;
            match serve(&Connection::new(stream, spins)?) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
                done => Ok(done?),
            }
        })?;
        let connection = ends.client.run(move || {
            let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Connection::new(stream, spins)?)
        })?;
        Ok(Self { connection, response: vec![0; LONGEST] })
    }
}

fn serve(connection: &Connection) -> io::Result<()> {
    // One call reads a small message with its header.
    let mut reader = BufReader::with_capacity(256 * 1024, connection);
    let mut body = vec![0; LONGEST];
    let answer = message(LONGEST, 0);
    loop {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        let (len, response) = lengths(&header);
        reader.read_exact(&mut body[HEADER..len])?;
        let mut writer = connection;
        writer.write_all(&answer[..response])?;
    }
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    spins: bool,
}

impl Connection {
    fn new(stream: TcpStream, spins: bool) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(spins)?;
        Ok(Self { stream, spins })
    }

    fn until_done<T>(&self, mut attempt: impl FnMut(&TcpStream) -> io::Result<T>) -> io::Result<T> {
        if !self.spins {
            return attempt(&self.stream);
        }
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_SPIN {
            match attempt(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
        self.stream.set_nonblocking(false)?;
        let done = attempt(&self.stream);
        self.stream.set_nonblocking(true)?;
        done
    }
}

impl Read for &Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.until_done(|mut stream| stream.read(bytes))
    }
}

impl Write for &Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Blocking for Tcp {
    fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        let mut connection = &self.connection;
        connection.write_all(request)?;
        connection.read_exact(&mut self.response[..response])?;
        Ok(())
    }
}

impl Flood for Tcp {
    /// TCP does not report what the peer's application has received, so it answers each message with one byte.
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let bytes = message(len, 1);
        let mut connection = &self.connection;
        let begun = Instant::now();
        let mut sent = 0;
        let mut done = 0;
        let mut open = true;
        while open || done < sent {
            open = begun.elapsed() < period;
            while open && sent - done < in_flight {
                connection.write_all(&bytes)?;
                sent += 1;
            }
            if done < sent {
                match connection.read(&mut self.response[..in_flight])? {
                    0 => return Err("the server has closed the connection".into()),
                    answers => done += answers,
                }
            }
        }
        Ok((done, begun.elapsed()))
    }
}
