//! Kernel TCP by tasks of a tokio runtime: one connection without Nagle's algorithm.

use super::{HEADER, LONGEST, OnTokio, Tasks, lengths, message, runtime, start};
use crate::Result;
use crate::ends::Ends;
use bytes::Bytes;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Calls by one task at each end.
#[derive(Debug)]
pub struct TcpTasks {
    stream: TcpStream,
    response: Vec<u8>,
}

impl TcpTasks {
    /// Opens a connection.
    pub fn open(ends: &Ends) -> Result<OnTokio<Self>> {
        let stream = connect(ends, async |stream| match serve(stream).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            done => Ok(done?),
        })?;
        OnTokio::open(async {
            let stream = TcpStream::from_std(stream)?;
            Ok(Self { stream, response: vec![0; LONGEST] })
        })
    }
}

/// Opens a connection for a runtime, which `serve` answers on a runtime of the server's end.
pub(super) fn connect(
    ends: &Ends,
    serve: impl AsyncFnOnce(TcpStream) -> Result<()> + Send + 'static,
) -> Result<std::net::TcpStream> {
    let address = ends.server.address();
    let server = start(&ends.server, move |ready| {
        runtime()?.block_on(async {
            let listener = TcpListener::bind((address, 0)).await?;
            ready.send(listener.local_addr()?)?;
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            serve(stream).await
        })
    })?;
    ends.client.run(move || {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    })
}

async fn serve(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(256 * 1024, stream);
    let mut body = vec![0; LONGEST];
    let answer = message(LONGEST, 0);
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).await?;
        let (len, response) = lengths(&header);
        stream.read_exact(&mut body[HEADER..len]).await?;
        stream.get_mut().write_all(&answer[..response]).await?;
    }
}

impl Tasks for TcpTasks {
    async fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        self.stream.write_all(request).await?;
        self.stream.read_exact(&mut self.response[..response]).await?;
        Ok(())
    }
}
