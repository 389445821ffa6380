//! HTTP/2 by hyper, over one TCP connection that is kept open.

use super::tcp_tasks::connect;
use super::{LONGEST, OnTokio, Tasks, expect_len, lengths, message};
use crate::Result;
use crate::ends::Ends;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// Windows that never close, as for the other transports.
const WINDOW: u32 = 64 << 20;
/// A message is one frame.
const LARGEST_FRAME: u32 = 1 << 20;

/// A POST for each call, with prior knowledge of HTTP/2.
#[derive(Debug)]
pub struct Http2 {
    sender: SendRequest<Full<Bytes>>,
}

impl Http2 {
    /// Opens a connection.
    pub fn open(ends: &Ends) -> Result<OnTokio<Self>> {
        let stream = connect(ends, async |stream| {
            let answer = message(LONGEST, 0);
            let service = service_fn(|request: Request<Incoming>| {
                let answer = answer.clone();
                async move {
                    let request = request.into_body().collect().await?.to_bytes();
                    let (_, response) = lengths(&request);
                    Ok::<_, hyper::Error>(Response::new(Full::new(answer.slice(..response))))
                }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_frame_size(LARGEST_FRAME)
                .serve_connection(TokioIo::new(stream), service);
            Ok(connection.await?)
        })?;
        OnTokio::open(async {
            let stream = TokioIo::new(TcpStream::from_std(stream)?);
            let (sender, connection) =
                hyper::client::conn::http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(WINDOW)
                    .initial_connection_window_size(WINDOW)
                    .max_frame_size(LARGEST_FRAME)
                    .handshake(stream)
                    .await?;
            tokio::spawn(connection);
            Ok(Self { sender })
        })
    }
}

impl Tasks for Http2 {
    async fn call(&mut self, request: &Bytes, response: usize) -> Result<()> {
        let request = Request::post("http://server/").body(Full::new(request.clone()))?;
        let answer = self.sender.send_request(request).await?;
        expect_len(answer.into_body().collect().await?.to_bytes().len(), response)
    }
}
