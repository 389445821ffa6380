//! Target `decoder`: symbols and lies, checked against an oracle.

mod oracle;

use self::oracle::{Rank, Row, Rows, combine};
use crate::input::Input;
use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, Reception, SymbolError};
use cloudburst_core::rng::SplitMix64;
use std::collections::BTreeSet;

/// The cost limit of one input, in coefficients of rows: the oracle eliminates n rows of n.
const BUDGET: usize = 4_000_000;
/// The cost of each step beyond its row.
const STEP: usize = 10_000;
/// The bytes of memory for solving, beyond the decoders, as documented there.
const MAX_WORKSPACE: usize = 200_000;
/// The limit of products in GF(2^8) for one check.
const MAX_PRODUCTS: usize = 200_000;

/// Reads how much memory is allocated, if the process counts it.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// The bytes allocated now.
    pub used: fn() -> usize,
    /// The most bytes allocated at once since the last `reset`.
    pub peak: fn() -> usize,
    /// Restarts `peak`.
    pub reset: fn(),
}

/// Runs a decoder through the input's symbols, lies and resets.
///
/// # Panics
///
/// If one of these does not hold:
///
/// - A malformed symbol is refused with the correct numbers and changes nothing. All others are
///   accepted.
/// - A symbol is innovative exactly if it raises the rank, and the block is complete exactly at
///   full rank; `needed` and `work` say so, and never go back.
/// - RLF-256: any n different ids below 256 complete a block.
/// - Truthful symbols decode to the source block, including padding.
/// - Lies decode to a block that agrees with every innovative symbol.
pub fn decoder(data: &[u8]) {
    run(data, None);
}

/// As [`decoder`], and memory stays within the limit of a decoder of the largest block, and of
/// solving.
///
/// # Panics
///
/// As [`decoder`], and if memory exceeds its limit.
pub fn decoder_measured(data: &[u8], gauge: Gauge) {
    run(data, Some(gauge));
}

fn run(data: &[u8], gauge: Option<Gauge>) {
    let mut input = Input::new(data);
    let mut meter = Meter { gauge, held: 0, largest: 0 };
    let mut block = Block::choose(&mut input);
    let mut decoder =
        meter.measure(block.code, block.shape, || Decoder::new(block.code, block.shape));
    let mut budget = BUDGET;
    while !input.is_empty() && budget > 0 {
        budget = budget.saturating_sub(block.cost());
        let (id, index_set, payload) = match input.u8() % 16 {
            0..=3 => block.symbol(choose_id(&mut input)),
            4..=6 => {
                // Consecutive symbols, as a sender makes them.
                let first = choose_id(&mut input);
                let count = usize::from(input.u8());
                let count = count.min(budget / block.cost());
                for id in (first..=u32::MAX).take(count) {
                    let symbol = block.symbol(id);
                    block.hand_in(&mut decoder, &mut meter, symbol);
                }
                budget -= count * block.cost();
                continue;
            }
            7 => block.again(input.u8()),
            8 => {
                let (id, index_set, mut payload) = block.symbol(choose_id(&mut input));
                let at = usize::from(input.u16()) % payload.len();
                payload[at] ^= input.u8();
                (id, index_set, payload)
            }
            9 => {
                let (id, _, payload) = block.symbol(choose_id(&mut input));
                (id, block.symbol(choose_id(&mut input)).1, payload)
            }
            10 => {
                let (_, index_set, payload) = block.symbol(choose_id(&mut input));
                (choose_id(&mut input), index_set, payload)
            }
            11 => {
                let (id, mut index_set, payload) = block.symbol(choose_id(&mut input));
                let drawn = input.bytes(index_set.len());
                index_set[..drawn.len()].copy_from_slice(drawn);
                (id, index_set, payload)
            }
            12 => {
                let (id, index_set, mut payload) = block.symbol(choose_id(&mut input));
                payload.resize(usize::from(input.u16()), 9);
                (id, index_set, payload)
            }
            13 => {
                let (id, mut index_set, payload) = block.symbol(choose_id(&mut input));
                index_set.resize(usize::from(input.u8()), 0);
                (id, index_set, payload)
            }
            14 => {
                let id = input.u32();
                let len = input.u8();
                (id, input.bytes(len.into()).to_vec(), block.payload(id))
            }
            _ => {
                block = Block::choose(&mut input);
                let code = block.code;
                let shape = block.shape;
                meter.measure(code, shape, || decoder.reset(code, shape));
                continue;
            }
        };
        block.hand_in(&mut decoder, &mut meter, (id, index_set, payload));
    }
    let whole = decoder.block().map(<[u8]>::to_vec);
    if let Some(whole) = whole {
        assert_eq!(decoder.take_memory(), whole);
    }
}

/// ESIs at boundaries: source symbols, MDS repair symbols, the first random ones, those where
/// RaptorQ's begin again, and the last.
fn choose_id(input: &mut Input<'_>) -> u32 {
    match input.u8() {
        low @ 0..=199 => low.into(),
        200..=229 => 200 + u32::from(input.u8()),
        230..=249 => input.u16().into(),
        250..=251 => u32::MAX - u32::from(input.u8()),
        252 => (1 << 24) - 128 + u32::from(input.u8()),
        _ => input.u32(),
    }
}

type Symbol = (u32, Vec<u8>, Vec<u8>);

/// One block, the symbols received, and the expected state of its decoder.
struct Block {
    code: Code,
    shape: BlockShape,
    source: Vec<u8>,
    encoder: Encoder,
    rows: Rows,
    rank: Rank,
    /// The well-formed symbols that were received.
    received: u64,
    seen: Vec<Symbol>,
    /// The row and the payload of each symbol that raised the rank.
    innovative: Vec<(Row, Vec<u8>)>,
    ids: BTreeSet<u32>,
    /// Whether all symbols that raised the rank were truthful.
    truthful: bool,
    finished: bool,
}

impl Block {
    fn choose(input: &mut Input<'_>) -> Self {
        let code = loop {
            let family = input.pick(&[0x30, 0x10, 0x20, 0x40]);
            let law = if family < 0x30 { input.u8() % 5 } else { 0 };
            let parameter = if family < 0x30 && law < 2 { input.u8().max(1) } else { 0 };
            if let Some(code) = Code::from_wire([family | law, parameter]) {
                break code;
            }
        };
        let n = 1 + usize::from(input.u8() % 128);
        let size = match input.u8() {
            small @ 0..=199 => 1 + usize::from(small) % 16,
            medium @ 200..=249 => usize::from(medium) - 183,
            _ => 1400,
        };
        let shape = BlockShape::new(n, size).expect("both are in range");
        let seed = input.u8();
        let missing = usize::from(input.u16());
        let mut rng = SplitMix64::new(seed.into());
        let mut source: Vec<u8> = (0..shape.len()).map(|_| rng.next_u64() as u8).collect();
        // Bytes missing at the end count as zeros.
        let len = shape.len().saturating_sub(missing % (2 * size));
        let data = Bytes::copy_from_slice(&source[..len]);
        source[len..].fill(0);
        let encoder = Encoder::new(code, shape, data).expect("not longer than the block");
        let rows = Rows::new(code, n);
        // The tables that blocks of RaptorQ share are made with the first repair symbol, and do not
        // belong to the decoder.
        rows.of_id(n as u32);
        Self {
            code,
            shape,
            source,
            encoder,
            rows,
            rank: Rank::new(n),
            received: 0,
            seen: Vec::new(),
            innovative: Vec::new(),
            ids: BTreeSet::new(),
            truthful: true,
            finished: false,
        }
    }

    const fn cost(&self) -> usize {
        let n = self.shape.source_symbols();
        STEP + n * n + self.shape.len() / 8
    }

    /// The truthful symbol `id`.
    fn symbol(&self, id: u32) -> Symbol {
        let n = self.shape.source_symbols();
        let mut index_set = vec![0; self.code.index_set_len(n)];
        let mut payload = vec![0xee; self.shape.symbol_size()];
        self.encoder.encode(id, &mut index_set, &mut payload);
        if self.shape.len() <= MAX_PRODUCTS / 100 {
            let row = self.rows.of_id(id);
            assert_eq!(payload, combine(&row, &self.source), "{}, symbol {id}", self.code);
            let ones = row.iter().filter(|&&factor| factor != 0).count();
            if self.code.is_systematic() && (id as usize) < n {
                assert!(ones == 1 && row[id as usize] == 1, "{}, symbol {id}", self.code);
            }
        }
        (id, index_set, payload)
    }

    fn payload(&self, id: u32) -> Vec<u8> {
        self.symbol(id).2
    }

    /// A symbol that was received before.
    fn again(&self, choice: u8) -> Symbol {
        let at = usize::from(choice).checked_rem(self.seen.len());
        at.map_or_else(|| self.symbol(0), |at| self.seen[at].clone())
    }

    fn hand_in(&mut self, decoder: &mut Decoder, meter: &mut Meter, symbol: Symbol) {
        let (id, index_set, payload) = &symbol;
        let before = (decoder.needed(), decoder.work());
        let got = meter.measure(self.code, self.shape, || decoder.receive(*id, index_set, payload));
        if let Some(error) = self.error(index_set, payload) {
            assert_eq!(got, Err(error));
            assert_eq!((decoder.needed(), decoder.work()), before, "an error changes nothing");
            return;
        }
        self.received += 1;
        let expected = self.expect(&symbol);
        assert_eq!(got, Ok(expected), "{}, {:?}, symbol {id}", self.code, self.shape);
        self.seen.push(symbol);

        let n = self.shape.source_symbols();
        let needed = decoder.needed();
        let work = decoder.work();
        assert_eq!((needed, needed == 0), (n - self.rank.get(), decoder.is_complete()));
        assert_eq!((work.received, work.innovative as usize), (self.received, n - needed));
        assert_eq!(decoder.block().is_some(), needed == 0);
        if expected == Reception::Complete {
            self.check(decoder.block().unwrap_or_default());
            self.finished = true;
        }
    }

    /// The error that a symbol's shape must cause.
    fn error(&self, index_set: &[u8], payload: &[u8]) -> Option<SymbolError> {
        let source_symbols = self.shape.source_symbols();
        let size = self.shape.symbol_size();
        if payload.len() != size {
            return Some(SymbolError::PayloadLength { expected: size, got: payload.len() });
        }
        let has_set = matches!(self.code, Code::Lt(_) | Code::LtSystematic(_));
        let expected = if has_set { source_symbols.div_ceil(8) } else { 0 };
        if index_set.len() != expected {
            return Some(SymbolError::IndexSetLength { expected, got: index_set.len() });
        }
        let named = |i: &usize| index_set[i / 8] >> (7 - i % 8) & 1 != 0;
        if let Some(got) = (source_symbols..8 * expected).find(named) {
            return Some(SymbolError::IndexOutOfRange { source_symbols, got });
        }
        let empty = expected > 0 && !(0..source_symbols).any(|i| named(&i));
        empty.then_some(SymbolError::EmptyIndexSet { source_symbols })
    }

    /// The progress that a well-formed symbol must bring. Records it.
    fn expect(&mut self, (id, index_set, payload): &Symbol) -> Reception {
        if self.finished {
            return Reception::Redundant;
        }
        let row = self.rows.of(*id, index_set);
        let raised = self.rank.insert(row.clone());
        // Any n of the first 256 are independent: a maximum distance separable code.
        if self.code == Code::Rlf256 && self.ids.iter().chain([id]).all(|&id| id < 256) {
            assert_eq!(raised, !self.ids.contains(id), "n = {}, symbol {id}", self.rank.get());
        }
        if !raised {
            return Reception::Redundant;
        }
        self.ids.insert(*id);
        self.truthful &= *payload == combine(&row, &self.source);
        self.innovative.push((row, payload.clone()));
        let complete = self.rank.get() == self.shape.source_symbols();
        if complete { Reception::Complete } else { Reception::Innovative }
    }

    /// Checks the decoded block against the symbols that it came from.
    fn check(&self, block: &[u8]) {
        assert_eq!(block.len(), self.shape.len());
        if self.truthful {
            assert!(block == self.source, "{}, {:?}: not the source", self.code, self.shape);
        }
        let checked = (MAX_PRODUCTS / block.len()).max(1);
        for (row, payload) in self.innovative.iter().rev().take(checked) {
            assert_eq!(*payload, combine(row, block), "{}, {:?}", self.code, self.shape);
        }
    }
}

/// Tracks how much memory the decoder holds.
struct Meter {
    gauge: Option<Gauge>,
    /// The bytes that the decoder holds.
    held: isize,
    /// The limit for a decoder of the largest block so far.
    largest: usize,
}

impl Meter {
    fn measure<T>(&mut self, code: Code, shape: BlockShape, run: impl FnOnce() -> T) -> T {
        let Some(Gauge { used, peak, reset }) = self.gauge else { return run() };
        self.largest = self.largest.max(Decoder::memory(code, shape));
        reset();
        let before = used();
        let result = run();
        let most = self.held + peak().saturating_sub(before) as isize;
        self.held += used() as isize - before as isize;
        let allowed = self.largest + MAX_WORKSPACE;
        assert!(most <= allowed as isize, "{most} bytes, {allowed} allowed for {shape:?}");
        result
    }
}
