//! Why bytes are not a frame.

use super::id::TransferId;
use super::limits::VERSION;
use bytes::TryGetError;

/// Why bytes are not a frame. The peer is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is shorter than its fields.
    #[error("the next field of a frame has {expected} bytes, and {got} are left")]
    TooShort {
        /// Bytes left in the frame.
        got: usize,
        /// Bytes of the next field.
        expected: usize,
    },
    /// The frame is longer than its fields.
    #[error("a frame has {extra} bytes after its fields")]
    TooLong {
        /// Bytes after the fields.
        extra: usize,
    },
    /// The frame does not begin with `CBF`.
    #[error("not a frame of the file protocol")]
    Magic,
    /// The frame has another version. Its head can be read, so the peer can be answered.
    #[error("version {got} of the file protocol, expected {VERSION}")]
    Version {
        /// The transfer that the frame belongs to.
        transfer: TransferId,
        /// The version of the frame.
        got: u8,
    },
    /// A field has an invalid value.
    #[error("field `{field}` is {got}")]
    Undefined {
        /// The field.
        field: &'static str,
        /// Its value.
        got: u64,
    },
}

impl From<TryGetError> for FrameError {
    fn from(TryGetError { requested, available }: TryGetError) -> Self {
        Self::TooShort { got: available, expected: requested }
    }
}

/// Checks that the value `got` of a field is in the range of `min` to `max`.
pub(super) const fn within(
    field: &'static str,
    got: u64,
    min: u64,
    max: u64,
) -> Result<(), FrameError> {
    if min <= got && got <= max { Ok(()) } else { Err(FrameError::Undefined { field, got }) }
}
