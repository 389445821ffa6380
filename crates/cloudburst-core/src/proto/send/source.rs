//! The source of a message: its bytes, and the symbols and digests made from them. Nothing here
//! depends on the receiver, or on its progress.

use crate::code::{Code, Encoder, Kernel};
use crate::id::{Digest, MessageId};
use crate::proto::layout::Layout;
use crate::wire::keys::DigestKey;
use crate::wire::symbol::NO_AGE;
use crate::wire::{Role, SymbolHeader};
use bytes::Bytes;

/// The maximum capacity for digests that a message that has ended leaves to another, which may have
/// fewer.
const KEPT_DIGESTS: usize = 64;
/// The maximum capacity that it leaves for the last symbols of a block, in bytes: two symbols of
/// about 9,000.
const KEPT_BYTES: usize = 18 << 10;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) id: MessageId,
    pub(super) role: Role,
    pub(super) layout: Layout,
    pub(super) code: Code,
    bytes: Bytes,
    /// Blocks under way.
    blocks: Vec<SourceBlock>,
    /// Digests of all blocks that were ever begun, by block number.
    digests: Vec<Digest>,
    /// Digests of the message as it was cut before, of each cut all of whose blocks had begun. The
    /// receiver may have completed any of them.
    earlier_cuts: Vec<Digest>,
    /// Memory of blocks that have ended, for reuse.
    memory: Vec<Vec<u8>>,
}

/// One block, ready to be encoded.
#[derive(Debug)]
pub(super) struct SourceBlock {
    pub(super) index: u32,
    pub(super) encoder: Encoder,
    pub(super) digest: Digest,
}

impl SourceBlock {
    /// The ESI to begin with.
    ///
    /// If symbols are drawn by their ESIs, blocks that all began with ESI 0 would share its luck,
    /// good or bad; the digest is as good as a random start.
    pub(super) fn first_symbol(&self) -> u32 {
        let [a, b, c, d, ..] = self.digest.0;
        // From ESI 0, the paper's code needs 117 symbols for 64; the mean over other starts is 69.
        if self.encoder.code().is_systematic() { 0 } else { u32::from_be_bytes([a, b, c, d]) }
    }
}

impl Source {
    /// A message whose symbols are at most `max_symbol` bytes long.
    pub(super) fn new(
        id: MessageId,
        role: Role,
        bytes: Bytes,
        code: Code,
        max_symbol: usize,
    ) -> Self {
        let layout = Layout::fit(bytes.len(), max_symbol);
        let blocks = Vec::new();
        let digests = Vec::new();
        let earlier_cuts = Vec::new();
        let memory = Vec::new();
        Self { id, role, layout, code, bytes, blocks, digests, earlier_cuts, memory }
    }

    /// The length of the application's data, without the header of a call.
    pub(super) const fn payload(&self) -> usize {
        self.layout.length().saturating_sub(self.role.header_len())
    }

    /// Reuses the memory of a message that has ended and was [cleared](Self::clear). This one has
    /// not begun.
    pub(super) fn reuse(&mut self, ended: Self) {
        self.blocks = ended.blocks;
        self.digests = ended.digests;
        self.memory = ended.memory;
    }

    /// Clears everything but the memory that another message may use.
    pub(super) fn clear(&mut self) {
        self.start_over();
        self.bytes = Bytes::new();
        self.memory.retain(|memory| memory.capacity() <= KEPT_BYTES);
        if self.digests.capacity() > KEPT_DIGESTS {
            self.digests = Vec::new();
        }
    }

    /// The bytes of the message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The length of the message.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Prepares block `index`. The first time, which comes in the order of blocks, computes its
    /// digest with `key`.
    pub(super) fn begin(&mut self, index: u32, key: &DigestKey) -> Option<&SourceBlock> {
        let at = index as usize;
        let shape = self.layout.shape(at)?;
        let bytes = self.bytes.slice(self.layout.bytes(at)?);
        if at == self.digests.len() {
            self.digests.push(key.block(self.id, index, &bytes));
        }
        let digest = *self.digests.get(at)?;
        let kernel = Kernel::fastest();
        let code = self.code;
        let memory = self.memory.pop().unwrap_or_default();
        let encoder = Encoder::with_memory(kernel, code, shape, bytes, &digest.0, memory).ok()?;
        self.blocks.push(SourceBlock { index, encoder, digest });
        self.blocks.last()
    }

    /// Block `index`, if it is under way.
    pub(super) fn block(&self, index: u32) -> Option<&SourceBlock> {
        self.blocks.iter().find(|block| block.index == index)
    }

    /// Numbers of the blocks under way.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.index)
    }

    /// Releases block `index`, which is not needed any more unless it is begun again.
    pub(super) fn end(&mut self, index: u32) {
        if let Some(at) = self.blocks.iter().position(|block| block.index == index) {
            self.memory.push(self.blocks.remove(at).encoder.into_memory());
        }
    }

    /// Forgets all blocks that were begun, and their digests, which depend on the session.
    pub(super) fn start_over(&mut self) {
        self.earlier_cuts.clear();
        self.forget_blocks();
    }

    fn forget_blocks(&mut self) {
        self.memory.extend(self.blocks.drain(..).map(|block| block.encoder.into_memory()));
        self.digests.clear();
    }

    /// Cuts the message again, into symbols of at most `max_symbol` bytes, which are smaller than the
    /// present ones. `key` is that of the session, if packets may have been sent in one.
    pub(super) fn cut_again(&mut self, max_symbol: usize, key: Option<&DigestKey>) {
        if let Some(key) = key
            && self.digests.len() == self.layout.blocks()
        {
            self.earlier_cuts.push(key.message(self.id, &self.digests));
        }
        self.forget_blocks();
        self.layout = Layout::fit(self.bytes.len(), max_symbol);
    }

    /// Whether the receiver may have the message as it was cut before.
    pub(super) const fn has_earlier_cuts(&self) -> bool {
        !self.earlier_cuts.is_empty()
    }

    /// Whether `digest` is that of block `index`, which was begun.
    pub(super) fn has_block(&self, index: u32, digest: Digest) -> bool {
        self.digests.get(index as usize) == Some(&digest)
    }

    /// Whether `digest` is that of the whole message, in a cut that was sent: only then does its
    /// receiver have all of it.
    pub(super) fn is(&self, digest: Digest, key: &DigestKey) -> bool {
        let is_begun = self.digests.len() == self.layout.blocks();
        is_begun && key.message(self.id, &self.digests) == digest
            || self.earlier_cuts.contains(&digest)
    }

    /// The header fields that all symbols of a block have in common. `low_watermark` is the oldest
    /// unfinished message.
    pub(super) fn symbol_header(
        &self,
        block: &SourceBlock,
        low_watermark: MessageId,
    ) -> SymbolHeader {
        let age = self.id.0.saturating_sub(low_watermark.0);
        SymbolHeader {
            path_number: 0,
            message: self.id,
            length: self.layout.length() as u32,
            age: u32::try_from(age).map_or(NO_AGE, |age| age.min(NO_AGE)),
            block: block.index,
            symbol: 0,
            symbol_size: self.layout.symbol_size() as u16,
            code: self.code.to_wire(),
            unscheduled: 0,
        }
    }
}
