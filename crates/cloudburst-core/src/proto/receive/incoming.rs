//! One message on its way in: its blocks and their decoders.

use super::answers::ArrivalCounts;
use super::pool::Pool;
use super::probes::Probed;
use super::pulling::Pulling;
use crate::code::{Code, Decoder, Reception};
use crate::id::{Digest, MessageId};
use crate::proto::layout::Layout;
use crate::proto::limits::{MAX_BLOCKS_IN_FLIGHT as MAX_DECODING, MAX_CORRUPT};
use crate::time::Instant;
use crate::wire::keys::DigestKey;
use crate::wire::symbol::{SYMBOL_OVERHEAD, UNASKED_LEN};
use crate::wire::{Prefix, Role, SymbolHeader};
use bytes::Bytes;
use core::time::Duration;

/// Bytes by which the buffer of a message may exceed twice its length.
const ROUNDING: usize = 1024;
/// Blocks for which a message that is over leaves room to another one, which may have fewer.
const KEPT_BLOCKS: usize = 16;

#[derive(Debug)]
pub(super) struct Incoming {
    layout: Layout,
    code: Code,
    pub(super) role: Role,
    blocks: Vec<Block>,
    /// The message's bytes, once one of several blocks is there.
    bytes: Vec<u8>,
    done: usize,
    decoding: usize,
    corrupt: u8,
    pub(super) arrivals: ArrivalCounts,
    pub(super) pulled: bool,
    /// The state of pulls, if the message is pulled.
    pub(super) pulling: Option<Box<Pulling>>,
    /// The probe that is still to be answered, if the message is not pulled.
    pub(super) probed: Option<Probed>,
    /// The entry of this message in the timers of pulls and probes.
    pub(super) pull_timer: Option<Instant>,
    pub(super) last_progress: Instant,
    /// When the last symbol came after the message was whole.
    pub(super) last_late: Instant,
    /// Where the receiver's deadlines have it.
    pub(super) timer: Option<Instant>,
    /// Where the queue of those that wait for the application has it.
    pub(super) place: Option<u64>,
    began: Instant,
}

#[derive(Debug)]
enum Block {
    Unseen,
    Decoding(Box<Decoder>),
    Done(Digest),
}

/// What a symbol did to its message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its block needs `needed` more.
    Needs { needed: usize, useful: bool },
    /// Its block is decoded and verified, others are not.
    BlockDone { digest: Digest, useful: bool },
    /// All blocks are decoded and verified, by this symbol.
    MessageDone,
    /// Its block was decoded and did not match its digest: it is collected again.
    Again,
    /// The same, once too often.
    Corrupt,
}

impl Incoming {
    /// A message as its first symbol describes it; `None` where the description makes no sense.
    pub(super) fn new(now: Instant, prefix: &Prefix, header: &SymbolHeader) -> Option<Self> {
        let length = usize::try_from(header.length).ok()?;
        let layout = Layout::new(length, usize::from(header.symbol_size))?;
        let code = Code::from_wire(header.code)?;
        Some(Self {
            layout,
            code,
            role: prefix.role,
            blocks: Vec::new(),
            bytes: Vec::new(),
            done: 0,
            decoding: 0,
            corrupt: 0,
            arrivals: ArrivalCounts::default(),
            pulled: prefix.pulled,
            pulling: prefix.pulled.then(Box::default),
            probed: None,
            pull_timer: None,
            last_progress: now,
            last_late: now,
            timer: None,
            place: None,
            began: now,
        })
    }

    /// Bytes that receiving the message takes at most: its bytes, its decoders, its bookkeeping.
    pub(super) fn memory(&self) -> usize {
        let blocks = self.layout.blocks();
        let bytes = if blocks == 1 { 0 } else { self.layout.length() };
        let decoder = self.layout.shape(0).map_or(0, |shape| Decoder::memory(self.code, shape));
        let decoders = decoder * blocks.min(MAX_DECODING);
        let pulling = if self.pulled { size_of::<Pulling>() } else { 0 };
        bytes + decoders + blocks * size_of::<Block>() + size_of::<Self>() + pulling
    }

    pub(super) fn length(&self) -> usize {
        self.layout.length()
    }

    /// Whether a symbol with this prefix has the same flags as the first one of the message.
    pub(super) fn agrees_with(&self, prefix: &Prefix) -> bool {
        (self.role, self.pulled) == (prefix.role, prefix.pulled)
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Symbols that block `index` needs; `None` if there is no such block or it is done.
    pub(super) fn needed(&self, index: u32) -> Option<usize> {
        let shape = self.layout.shape(index as usize)?;
        match self.blocks.get(index as usize) {
            Some(Block::Done(_)) => None,
            Some(Block::Decoding(decoder)) => Some(decoder.needed()),
            Some(Block::Unseen) | None => Some(shape.source_symbols()),
        }
    }

    /// The digest of block `index`, if it is done.
    pub(super) fn block_digest(&self, index: u32) -> Option<Digest> {
        match self.blocks.get(index as usize) {
            Some(Block::Done(digest)) => Some(*digest),
            Some(Block::Unseen | Block::Decoding(_)) | None => None,
        }
    }

    /// The state of pulls and the layout, if the message is pulled.
    pub(super) fn pulling(&mut self) -> Option<(&mut Pulling, &Layout)> {
        Some((self.pulling.as_deref_mut()?, &self.layout))
    }

    /// The length of one of its packets in bytes, header tags aside.
    pub(super) fn packet_len(&self) -> usize {
        let n = self.layout.shape(0).map_or(1, |shape| shape.source_symbols());
        let unasked = if self.pulled { UNASKED_LEN } else { 0 };
        SYMBOL_OVERHEAD + unasked + self.code.index_set_len(n) + self.layout.symbol_size()
    }

    /// Takes an authentic symbol. `None`: it contradicts what the message's first symbol said, or
    /// makes no sense, and changes nothing.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        header: &SymbolHeader,
        index_set: &[u8],
        payload: &[u8],
        key: &DigestKey,
        pool: &mut Pool,
    ) -> Option<Step> {
        let agrees = usize::from(header.symbol_size) == self.layout.symbol_size()
            && header.length as usize == self.layout.length()
            && Code::from_wire(header.code) == Some(self.code);
        let index = header.block as usize;
        let (shape, range) = (self.layout.shape(index)?, self.layout.bytes(index)?);
        if !agrees {
            return None;
        }
        if self.blocks.is_empty() {
            self.blocks.resize_with(self.layout.blocks(), || Block::Unseen);
        }
        let block = &mut self.blocks[index];
        if let Block::Done(digest) = *block {
            return Some(Step::BlockDone { digest, useful: false });
        }
        if let Block::Unseen = block {
            // The sender keeps to the limit; one that does not must send the symbol again.
            if self.decoding == MAX_DECODING {
                return None;
            }
            *block = Block::Decoding(pool.take_decoder(now, self.code, shape));
            self.decoding += 1;
        }
        let Block::Decoding(decoder) = block else { return None };
        let reception = decoder.receive(header.symbol, index_set, payload);
        Some(match reception {
            Err(_) => {
                if decoder.work().received == 0 {
                    // Nonsense must not begin a block.
                    if let Block::Decoding(decoder) = core::mem::replace(block, Block::Unseen) {
                        pool.put_decoder(decoder);
                    }
                    self.decoding -= 1;
                }
                return None;
            }
            Ok(Reception::Redundant) => Step::Needs { needed: decoder.needed(), useful: false },
            Ok(Reception::Innovative) => {
                self.last_progress = now;
                Step::Needs { needed: decoder.needed(), useful: true }
            }
            Ok(Reception::Complete) => {
                self.last_progress = now;
                let decoded = decoder.block().unwrap_or_default();
                let bytes = &decoded[..range.len()];
                let digest = key.block(header.message, header.block, bytes);
                if decoded.ends_with(&digest.0) {
                    return Some(self.finish(now, index, digest, pool));
                }
                decoder.reset(self.code, shape);
                self.corrupt += 1;
                if self.corrupt < MAX_CORRUPT { Step::Again } else { Step::Corrupt }
            }
        })
    }

    fn finish(&mut self, now: Instant, index: usize, digest: Digest, pool: &mut Pool) -> Step {
        let block = core::mem::replace(&mut self.blocks[index], Block::Done(digest));
        if let Block::Decoding(mut decoder) = block
            && let Some(range) = self.layout.bytes(index)
        {
            let mut decoded = decoder.take_memory();
            decoded.truncate(range.len());
            if self.layout.blocks() == 1 {
                // Padding is the sender's choice, and quotas count bytes of the message.
                if decoded.capacity() > 2 * decoded.len() + ROUNDING {
                    decoded.shrink_to_fit();
                }
                self.bytes = decoded;
            } else {
                if self.bytes.capacity() == 0 {
                    self.bytes = pool.take(now, self.layout.length());
                }
                self.put_block(range.start, &decoded);
                pool.put(decoded);
            }
            pool.put_decoder(decoder);
        }
        self.decoding -= 1;
        self.done += 1;
        if self.done == self.layout.blocks() {
            Step::MessageDone
        } else {
            Step::BlockDone { digest, useful: true }
        }
    }

    /// Stores a block of several. Most are completed in order: what is appended need not be cleared
    /// before.
    fn put_block(&mut self, start: usize, block: &[u8]) {
        if let Some(place) = self.bytes.get_mut(start..start + block.len()) {
            place.copy_from_slice(block);
        } else {
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(block);
        }
    }

    /// From its first symbol to the last one that brought anything new.
    pub(super) const fn took(&self) -> Duration {
        self.last_progress.saturating_since(self.began)
    }

    /// Whether any block is decoded and verified.
    pub(super) const fn is_partial(&self) -> bool {
        self.done > 0
    }

    /// Whether all blocks are decoded and verified.
    pub(super) fn is_whole(&self) -> bool {
        self.done == self.layout.blocks()
    }

    /// When its sender last showed that it waits for the message: a symbol brought something new, or
    /// asked after what is whole.
    pub(super) fn last_wanted(&self) -> Instant {
        self.last_progress.max(self.last_late)
    }

    /// The digest of the whole message, which is done.
    pub(super) fn digest(&self, message: MessageId, key: &DigestKey) -> Digest {
        let digests = self.blocks.iter().filter_map(|block| match block {
            Block::Done(digest) => Some(digest),
            Block::Unseen | Block::Decoding(_) => None,
        });
        key.message(message, digests)
    }

    /// Takes the message, which is whole.
    pub(super) fn take_bytes(&mut self, pool: &Pool) -> Bytes {
        pool.deliver(core::mem::take(&mut self.bytes))
    }

    /// Gives what the message has been received with back to the pool.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        pool.put(core::mem::take(&mut self.bytes));
        for block in self.blocks.drain(..) {
            if let Block::Decoding(decoder) = block {
                pool.put_decoder(decoder);
            }
        }
        if self.blocks.capacity() > KEPT_BLOCKS {
            self.blocks = Vec::new();
        }
        self.arrivals.clear();
        (self.pulling, self.probed) = (None, None);
    }

    /// Uses the lists of a message that is over and [cleared](Self::clear).
    pub(super) fn inherit(&mut self, over: Self) {
        (self.blocks, self.arrivals) = (over.blocks, over.arrivals);
    }
}
