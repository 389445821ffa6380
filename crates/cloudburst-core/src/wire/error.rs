//! Why bytes are not a valid packet.

/// Why bytes are not a valid packet. The peer or a stranger is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The packet ends before its fields do.
    #[error("packet is too short: its fields need {needed} bytes, and it has {got}")]
    TooShort {
        /// Bytes up to the end of the truncated field.
        needed: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The packet continues after its last field.
    #[error("packet is too long: its fields end after {expected} bytes, and it has {got}")]
    TooLong {
        /// Bytes that the fields take.
        expected: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The version nibble is not that of this endpoint.
    #[error("packet has version {got}, and this endpoint speaks version {expected}")]
    Version {
        /// The version that this endpoint speaks.
        expected: u8,
        /// The version in the packet.
        got: u8,
    },
    /// The kind nibble, or a number that stands for an enumerated value, is not defined.
    #[error("packet field `{field}` has the undefined value {got}")]
    Undefined {
        /// The field's name in the specification.
        field: &'static str,
        /// The value in the packet.
        got: u8,
    },
}
