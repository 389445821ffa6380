//! Switch chips and their packet buffers.

use super::error::Refusal;

/// A chip of the table in the slides of the Cloudburst paper, whose buffers are in megabytes.
#[derive(Debug)]
pub(crate) struct Chip {
    /// Its name in the parameters.
    pub(crate) name: &'static str,
    /// Bytes of buffer, of all its MMUs together.
    pub(crate) buffer: u64,
    /// The number of memory management units (MMUs), each of which has an equal part of the buffer to itself.
    pub(crate) mmus: u64,
    /// Bytes of a cell. They are not in the slides, but from Broadcom's public SDK. None if no public
    /// source has them.
    pub(crate) cell: Option<u64>,
}

static ALL: [Chip; 5] = [
    // Buffers as the slides round them, which is below those of the chips.
    Chip { name: "bcm56538", buffer: 4_000_000, mmus: 1, cell: None },
    Chip { name: "trident+", buffer: 9_000_000, mmus: 1, cell: Some(208) },
    Chip { name: "trident2", buffer: 12_000_000, mmus: 1, cell: Some(208) },
    Chip { name: "tomahawk", buffer: 16_000_000, mmus: 4, cell: Some(208) },
    Chip { name: "tofino", buffer: 22_000_000, mmus: 1, cell: None },
];

impl Chip {
    /// Returns the chip with this name.
    ///
    /// # Errors
    ///
    /// If the name is not in the table; the error lists those that are.
    pub(crate) fn find(name: &str) -> Result<&'static Self, Refusal> {
        ALL.iter().find(|chip| chip.name == name).ok_or_else(|| Refusal::Chip {
            got: name.into(),
            known: ALL.iter().map(|chip| chip.name).collect::<Vec<_>>().join(", "),
        })
    }
}
