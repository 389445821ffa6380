//! One message on its way in: its blocks and their decoders.

use crate::code::{Code, Decoder, Reception};
use crate::id::{Digest, MessageId, PathId};
use crate::proto::layout::Layout;
use crate::time::Instant;
use crate::wire::keys::DigestKey;
use crate::wire::{Arrivals, SymbolHeader};
use bytes::Bytes;

/// Paths of one message whose arrivals are counted; what comes on others is counted nowhere.
const MAX_PATHS: usize = 16;
/// How often a message may decode to something else than its digest says.
const MAX_CORRUPT: u8 = 2;

#[derive(Debug)]
pub(super) struct Incoming {
    layout: Layout,
    code: Code,
    blocks: Vec<Block>,
    /// The message's bytes, once one of several blocks is there.
    bytes: Vec<u8>,
    done: usize,
    corrupt: u8,
    pub(super) arrivals: Vec<Arrivals>,
    /// Symbols that told something new.
    pub(super) useful: u32,
    pub(super) last_progress: Instant,
}

#[derive(Debug)]
enum Block {
    Unseen,
    Decoding(Box<Decoder>, Digest),
    Done(Digest),
}

/// What a symbol did to its message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It contradicts what the message's first symbol said, or makes no sense: ignored.
    Nonsense,
    /// Its block needs this many more.
    Needs(usize),
    /// Its block is decoded and verified, others are not.
    BlockDone(Digest),
    /// All blocks are decoded and verified.
    MessageDone,
    /// The block matched its digest neither this time nor before.
    Corrupt,
}

impl Incoming {
    /// A message as its first symbol describes it; `None` where the description makes no sense.
    pub(super) fn new(now: Instant, header: &SymbolHeader) -> Option<Self> {
        let length = usize::try_from(header.length).ok()?;
        let layout = Layout::new(length, usize::from(header.symbol_size))?;
        let code = Code::from_wire(header.code)?;
        Some(Self {
            layout,
            code,
            blocks: Vec::new(),
            bytes: Vec::new(),
            done: 0,
            corrupt: 0,
            arrivals: Vec::new(),
            useful: 0,
            last_progress: now,
        })
    }

    /// Bytes that receiving the message takes at most: its blocks, its decoders, its bookkeeping.
    pub(super) fn memory(&self) -> usize {
        let symbols = self.layout.source_symbols() * self.layout.symbol_size();
        let copies = if self.layout.blocks() == 1 { 1 } else { 2 };
        symbols * copies + self.layout.blocks() * size_of::<Block>() + size_of::<Self>()
    }

    pub(super) fn length(&self) -> usize {
        self.layout.length()
    }

    /// Takes an authentic symbol.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        message: MessageId,
        header: &SymbolHeader,
        index_set: &[u8],
        payload: &[u8],
        key: &DigestKey,
    ) -> Step {
        let agrees = usize::from(header.symbol_size) == self.layout.symbol_size()
            && header.length == self.layout.length() as u64
            && Code::from_wire(header.code) == Some(self.code);
        let index = header.block as usize;
        let (Some(shape), Some(range)) = (self.layout.shape(index), self.layout.bytes(index))
        else {
            return Step::Nonsense;
        };
        if !agrees {
            return Step::Nonsense;
        }
        if self.blocks.is_empty() {
            self.blocks.resize_with(self.layout.blocks(), || Block::Unseen);
        }
        let block = &mut self.blocks[index];
        if let Block::Unseen = block {
            *block = Block::Decoding(Box::new(Decoder::new(self.code, shape)), header.digest);
        }
        let Block::Decoding(decoder, digest) = block else {
            let Block::Done(digest) = *block else { return Step::Nonsense };
            return Step::BlockDone(digest);
        };
        if *digest != header.digest {
            return Step::Nonsense;
        }
        match decoder.receive(header.symbol, index_set, payload) {
            Err(_) => return Step::Nonsense,
            Ok(Reception::Redundant) => {}
            Ok(Reception::Innovative) => {
                self.last_progress = now;
                self.useful += 1;
            }
            Ok(Reception::Complete) => {
                self.last_progress = now;
                self.useful += 1;
                let decoded = decoder.block().unwrap_or_default();
                if key.block(message, header.block, &decoded[..range.len()]) != *digest {
                    decoder.reset(self.code, shape);
                    self.corrupt += 1;
                    let needed = decoder.needed();
                    return if self.corrupt < MAX_CORRUPT {
                        Step::Needs(needed)
                    } else {
                        Step::Corrupt
                    };
                }
                let digest = *digest;
                return self.finish(index, digest);
            }
        }
        Step::Needs(decoder.needed())
    }

    fn finish(&mut self, index: usize, digest: Digest) -> Step {
        let block = core::mem::replace(&mut self.blocks[index], Block::Done(digest));
        if let Block::Decoding(decoder, _) = block
            && let Some(decoded) = decoder.into_block()
            && let Some(range) = self.layout.bytes(index)
        {
            if self.layout.blocks() == 1 {
                self.bytes = decoded;
                self.bytes.truncate(range.len());
            } else {
                self.bytes.resize(self.layout.length(), 0);
                let len = range.len();
                self.bytes[range].copy_from_slice(&decoded[..len]);
            }
        }
        self.done += 1;
        if self.done == self.layout.blocks() { Step::MessageDone } else { Step::BlockDone(digest) }
    }

    /// Whether all blocks are decoded and verified.
    pub(super) fn is_done(&self) -> bool {
        self.done == self.layout.blocks()
    }

    pub(super) fn count_arrival(&mut self, path: PathId) {
        if let Some(on) = self.arrivals.iter_mut().find(|on| on.path == path) {
            on.count = on.count.saturating_add(1);
        } else if self.arrivals.len() < MAX_PATHS {
            self.arrivals.push(Arrivals { path, count: 1 });
        }
    }

    /// The digest of the whole message, which is done.
    pub(super) fn digest(&self, message: MessageId, key: &DigestKey) -> Digest {
        let digests: Vec<Digest> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Done(digest) => Some(*digest),
                Block::Unseen | Block::Decoding(..) => None,
            })
            .collect();
        key.message(message, &digests)
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}
