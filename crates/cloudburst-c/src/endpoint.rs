//! Endpoints.

use crate::arguments::{self, clear, present};
use crate::message::Message;
use crate::request::Request;
use crate::status::{Failure, Status, guard};
use cloudburst::{Bytes, Config, ConfigError, Operation, PathMap, Receive, Security, SendOptions};
use core::error::Error;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::time::Duration;

/// The settings of a new endpoint. Begin with the defaults, so that a program also runs with a later version, which
/// may add members at the end: `cbrst_options options = CBRST_OPTIONS_INIT;`
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    /// sizeof(cbrst_options), as CBRST_OPTIONS_INIT sets it.
    pub size: usize,
    /// The address that peers send to. NULL: any IPv4 address of this host and a port that the system picks.
    pub bind: *const c_char,
    /// The addresses that peers send to, if a device in between translates them: `known_as_len` of them.
    pub known_as: *const *const c_char,
    /// The number of addresses at `known_as`.
    pub known_as_len: usize,
    /// 32 bytes that all peers share, from a safe place. Mandatory, unless `trusted_network` is set.
    pub key: *const u8,
    /// Keys that peers may begin with as well, while keys are being replaced: `also_accept_len` of them. See
    /// `cbrst_set_security`.
    pub also_accept: *const [u8; 32],
    /// The number of keys at `also_accept`.
    pub also_accept_len: usize,
    /// Use no key: any host that reaches the endpoint may use it. `key` must then be NULL.
    pub trusted_network: bool,
    /// The paths to spread packets over, such as "ecmp:16" or "file:/etc/cloudburst/paths.toml". NULL: "ecmp:16".
    pub paths: *const c_char,
    /// The capacity of the link in bits per second. 0: the speed that the interface reports, if it is hardware;
    /// elsewhere, the rate adapts.
    pub capacity: u64,
    /// The network: "tiny-queues", whose switches have shallow queues for the packets, or "cloud", whose queues
    /// are shared with others: no DSCP, and a rate that adapts. NULL: "tiny-queues".
    pub fabric: *const c_char,
    /// The bytes of the longest IP packet to send, 576 to 65,535: an upper bound, as the MTU of each path is
    /// discovered. 0: 9,000.
    pub mtu: usize,
    /// The milliseconds within which messages, calls, connects and replies must end, unless `cbrst_with` says
    /// otherwise. 0: 10,000.
    pub deadline_ms: u64,
    /// The milliseconds in which each socket sends at least one packet to each peer with a session, so that a translator
    /// (NAT) or a firewall in between does not forget it: half of the time after which that forgets. Less than 1,000 counts
    /// as 1,000. 0: never.
    pub keep_alive_ms: u64,
}

/// A handle of an endpoint, with its own settings. Free it with `cbrst_close`.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) endpoint: cloudburst::Endpoint,
    pub(crate) options: SendOptions,
}

/// Threads may share handles.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Endpoint>();
};

/// Opens an endpoint, which is both a sender and a receiver, and stores it in `*out`.
///
/// # Safety
///
/// `options` comes from CBRST_OPTIONS_INIT. Its strings are NUL-terminated, its keys have 32 bytes, and its arrays as
/// many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_open(
    options: *const Options,
    out: Option<&mut MaybeUninit<Option<Box<Endpoint>>>>,
) -> Status {
    guard(|| {
        let out = clear(out)?;
        // SAFETY: the caller vouches for the size. All members may be zero.
        let options = unsafe { arguments::sized("options", options) }?;
        // SAFETY: the caller vouches for what the options point to.
        let (bind, paths, fabric) = unsafe {
            (
                arguments::optional_text("bind", options.bind)?,
                arguments::optional_text("paths", options.paths)?,
                arguments::optional_text("fabric", options.fabric)?,
            )
        };
        // SAFETY: the caller vouches for the keys.
        let security = unsafe { security(&options) }?;
        let mut builder = cloudburst::Endpoint::builder().security(security);
        if let Some(bind) = bind {
            builder = builder.bind(arguments::address("bind", bind)?);
        }
        // SAFETY: the caller vouches for the array, and for the strings in it.
        let known_as = unsafe {
            arguments::array("known_as", options.known_as, "known_as_len", options.known_as_len)?
                .iter()
                .map(|known| arguments::address("known_as", arguments::text("known_as", *known)?))
                .collect::<Result<Vec<_>, _>>()?
        };
        builder = builder.known_as(known_as);
        if let Some(paths) = paths {
            let paths: PathMap = paths.parse().map_err(|error| not_opened(&error))?;
            builder = builder.paths(paths);
        }
        if options.keep_alive_ms > 0 {
            builder = builder.keep_alive(Duration::from_millis(options.keep_alive_ms));
        }
        let mut config = Config::default();
        if options.capacity > 0 {
            config.capacity = options.capacity.into();
        }
        if let Some(fabric) = fabric {
            config.fabric = fabric.parse().map_err(|error: ConfigError| not_opened(&error))?;
        }
        if options.mtu > 0 {
            config.mtu = options.mtu;
        }
        if options.deadline_ms > 0 {
            config.deadline = Duration::from_millis(options.deadline_ms);
        }
        let endpoint = builder.config(config).build().map_err(|error| not_opened(&error))?;
        out.write(Some(Box::new(Endpoint { endpoint, options: SendOptions::default() })));
        Ok(())
    })
}

/// How peers are authenticated.
///
/// # Safety
///
/// The keys of the options have 32 bytes each.
unsafe fn security(options: &Options) -> Result<Security, Failure> {
    match (options.key.is_null(), options.trusted_network) {
        (false, false) => {
            // SAFETY: the caller vouches for the keys.
            unsafe { keys(options.key, options.also_accept, options.also_accept_len) }
        }
        (true, false) => Err(Failure::invalid("neither `key` nor `trusted_network` is set")),
        (false, true) => Err(Failure::invalid("both `key` and `trusted_network` are set")),
        (true, true) if options.also_accept_len > 0 => {
            Err(Failure::invalid("both `also_accept` and `trusted_network` are set"))
        }
        (true, true) => Ok(Security::trusted_network()),
    }
}

/// The keys of an endpoint.
///
/// # Safety
///
/// `key` is NULL or points to 32 bytes, and `also_accept` to `also_accept_len` keys.
unsafe fn keys(
    key: *const u8,
    also_accept: *const [u8; 32],
    also_accept_len: usize,
) -> Result<Security, Failure> {
    // SAFETY: a key has 32 bytes, any of which are fine, and needs no alignment.
    let key = present("key", unsafe { key.cast::<[u8; 32]>().as_ref() })?;
    // SAFETY: the caller vouches for the array.
    let others = unsafe {
        arguments::array("also_accept", also_accept, "also_accept_len", also_accept_len)
    }?;
    Ok(others.iter().fold(Security::pre_shared(*key), |keys, key| keys.also_accept(*key)))
}

/// Changes the keys while the endpoint, with all its handles, is in use: handshakes that begin from now on use
/// `key`, and those of peers may begin with `key` or with one of the `also_accept_len` keys at `also_accept`. Open
/// sessions and everything under way go on.
///
/// To replace a key without a failed message, do each of these steps on all endpoints before the next one: accept the
/// new key as well, begin with it and accept the old one, drop the old one.
///
/// # Safety
///
/// `key` points to 32 bytes, and `also_accept` to `also_accept_len` times 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_set_security(
    endpoint: Option<&Endpoint>,
    key: *const u8,
    also_accept: *const [u8; 32],
    also_accept_len: usize,
) -> Status {
    guard(|| {
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the keys.
        endpoint.set_security(unsafe { keys(key, also_accept, also_accept_len) }?);
        Ok(())
    })
}

fn not_opened(error: &dyn Error) -> Failure {
    Failure::new(Status::CbrstNotOpened, error.to_string())
}

/// The priority of messages, calls and replies that are sent through a handle from cbrst_open.
pub const CBRST_DEFAULT_PRIORITY: u8 = 4;
const _: () = assert!(CBRST_DEFAULT_PRIORITY == SendOptions::DEFAULT_PRIORITY);

/// Stores in `*out` another handle of the endpoint. Its messages, calls, connects and replies to requests
/// that it receives must end within `deadline_ms` milliseconds (0: `deadline_ms` of the options) and have the priority
/// `priority`, from 0, the least urgent, to 7; the default is CBRST_DEFAULT_PRIORITY.
///
/// The endpoint lives until all its handles are closed.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_with(
    endpoint: Option<&Endpoint>,
    deadline_ms: u64,
    priority: u8,
    out: Option<&mut MaybeUninit<Option<Box<Endpoint>>>>,
) -> Status {
    guard(|| {
        let out = clear(out)?;
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        if priority > SendOptions::MAX_PRIORITY {
            return Err(Failure::invalid(format!("`priority` is {priority}: expected 0 to 7")));
        }
        let mut options = SendOptions::default().priority(priority);
        options.deadline = (deadline_ms > 0).then(|| Duration::from_millis(deadline_ms));
        out.write(Some(Box::new(Endpoint { endpoint: endpoint.clone(), options })));
        Ok(())
    })
}

/// Writes the address that peers send to, as a NUL-terminated string, to the `len` bytes at `text`;
/// CBRST_ADDRESS_LEN bytes always suffice.
///
/// # Safety
///
/// `text` points to `len` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_local_address(
    endpoint: Option<&Endpoint>,
    text: *mut c_char,
    len: usize,
) -> Status {
    guard(|| {
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the buffer.
        unsafe { write_text(&endpoint.local_addr().to_string(), text, len) }
    })
}

/// Resolves a name with a port, such as cache-7.example:7000, and writes the address as `cbrst_local_address`
/// does. Takes as long as the system's resolver does: resolve a peer once, not for each message. Returns
/// CBRST_NO_ADDRESS if the name has no address that the endpoint can send to.
///
/// # Safety
///
/// `name` points to a NUL-terminated string, and `text` to `len` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_resolve(
    endpoint: Option<&Endpoint>,
    name: *const c_char,
    text: *mut c_char,
    len: usize,
) -> Status {
    guard(|| {
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the string.
        let name = unsafe { arguments::text("name", name) }?;
        let found = endpoint.block_on(endpoint.resolve(name));
        let address = found.map_err(|error| Failure::new(Status::CbrstNoAddress, error))?;
        // SAFETY: the caller vouches for the buffer.
        unsafe { write_text(&address.to_string(), text, len) }
    })
}

/// The size in bytes of a buffer for any address as text, including the terminating NUL.
pub const CBRST_ADDRESS_LEN: usize = 72;

/// # Safety
///
/// `to` is NULL or points to `len` writable bytes.
unsafe fn write_text(text: &str, to: *mut c_char, len: usize) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::invalid("`text` is NULL"));
    }
    if len <= text.len() {
        let needed = text.len() + 1;
        return Err(Failure::invalid(format!("`len` is {len}, but {text} needs {needed}")));
    }
    // SAFETY: there is room for the text and the zero byte, and they cannot overlap.
    unsafe {
        text.as_ptr().copy_to_nonoverlapping(to.cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Opens a session with `peer`, an address or a name, so that the first message need not wait for the handshake.
///
/// # Safety
///
/// `peer` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_connect(endpoint: Option<&Endpoint>, peer: *const c_char) -> Status {
    guard(|| {
        let Endpoint { endpoint, options } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the string.
        let peer = unsafe { arguments::peer("peer", peer) }?;
        endpoint.connect(peer).options(*options).wait()?;
        Ok(())
    })
}

/// Sends a message of `len` bytes to `peer`, an address or a name, and waits until the peer has it: CBRST_OK means
/// that the message is in the queue of the receiver's application, exactly once, byte for byte.
///
/// # Safety
///
/// `peer` points to a NUL-terminated string. `data` points to `len` bytes, or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_send(
    endpoint: Option<&Endpoint>,
    peer: *const c_char,
    data: *const c_void,
    len: usize,
) -> Status {
    guard(|| {
        let Endpoint { endpoint, options } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the string, and for data and length.
        let (peer, bytes) =
            unsafe { (arguments::peer("peer", peer)?, arguments::bytes(data, len)?) };
        endpoint.send(peer, Bytes::copy_from_slice(bytes)).options(*options).wait()?;
        Ok(())
    })
}

/// Waits for the next message and stores it in `*out`. Returns CBRST_TIMED_OUT if none arrives within
/// `timeout_ms` milliseconds; a negative number means no limit. Returns CBRST_CLOSED after `cbrst_shutdown`,
/// once all messages have been taken.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_recv(
    endpoint: Option<&Endpoint>,
    timeout_ms: i64,
    out: Option<&mut MaybeUninit<Option<Box<Message>>>>,
) -> Status {
    guard(|| {
        let out = clear(out)?;
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        let message = came(endpoint.recv(), "message", timeout_ms)?;
        out.write(Some(Box::new(Message::new(message.peer, message.bytes))));
        Ok(())
    })
}

/// What arrives within `timeout_ms` milliseconds; a negative number means no limit.
fn came<T: Send + Sync + 'static>(
    receive: Operation<Receive<T>>,
    what: &str,
    timeout_ms: i64,
) -> Result<T, Failure> {
    let came = match u64::try_from(timeout_ms) {
        Ok(limit) => receive.wait_for(Duration::from_millis(limit)).ok_or_else(|| {
            Failure::new(Status::CbrstTimedOut, format!("no {what} arrived within {timeout_ms} ms"))
        })?,
        Err(_) => receive.wait(),
    };
    came.map_err(|closed| Failure::new(Status::CbrstClosed, closed))
}

/// Waits for the next request and stores it in `*out`, with the same time limit as `cbrst_recv`. Returns
/// CBRST_CLOSED as soon as `cbrst_shutdown` begins.
///
/// A service calls this and `cbrst_reply` in a loop, in one thread for each request that it handles at a
/// time.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_recv_request(
    endpoint: Option<&Endpoint>,
    timeout_ms: i64,
    out: Option<&mut MaybeUninit<Option<Box<Request>>>>,
) -> Status {
    guard(|| {
        let out = clear(out)?;
        let Endpoint { endpoint, options } = present("endpoint", endpoint)?;
        let request = came(endpoint.recv_request(), "request", timeout_ms)?;
        out.write(Some(Box::new(Request::new(request, *options))));
        Ok(())
    })
}

/// Shuts the endpoint down, with all its handles: accepts no new messages, calls or requests, waits at most
/// `within_ms` milliseconds for those under way, and stops. Returns CBRST_TIMED_OUT if some had not ended by
/// then. Other functions that wait then return.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_shutdown(endpoint: Option<&Endpoint>, within_ms: u64) -> Status {
    guard(|| {
        let Endpoint { endpoint, .. } = present("endpoint", endpoint)?;
        if endpoint.blocking_shutdown(Duration::from_millis(within_ms)) {
            return Ok(());
        }
        let text = format!("some messages or calls had not ended within {within_ms} ms");
        Err(Failure::new(Status::CbrstTimedOut, text))
    })
}

/// Frees a handle. Freeing the last one stops the endpoint at once. No other thread may be using the handle.
/// Messages and requests that came from it stay valid. Does nothing with NULL.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_close(endpoint: Option<Box<Endpoint>>) {
    guard(|| {
        drop(endpoint);
        Ok(())
    });
}
