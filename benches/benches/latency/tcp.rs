//! Kernel TCP, in the clear: one connection, blocking calls, no Nagle.

use crate::transport::{HEADER, LONGEST, PATIENCE, REQUEST, Result, Transport};
use crate::transport::{lengths, message, text};
use cloudburst_testbed::Wire;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct Tcp {
    stream: TcpStream,
    response: Vec<u8>,
}

impl Tcp {
    pub(crate) fn open(wire: &Wire) -> Result<Self> {
        let address = wire.right.address();
        let listen = move || {
            let listener = TcpListener::bind((address, 0))?;
            let server = listener.local_addr()?;
            // Both it and the thread end with the connection.
            thread::spawn(move || listener.accept().and_then(|(stream, _)| serve(stream)));
            Ok::<SocketAddr, io::Error>(server)
        };
        let server = wire.right.run(listen).map_err(text)?;
        let stream = wire.left.run(move || TcpStream::connect_timeout(&server, PATIENCE));
        let stream = stream.map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
        Ok(Self { stream, response: vec![0; LONGEST] })
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // One call reads a small message with its header.
    let mut reader = BufReader::with_capacity(256 * 1024, stream.try_clone()?);
    let mut body = vec![0; LONGEST];
    let answer = message(LONGEST, 0);
    loop {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        let (len, response) = lengths(&header);
        reader.read_exact(&mut body[HEADER..len])?;
        stream.write_all(&answer[..response])?;
    }
}

impl Transport for Tcp {
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>> {
        let request = message(REQUEST, response);
        let mut took = Vec::with_capacity(count);
        let begun = Instant::now();
        while took.len() < count && begun.elapsed() < limit {
            let start = Instant::now();
            self.stream.write_all(&request).map_err(text)?;
            self.stream.read_exact(&mut self.response[..response]).map_err(text)?;
            took.push(start.elapsed());
        }
        Ok(took)
    }

    /// TCP does not report what the peer's application has received, so it answers each message with
    /// one byte.
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)> {
        let bytes = message(len, 1);
        let begun = Instant::now();
        let mut sent = 0;
        let mut done = 0;
        let mut open = true;
        while open || done < sent {
            open = begun.elapsed() < period;
            while open && sent - done < in_flight {
                self.stream.write_all(&bytes).map_err(text)?;
                sent += 1;
            }
            if done < sent {
                match self.stream.read(&mut self.response[..in_flight]).map_err(text)? {
                    0 => return Err("the server has closed the connection".into()),
                    answers => done += answers,
                }
            }
        }
        Ok((done, begun.elapsed()))
    }
}
