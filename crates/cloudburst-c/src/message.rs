//! Received messages and responses.

use cloudburst::Bytes;
use core::ffi::{c_char, c_void};
use core::{fmt, ptr};
use std::ffi::CString;

/// A message or a response that has arrived. Free it with `cbrst_message_free`.
#[derive(Debug)]
pub struct Message {
    peer: CString,
    bytes: Bytes,
}

impl Message {
    pub(crate) fn new(peer: impl fmt::Display, bytes: Bytes) -> Self {
        let peer = peer.to_string();
        let peer = CString::new(peer).expect("neither addresses nor strings of C have a zero byte");
        Self { peer, bytes }
    }
}

/// The address of the sender of a message, in the form that `cbrst_send` and `cbrst_call` take; of a response, the
/// peer that was called, as it was given. NULL for NULL. Valid until the message is freed.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_message_peer(message: Option<&Message>) -> *const c_char {
    message.map_or(ptr::null(), |message| message.peer.as_ptr())
}

/// The bytes of a message, `cbrst_message_len` of them. NULL for NULL. If there are no bytes, the pointer
/// must not be dereferenced. Valid until the message is freed.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_message_data(message: Option<&Message>) -> *const c_void {
    message.map_or(ptr::null(), |message| message.bytes.as_ptr().cast())
}

/// The number of bytes of a message. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_message_len(message: Option<&Message>) -> usize {
    message.map_or(0, |message| message.bytes.len())
}

/// Frees a message, and with it the memory that `cbrst_message_peer` and `cbrst_message_data` have returned.
/// Does nothing with NULL.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_message_free(message: Option<Box<Message>>) {
    drop(message);
}
