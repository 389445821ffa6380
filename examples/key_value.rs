//! A small key-value service, over Cloudburst and over TCP.
//!
//! Both use the same store and the same requests, but carry them differently. Over Cloudburst a
//! request is a message: there is no stream to cut into frames, no connection to keep, and one
//! endpoint serves all clients. Over TCP each client has a connection and a thread of its own, and
//! each message begins with its length.
//!
//!     cargo run --release --example key-value

use cloudburst::{Endpoint, Security};
use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest message over TCP. Cloudburst has `Config::max_message`.
const LONGEST: u32 = 16 << 20;

/// Keys to put and to get.
const KEYS: u32 = 1_000;
/// Bytes of each value.
const VALUE: usize = 5_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    run(KEYS, VALUE)
}

fn run(keys: u32, len: usize) -> Result<()> {
    let mut over_cloudburst = cloudburst_client(serve_cloudburst(Store::default())?)?;
    let mut over_tcp = tcp_client(serve_tcp(Store::default())?)?;
    measure("Cloudburst", keys, len, &mut *over_cloudburst)?;
    measure("TCP", keys, len, &mut *over_tcp)
}

/// Puts all keys and gets them back, and prints the mean time of a request.
fn measure(name: &str, keys: u32, len: usize, call: &mut Call) -> Result<()> {
    let start = Instant::now();
    for key in 0..keys {
        call(put(&key.to_be_bytes(), &value(key, len))?)?;
    }
    let put = start.elapsed();
    let start = Instant::now();
    for key in 0..keys {
        let response = call(get(&key.to_be_bytes())?)?;
        if response != [&[FOUND], &value(key, len)[..]].concat() {
            return Err(format!("{name}: key {key} does not have the value that was put").into());
        }
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(keys);
    println!("{name:<10} put {:>7.1} us, get {:>7.1} us", micros(put), micros(start.elapsed()));
    Ok(())
}

fn value(key: u32, len: usize) -> Vec<u8> {
    key.to_be_bytes().into_iter().cycle().take(len).collect()
}

// The service, independent of the transport.

const PUT: u8 = b'p';
const GET: u8 = b'g';
const FOUND: u8 = b'+';
const MISSING: u8 = b'-';
const INVALID: u8 = b'?';

/// Requests are `p`, the key's length, the key and the value, or `g` and the key.
fn put(key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    Ok([&[PUT, u8::try_from(key.len())?], key, value].concat())
}

fn get(key: &[u8]) -> Result<Vec<u8>> {
    Ok([&[GET, u8::try_from(key.len())?], key].concat())
}

#[derive(Clone, Default)]
struct Store(Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>);

impl Store {
    /// Returns `+` and the value, or `+` alone for a put; `-` if there is no value; `?` if the
    /// request is invalid.
    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = match request {
            [kind, len, rest @ ..] => rest.split_at_checked(usize::from(*len)).map(|r| (*kind, r)),
            _ => None,
        };
        match parsed {
            Some((PUT, (key, value))) => {
                values.insert(key.to_vec(), value.to_vec());
                vec![FOUND]
            }
            Some((GET, (key, []))) => match values.get(key) {
                Some(value) => [&[FOUND], &value[..]].concat(),
                None => vec![MISSING],
            },
            _ => vec![INVALID],
        }
    }
}

/// Sends a request and returns the response.
type Call = dyn FnMut(Vec<u8>) -> Result<Vec<u8>>;

// Over Cloudburst.

fn endpoint() -> Result<Endpoint> {
    let security = Security::pre_shared([42; 32]); // both ends share this key, and keep it secret
    Ok(Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?)
}

fn serve_cloudburst(store: Store) -> Result<SocketAddr> {
    let endpoint = endpoint()?;
    let address = endpoint.local_addr();
    thread::spawn(move || endpoint.blocking_serve(1, |request| store.answer(&request.bytes)));
    Ok(address)
}

fn cloudburst_client(server: SocketAddr) -> Result<Box<Call>> {
    let endpoint = endpoint()?;
    Ok(Box::new(move |request| Ok(endpoint.call(server, request).wait()?.to_vec())))
}

// Over TCP.

fn serve_tcp(store: Store) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let store = store.clone();
            // The thread ends with the connection.
            thread::spawn(move || serve_connection(client, &store));
        }
    });
    Ok(address)
}

fn serve_connection(mut client: TcpStream, store: &Store) -> io::Result<()> {
    client.set_nodelay(true)?;
    loop {
        let request = read_frame(&mut client)?;
        write_frame(&mut client, &store.answer(&request))?;
    }
}

fn tcp_client(server: SocketAddr) -> Result<Box<Call>> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(Box::new(move |request| {
        write_frame(&mut stream, &request)?;
        Ok(read_frame(&mut stream)?)
    }))
}

fn write_frame(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_be_bytes(), bytes].concat())
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_be_bytes(len);
    if len > LONGEST {
        return Err(io::Error::other(format!("a frame of {len} bytes is longer than {LONGEST}")));
    }
    let mut bytes = vec![0; len as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_put_over_one_transport_is_read_over_the_other() {
        let store = Store::default();
        let mut over_cloudburst =
            cloudburst_client(serve_cloudburst(store.clone()).unwrap()).unwrap();
        let mut over_tcp = tcp_client(serve_tcp(store).unwrap()).unwrap();
        let value = value(7, 93_000);
        assert_eq!(over_cloudburst(get(b"key").unwrap()).unwrap(), [MISSING]);
        assert_eq!(over_cloudburst(put(b"key", &value).unwrap()).unwrap(), [FOUND]);
        let found = [&[FOUND], &value[..]].concat();
        assert_eq!(over_tcp(get(b"key").unwrap()).unwrap(), found);
        assert_eq!(over_tcp(put(b"key", b"short").unwrap()).unwrap(), [FOUND]);
        assert_eq!(over_cloudburst(get(b"key").unwrap()).unwrap(), b"+short");
        assert_eq!(over_cloudburst(vec![PUT, 200, 1]).unwrap(), [INVALID]);
    }

    #[test]
    fn both_transports_return_the_values_that_were_put() {
        run(20, 5_000).unwrap();
    }
}
