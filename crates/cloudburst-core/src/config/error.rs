//! The error for an invalid setting.

/// A setting with an invalid value, which the caller must change.
///
/// Crates that check settings of their own construct it, so it is not `#[non_exhaustive]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting `{field}` is {value}: it must be {expected}")]
pub struct ConfigError {
    /// The field of [`Config`](super::Config), with a dot for a field of a field, or the name of a parsed setting.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are valid.
    pub expected: &'static str,
}
