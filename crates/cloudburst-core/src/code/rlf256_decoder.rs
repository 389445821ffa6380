//! RLF-256 decoding as symbols arrive: source symbols go to their place, innovative repairs wait
//! in the places of those that are missing.

use super::gf256::{add_row, inverse};
use super::rlf256::{Coefficients, FIRST_RANDOM_ID};
use super::rlf256_solve;
use super::slab::Slab;

/// What is known of one block's symbols.
#[derive(Debug, Default)]
pub(super) struct Rlf256Decoder {
    slots: Vec<Slot>,
    /// Kept from the first id on whose coefficients are random. Before that, there is no need:
    /// any symbols of the first 256 are independent, up to n of them.
    echelon: Option<Echelon>,
}

/// What a slot of the slab holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Nothing yet.
    Empty,
    /// The source symbol that belongs here.
    Source,
    /// The repair symbol of this id, in place of a source symbol that is missing.
    Repair(u32),
}

impl Rlf256Decoder {
    /// Forgets everything, and expects a block of n symbols.
    pub(super) fn reset(&mut self, source_symbols: usize) {
        self.slots.clear();
        self.slots.resize(source_symbols, Slot::Empty);
        self.echelon = None;
    }

    /// Takes a symbol in; whether it raised the rank. Only at a rank below n.
    pub(super) fn receive(&mut self, id: u32, payload: &[u8], slab: &mut Slab) -> bool {
        if !self.is_innovative(id) {
            return false;
        }
        // The rank is the number of occupied slots: one is empty.
        let empty = self.slots.iter().position(|&slot| slot == Slot::Empty);
        let own = (id as usize) < self.slots.len();
        match (own, empty) {
            (false, Some(empty)) => self.put(empty, Slot::Repair(id), payload, slab),
            (true, Some(empty)) => {
                if self.slots[id as usize] != Slot::Empty {
                    slab.copy(id as usize, empty);
                    self.slots[empty] = self.slots[id as usize];
                }
                self.put(id as usize, Slot::Source, payload, slab);
            }
            (_, None) => return false,
        }
        true
    }

    /// Turns the payloads into the block. Only at rank n. Returns the number of multiplications
    /// of payloads.
    pub(super) fn solve(&mut self, slab: &mut Slab) -> u64 {
        rlf256_solve::solve(&mut self.slots, slab)
    }

    fn put(&mut self, index: usize, slot: Slot, payload: &[u8], slab: &mut Slab) {
        self.slots[index] = slot;
        slab.store(index, payload);
    }

    fn is_innovative(&mut self, id: u32) -> bool {
        let n = self.slots.len();
        let held = match self.slots.get(id as usize) {
            Some(&slot) => slot == Slot::Source,
            None => self.slots.contains(&Slot::Repair(id)),
        };
        if held {
            return false;
        }
        if id >= FIRST_RANDOM_ID && self.echelon.is_none() {
            self.echelon = Some(Echelon::of(&self.slots));
        }
        self.echelon.as_mut().is_none_or(|echelon| echelon.insert(Coefficients::new(id, n)))
    }
}

/// The coefficients of all symbols held, in echelon form.
#[derive(Debug)]
struct Echelon {
    /// Row i, of n bytes, is in use if `kinds[i]` says so; then its first coefficient that is
    /// not 0 is a 1 in column i.
    rows: Vec<u8>,
    kinds: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Absent,
    /// All zeros but for the leading 1.
    Unit,
    Full,
}

impl Echelon {
    fn of(slots: &[Slot]) -> Self {
        let n = slots.len();
        let mut echelon = Self { rows: vec![0; n * n], kinds: vec![Row::Absent; n] };
        // Source symbols first, while they are cheap.
        for (index, _) in slots.iter().enumerate().filter(|(_, slot)| **slot == Slot::Source) {
            echelon.insert(Coefficients::new(index as u32, n));
        }
        for slot in slots {
            if let Slot::Repair(id) = *slot {
                echelon.insert(Coefficients::new(id, n));
            }
        }
        echelon
    }

    /// Adds a row; whether it raised the rank.
    fn insert(&mut self, mut new: Coefficients) -> bool {
        let n = self.kinds.len();
        for column in 0..n {
            let factor = new[column];
            if factor == 0 {
                continue;
            }
            let row = &mut self.rows[column * n..][..n];
            match self.kinds[column] {
                Row::Unit => new[column] = 0,
                Row::Full => add_row(&mut new[column..], &row[column..], factor),
                Row::Absent => {
                    row.fill(0);
                    add_row(row, &new, inverse(factor));
                    let unit = row[column + 1..].iter().all(|&c| c == 0);
                    self.kinds[column] = if unit { Row::Unit } else { Row::Full };
                    return true;
                }
            }
        }
        false
    }
}
