//! The loops that all vector instruction sets share.
//!
//! Payloads are cut into columns a few vectors wide; towards the end, half as wide, and then of one
//! vector. (1,408 bytes are five and a half columns of four vectors of 64.) For a column of up to four
//! outputs, the sums stay in registers while all sources are added: each source is read once for four
//! outputs, and each output is read and written once for all sources. A column of 64 sources takes
//! at most 16 KB, so that it is still in the first-level cache for the next outputs.
//!
//! The rest at the end of a payload is handled as one more vector that overlaps the last whole column.
//! It is computed first, from the former contents of the outputs, and written last.

#![allow(unsafe_code, reason = "instructions that not every machine has")]

use super::program::{COLUMN, Place, Program};

/// The outputs of one pass over the sources.
const OUTPUTS: usize = 4;

/// A vector of bytes.
///
/// Every function requires the instruction set of the type. Pointers must be valid for `BYTES` bytes;
/// no alignment is required. `BYTES` is at most [`WIDEST`].
pub(super) trait Vector: Copy {
    /// The bytes of a vector.
    const BYTES: usize;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    unsafe fn add(self, other: Self) -> Self;
}

/// A way to multiply the bytes of vectors in GF(2^8).
///
/// Every function requires the instruction set of the type and that of the vector.
pub(super) trait Field {
    type Vector: Vector;
    /// A source, prepared for several multiplications.
    type Source: Copy;
    /// A factor, prepared for several multiplications.
    type Factor: Copy;

    unsafe fn source(source: Self::Vector) -> Self::Source;
    unsafe fn factor(factor: u8) -> Self::Factor;
    unsafe fn product(source: Self::Source, factor: Self::Factor) -> Self::Vector;
}

/// The bytes of the widest vector.
pub(super) const WIDEST: usize = 64;

/// Adds all of `from` to `to`, in columns of `WIDTH`, `HALF` or one vector.
///
/// # Safety
///
/// The machine has the instructions of `V`; all of `from` are as long as `to`.
#[inline(always)]
pub(super) unsafe fn add<V: Vector, const WIDTH: usize, const HALF: usize>(
    to: &mut [u8],
    from: &[&[u8]],
) {
    let len = to.len();
    if len < V::BYTES {
        for from in from {
            to.iter_mut().zip(*from).for_each(|(to, from)| *to ^= from);
        }
        return;
    }
    // SAFETY: `sum` and `store` get columns that end at `len` at most, which is the length of every
    // payload; for the instructions, the caller vouches.
    unsafe {
        // The last vector overlaps the last whole column, so its sum must be taken before that
        // column changes.
        let last = match len.is_multiple_of(V::BYTES) {
            true => None,
            false => Some(sum::<V, 1>(to, from, len - V::BYTES)),
        };
        let mut at = 0;
        while at + WIDTH * V::BYTES <= len {
            let sum = sum::<V, WIDTH>(to, from, at);
            store(&sum, to, at);
            at += WIDTH * V::BYTES;
        }
        while at + HALF * V::BYTES <= len {
            let sum = sum::<V, HALF>(to, from, at);
            store(&sum, to, at);
            at += HALF * V::BYTES;
        }
        while at + V::BYTES <= len {
            let sum = sum::<V, 1>(to, from, at);
            store(&sum, to, at);
            at += V::BYTES;
        }
        if let Some(last) = last {
            store(&last, to, len - V::BYTES);
        }
    }
}

/// Returns a column of `to` plus the same column of all of `from`.
///
/// # Safety
///
/// The machine has the instructions of `V`; all payloads have `at + WIDTH * V::BYTES` bytes.
#[inline(always)]
unsafe fn sum<V: Vector, const WIDTH: usize>(to: &[u8], from: &[&[u8]], at: usize) -> [V; WIDTH] {
    // SAFETY: the caller vouches for the instructions and for the length of every payload.
    unsafe {
        let mut sum = load::<V, WIDTH>(to, at);
        for from in from {
            let from = load::<V, WIDTH>(from, at);
            for (sum, from) in sum.iter_mut().zip(&from) {
                *sum = sum.add(*from);
            }
        }
        sum
    }
}

/// Adds to each of `to` the sum of products of `from`, in columns of `WIDTH`, `HALF` or one vector.
///
/// # Safety
///
/// The machine has the instructions of `F`; all payloads have the same length; there are
/// `to.len() * from.len()` factors.
#[inline(always)]
pub(super) unsafe fn add_products<F: Field, const WIDTH: usize, const HALF: usize>(
    to: &mut [&mut [u8]],
    from: &[&[u8]],
    factors: &[u8],
) {
    for (to, factors) in to.chunks_mut(OUTPUTS).zip(factors.chunks(OUTPUTS * from.len())) {
        // SAFETY: as the caller vouches; a chunk of outputs has the factors of those outputs.
        unsafe {
            match to {
                [a] => run::<F, 1, WIDTH, HALF>([a], from, factors),
                [a, b] => run::<F, 2, WIDTH, HALF>([a, b], from, factors),
                [a, b, c] => run::<F, 3, WIDTH, HALF>([a, b, c], from, factors),
                [a, b, c, d] => run::<F, OUTPUTS, WIDTH, HALF>([a, b, c, d], from, factors),
                _ => {}
            }
        }
    }
}

/// As [`add_products`], for a number of outputs whose sums fit into the registers.
///
/// # Safety
///
/// As for [`add_products`].
#[inline(always)]
unsafe fn run<F: Field, const OUT: usize, const WIDTH: usize, const HALF: usize>(
    mut to: [&mut [u8]; OUT],
    from: &[&[u8]],
    factors: &[u8],
) {
    let len = to[0].len();
    if len < F::Vector::BYTES {
        // SAFETY: as the caller vouches.
        return unsafe { run_short::<F, OUT>(to, from, factors) };
    }
    // SAFETY: `sums` and `store` get columns that end at `len` at most, which is the length of
    // every payload; for instructions and factors, the caller vouches.
    unsafe {
        // As in `add`: before the column that it overlaps changes.
        let last = match len.is_multiple_of(F::Vector::BYTES) {
            true => None,
            false => Some(sums::<F, OUT, 1>(&to, from, factors, len - F::Vector::BYTES)),
        };
        let mut at = 0;
        while at + WIDTH * F::Vector::BYTES <= len {
            let sums = sums::<F, OUT, WIDTH>(&to, from, factors, at);
            to.iter_mut().zip(&sums).for_each(|(to, sum)| store(sum, to, at));
            at += WIDTH * F::Vector::BYTES;
        }
        while at + HALF * F::Vector::BYTES <= len {
            let sums = sums::<F, OUT, HALF>(&to, from, factors, at);
            to.iter_mut().zip(&sums).for_each(|(to, sum)| store(sum, to, at));
            at += HALF * F::Vector::BYTES;
        }
        while at + F::Vector::BYTES <= len {
            let sums = sums::<F, OUT, 1>(&to, from, factors, at);
            to.iter_mut().zip(&sums).for_each(|(to, sum)| store(sum, to, at));
            at += F::Vector::BYTES;
        }
        if let Some(last) = last {
            to.iter_mut().zip(&last).for_each(|(to, sum)| store(sum, to, len - F::Vector::BYTES));
        }
    }
}

/// Handles payloads shorter than a vector, as padded copies, one after the other.
///
/// # Safety
///
/// As for [`add_products`]; and payloads have at most [`WIDEST`] bytes.
#[inline(always)]
unsafe fn run_short<F: Field, const OUT: usize>(
    mut to: [&mut [u8]; OUT],
    from: &[&[u8]],
    factors: &[u8],
) {
    let len = to[0].len();
    let mut sums = [[0; WIDEST]; OUT];
    let mut padded = [0; WIDEST];
    for (i, from) in from.iter().enumerate() {
        padded[..len].copy_from_slice(from);
        let outputs: [&mut [u8]; OUT] = sums.each_mut().map(|sum| &mut sum[..F::Vector::BYTES]);
        let mut column = [0; OUT];
        for (j, factor) in column.iter_mut().enumerate() {
            *factor = factors[j * (factors.len() / OUT) + i];
        }
        // SAFETY: the caller vouches for the instructions; both payloads have `BYTES` bytes, and
        // there is a factor for each output.
        unsafe {
            let all = self::sums::<F, OUT, 1>(&outputs, &[&padded[..F::Vector::BYTES]], &column, 0);
            outputs.into_iter().zip(&all).for_each(|(to, sum)| store(sum, to, 0));
        }
    }
    for (to, sum) in to.iter_mut().zip(&sums) {
        to.iter_mut().zip(sum).for_each(|(to, sum)| *to ^= sum);
    }
}

/// Returns a column of each output plus the same column of its sum of products.
///
/// # Safety
///
/// The machine has the instructions of `F`; all payloads have `at + WIDTH * F::Vector::BYTES`
/// bytes; there are `OUT * from.len()` factors.
#[inline(always)]
unsafe fn sums<F: Field, const OUT: usize, const WIDTH: usize>(
    to: &[&mut [u8]; OUT],
    from: &[&[u8]],
    factors: &[u8],
    at: usize,
) -> [[F::Vector; WIDTH]; OUT] {
    debug_assert_eq!(factors.len(), OUT * from.len());
    // SAFETY: the caller vouches for the instructions, for the length of every payload, and for the
    // number of factors, so that none is read from beyond them.
    unsafe {
        let mut sums = [[F::Vector::zero(); WIDTH]; OUT];
        for (sum, to) in sums.iter_mut().zip(to) {
            *sum = load(to, at);
        }
        for (i, source) in from.iter().enumerate() {
            let mut prepared = [F::source(F::Vector::zero()); WIDTH];
            for (w, prepared) in prepared.iter_mut().enumerate() {
                *prepared =
                    F::source(F::Vector::load(source.as_ptr().add(at + w * F::Vector::BYTES)));
            }
            for (j, sum) in sums.iter_mut().enumerate() {
                let factor = F::factor(*factors.get_unchecked(j * from.len() + i));
                for (w, sum) in sum.iter_mut().enumerate() {
                    *sum = sum.add(F::product(prepared[w], factor));
                }
            }
        }
        sums
    }
}

/// Runs a program over all whole vectors of the payloads, in columns of `WIDTH`, `HALF` or one
/// vector. Returns the offset where they end; less than a vector remains of each payload.
///
/// # Safety
///
/// The machine has the instructions of `V`; `payloads` holds all payloads of `size` bytes that the
/// program names, and `cells` all cells of [`COLUMN`] bytes. A column is no wider than a cell.
#[inline(always)]
pub(super) unsafe fn run_program<V: Vector, const WIDTH: usize, const HALF: usize>(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
) -> usize {
    let mut at = 0;
    // SAFETY: columns end at `size` at most; for the rest, the caller vouches.
    unsafe {
        while at + WIDTH * V::BYTES <= size {
            run_column::<V, WIDTH>(program, payloads, size, cells, at);
            at += WIDTH * V::BYTES;
        }
        while at + HALF * V::BYTES <= size {
            run_column::<V, HALF>(program, payloads, size, cells, at);
            at += HALF * V::BYTES;
        }
        while at + V::BYTES <= size {
            run_column::<V, 1>(program, payloads, size, cells, at);
            at += V::BYTES;
        }
    }
    at
}

/// Runs a program over one column.
///
/// # Safety
///
/// As for [`run_program`]; and payloads have `at + WIDTH * V::BYTES` bytes.
#[inline(always)]
unsafe fn run_column<V: Vector, const WIDTH: usize>(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
    at: usize,
) {
    const { assert!(WIDTH * V::BYTES <= COLUMN) };
    let payloads = payloads.as_mut_ptr();
    let cells = cells.as_mut_ptr();
    let mut terms = program.terms.as_ptr();
    for sum in &program.sums {
        // SAFETY: the caller vouches that the payloads and cells named exist; each sum has as
        // many terms as it states.
        unsafe {
            let payload = |index: u8| payloads.add(usize::from(index) * size + at);
            let cell = |index: u8| cells.add(usize::from(index) * COLUMN);
            let to = match sum.to {
                Place::Payload(index) => payload(index),
                Place::Cell(index) => cell(index),
            };
            let mut column = [V::zero(); WIDTH];
            if !sum.clear {
                add_from(&mut column, to);
            }
            for _ in 0..sum.payloads {
                add_from(&mut column, payload(*terms));
                terms = terms.add(1);
            }
            for _ in 0..sum.cells {
                add_from(&mut column, cell(*terms));
                terms = terms.add(1);
            }
            for (i, vector) in column.iter().enumerate() {
                vector.store(to.add(i * V::BYTES));
            }
        }
    }
}

/// Adds `WIDTH` vectors.
///
/// # Safety
///
/// The machine has the instructions of `V`; `WIDTH * V::BYTES` bytes can be read.
#[inline(always)]
unsafe fn add_from<V: Vector, const WIDTH: usize>(column: &mut [V; WIDTH], from: *const u8) {
    for (i, vector) in column.iter_mut().enumerate() {
        // SAFETY: as the caller vouches.
        unsafe { *vector = vector.add(V::load(from.add(i * V::BYTES))) }
    }
}

/// Loads a column of a payload.
///
/// # Safety
///
/// The machine has the instructions of `V`; the payload has `at + WIDTH * V::BYTES` bytes.
#[inline(always)]
unsafe fn load<V: Vector, const WIDTH: usize>(from: &[u8], at: usize) -> [V; WIDTH] {
    debug_assert!(at + WIDTH * V::BYTES <= from.len());
    // SAFETY: the caller vouches for the instructions, and that all of these bytes are in the
    // payload.
    unsafe {
        let mut column = [V::zero(); WIDTH];
        for (i, vector) in column.iter_mut().enumerate() {
            *vector = V::load(from.as_ptr().add(at + i * V::BYTES));
        }
        column
    }
}

/// Overwrites a column of a payload.
///
/// # Safety
///
/// The machine has the instructions of `V`; the payload has `at + WIDTH * V::BYTES` bytes.
#[inline(always)]
unsafe fn store<V: Vector, const WIDTH: usize>(column: &[V; WIDTH], to: &mut [u8], at: usize) {
    debug_assert!(at + WIDTH * V::BYTES <= to.len());
    for (i, vector) in column.iter().enumerate() {
        // SAFETY: the caller vouches that all of these bytes are in the payload.
        unsafe { vector.store(to.as_mut_ptr().add(at + i * V::BYTES)) }
    }
}
