//! Growth of memory that is kept from block to block.

/// Makes memory at least this long, without excess capacity.
pub(super) fn grow(memory: &mut Vec<u8>, len: usize) {
    if let Some(more) = len.checked_sub(memory.len()) {
        memory.reserve_exact(more);
        memory.resize(len, 0);
    }
}
