//! Why bytes are not a packet.

/// Why bytes are not a packet of ours. The blame is the peer's, or a stranger's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The packet ends before its fields do.
    #[error("packet is too short: its fields need {needed} bytes, {got} came")]
    TooShort {
        /// Bytes up to the end of the field that was cut.
        needed: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The packet goes on after its last field.
    #[error("packet is too long: its fields end after {expected} bytes, {got} came")]
    TooLong {
        /// Bytes that the fields take.
        expected: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The version nibble is not ours.
    #[error("packet has version {got}, this endpoint speaks version {expected}")]
    Version {
        /// The version that this endpoint speaks.
        expected: u8,
        /// The version that came.
        got: u8,
    },
    /// The kind nibble, or a number that stands for an enumerated value, is not defined.
    #[error("packet field `{field}` has the undefined value {got}")]
    Undefined {
        /// The field's name in the specification.
        field: &'static str,
        /// The value that came.
        got: u8,
    },
}
