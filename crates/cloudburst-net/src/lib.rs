//! Cloudburst over UDP sockets: endpoints that burst messages over many paths until they arrive.
//!
//! ```text
//!              Endpoint                          the handle of the application
//!                 │
//!              driver                            which thread or task runs what
//!                 │
//!    cloudburst_core::burst::Engine              who drives the protocol
//!                 │
//!            io::UdpIo                           sockets, DSCP, batches, counters
//! ```
//!
//! An [`Endpoint`] sends and receives. It needs no runtime of its own: its futures run on tokio and on any
//! other executor, and threads [wait](Operation::wait) for them without one. On tokio, a task of the runtime that
//! first uses an endpoint receives its packets: a runtime wakes its own tasks sooner than another thread can,
//! and the packets that its tasks send share batches. Elsewhere, a thread that waits receives them, or a thread
//! of the endpoint if none waits.
//!
//! A tokio runtime must have I/O enabled (`enable_io` or `enable_all`, which `#[tokio::main]` implies). If it
//! has not, that task panics once for each endpoint, because tokio offers no way to check this beforehand: the
//! panic hook prints a message, no caller notices, and a thread of the endpoint receives the packets. A program
//! that is built with `panic = "abort"` is aborted.
//!
//! # Example
//!
//! ```
//! use cloudburst_net::{Endpoint, PathMap, Security};
//!
//! let key = [7; 32]; // from a safe place, the same at both ends
//! let server = Endpoint::builder()
//!     .bind("127.0.0.1:0".parse()?)
//!     .security(Security::pre_shared(key))
//!     .build()?;
//! let client = Endpoint::builder()
//!     .bind("127.0.0.1:0".parse()?)
//!     .paths(PathMap::ecmp(4))
//!     .security(Security::pre_shared(key))
//!     .build()?;
//!
//! let receipt = client.send(server.local_addr(), "a question").wait()?; // Ok: the server has it
//! assert_eq!(receipt.bytes, 10);
//! let question = server.recv().wait()?;
//! assert_eq!(question.bytes, "a question");
//! server.send(question.peer, "an answer").wait()?;
//! assert_eq!(client.recv().wait()?.bytes, "an answer");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The first message to a peer waits for a handshake of two round trips. [`Endpoint::connect`]
//! completes it in advance.
//!
//! # What success means
//!
//! `Ok` from a send means that the message was put into the receiver's queue, exactly once, byte for byte.
//! [`SendError`] says why a message was not delivered, or may not have been.
//!
//! # Calls
//!
//! [`Endpoint::call`] sends a request and waits for its response; [`Endpoint::serve`] and
//! [`Endpoint::try_serve`] answer requests, and [`Endpoint::recv_request`] hands them out one by one. `Ok` from
//! a call means that the application at the other end has answered, if only with an empty response
//! ([`Request::accept`]). [`Endpoint::call_many`] calls many peers at once, and yields their responses as they
//! arrive. [`SendError`] says why there is no response, and whether the request may have been delivered. Plain
//! messages are independent of calls on the same endpoint.
//!
//! # Observability
//!
//! | where | what |
//! |---|---|
//! | [`Receipt`] | what one message cost: packets, arrivals by path, times |
//! | [`Endpoint::counters`] | packets, answers, drops, errors and marks |
//! | [`Endpoint::latencies`] | latencies of messages, as histograms |
//! | [`Endpoint::peers`] | messages, packets and round-trip time by peer |
//! | [`Endpoint::paths`] | packets, loss and round-trip time by path to a peer |
//! | `Endpoint::metrics`, with the feature `metrics` | all of these, published through the crate `metrics`, by egress instead of by peer |
//!
//! All of these copy counters that are kept in any case, and no peer can make them grow without bound.
//!
//! Spans and events of `tracing`, by level:
//!
//! | level | what | fields |
//! |---|---|---|
//! | span `send`, debug | from the call that sends to the end of the send | `peer`, `bytes`, `id`, `outcome` |
//! | debug | `message received`: it is in the application's queue | `peer`, `id`, `bytes` |
//! | debug | a session opened, an idle peer forgotten, an error of a socket, no GSO | |
//! | info | an endpoint opened, a reloaded path file | |
//! | warn | conditions that the operator should fix: small buffers, packets with another DSCP, a fixed rate on a link of unknown speed, an invalid path file, a qlog file that cannot be written, a thread that does not start | |
//! | warn | a handler or service failed, its response was too long, its caller refused the response, or it was dropped at the shutdown | `peer`, `error` or `rejection` |
//! | error | a handler, a callback, or the destructor of a payload panicked | `peer` of a handler |
//!
//! `outcome` is `delivered`, the text of the error, or `dropped`. The bytes of messages are never
//! logged. Some events are emitted while the endpoint holds locks: a subscriber must neither call into it nor
//! panic.
//!
//! [`Builder::qlog`] records what happens to each message and on each path, train by train.
//!
//! # Networks
//!
//! Packets carry the DSCP of [`Fabric::dscps`] (default [`DEFAULT_DSCP`]), and ECN bits 00 unless
//! [`Fabric::ecn`] says otherwise. Switches should give that DSCP a shallow queue of its own.
//! DSCPs and ECN marks of arriving packets are counted ([`IoCounters`]), and the first foreign DSCP is logged
//! as a warning. An endpoint sends no faster than its [`capacity`](Config::capacity), and adapts its rate where
//! that is unknown.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `path-file` | yes | [`PathMap::file`]: path maps by destination prefix, from TOML files |
//! | `metrics` | no | `Endpoint::metrics`: counters and latencies, published through the crate `metrics` |
//! | `raptorq` | no | the RaptorQ code (RFC 6330) |
//! | `tower` | no | `Endpoint::client` and `Endpoint::serve_with`: `tower` services |

#[cfg(not(target_os = "linux"))]
compile_error!("cloudburst-net needs Linux: it uses UDP_SEGMENT, UDP_GRO, recvmmsg and eventfd");

// What a user meets stands here: `endpoint`, `builder`, `calls`, `connect`, `operation`, `sending`,
// `streams`, `names` and `metrics`. Below it, each importing only what follows:
//
//   driver     which thread or task runs, waits, and wakes whom; the state that all clones share
//   paths      path maps, applied to the sockets of an endpoint
//   qlog       a record of what happens at an endpoint
//   io         the sockets
//   error      why an endpoint was not built, or a message not delivered
//   path_map   path maps as users give them
//   settings   the settings of an operation that has not begun
//   limits     the limits that modules of sockets and path maps share
mod builder;
mod calls;
mod connect;
#[doc(hidden)]
pub mod doc;
mod driver;
mod endpoint;
mod error;
pub mod io;
mod limits;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod operation;
mod path_map;
mod paths;
mod qlog;
mod sending;
mod settings;
mod streams;

pub use builder::{Builder, DEFAULT_SOCKET_BUFFERS};
#[cfg(feature = "tower")]
pub use calls::Client;
pub use calls::{Call, CallMany, Calls, Reply, Request, RequestParts, Response};
pub use connect::Connect;
pub use endpoint::{Counters, Endpoint, Plain, Receive};
pub use error::{BuildError, Closed, Overloaded, SendError};
pub use io::{EcnCounts, GrantedBuffers, IoCounters, RefusedDatagrams};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use names::Peer;
pub use operation::{Kind, Operation};
pub use path_map::{PathMap, PathMapError};
pub use sending::Sending;
pub use streams::{Incoming, PeerSink};

pub use bytes::Bytes;
pub use cloudburst_core::code::{Code, CodeNameError, Degree};
#[doc(hidden)]
pub use cloudburst_core::config::Tuning;
pub use cloudburst_core::config::{
    BurstPolicy, Capacity, Classes, Config, ConfigError, DEFAULT_DSCP, EcnMode, Fabric, KeyError,
    Limits, PresharedKey, PullOrder, Rate, Security, Thresholds,
};
pub use cloudburst_core::error::{LocalError, Receipt};
pub use cloudburst_core::id::{MessageId, PathId};
pub use cloudburst_core::latency::LatencyHistogram;
pub use cloudburst_core::naming::Naming;
pub use cloudburst_core::path::{Order, OrderError, PathStats, Shape, ShapeError, Via};
pub use cloudburst_core::proto::{
    CallCounters, Latencies, Message, PeerStats, ReceivedFrom, ReceiverCounters, SendOptions,
    SenderCounters, SentTo,
};
pub use cloudburst_core::rate::Downlink;
pub use cloudburst_core::time;
pub use cloudburst_core::wire::{Arrivals, RejectReason, Role};
