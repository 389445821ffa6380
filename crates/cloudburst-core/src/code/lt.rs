//! LT encoding (III-A): a symbol is the XOR of the source symbols in its index set.

use arrayvec::ArrayVec;

use super::block::{MAX_SOURCE_SYMBOLS, SourceBlock};
use super::degree::Degree;
use super::draw::{LT_INDEX_SETS, generator};
use super::index_set::IndexSet;
use super::kernel::Kernel;

/// Writes the index set and the payload of symbol `id`. If `systematic`, ids below n are the source
/// symbols.
pub(super) fn encode(
    kernel: Kernel,
    degree: Degree,
    systematic: bool,
    block: &SourceBlock,
    id: u32,
    index_set: &mut [u8],
    payload: &mut [u8],
) {
    let n = block.shape.source_symbols();
    let set = if systematic && (id as usize) < n {
        IndexSet::single(id as usize)
    } else {
        degree.draw(n, &mut generator(LT_INDEX_SETS, id))
    };
    set.write(index_set);
    let mut indices = set.iter();
    if let Some(first) = indices.next() {
        payload.copy_from_slice(block.symbol(first));
    }
    let others: ArrayVec<&[u8], MAX_SOURCE_SYMBOLS> =
        indices.map(|index| block.symbol(index)).collect();
    kernel.add(payload, &others);
}
