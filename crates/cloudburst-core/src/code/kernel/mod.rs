//! The inner loops over whole payloads: sums, and sums of products in GF(2^8), from many sources
//! and into several outputs at a time.
//!
//! | file | role |
//! |---|---|
//! | `portable` | plain Rust, for every machine |
//! | `tiled` | the loops that all instruction sets share, over vectors of any width |
//! | `program` | sequences of sums, some of which add the results of others |
//! | `x86`, `neon` | vectors of AVX-512 with GFNI, AVX2 with and without GFNI, and NEON |
//!
//! All of them add to their outputs: a caller that wants to overwrite them clears them first, at
//! negligible cost.

#![allow(unsafe_code, reason = "the kernels need instructions that not every machine has")]

mod portable;
mod program;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tiled;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;
use std::sync::LazyLock;

use program::COLUMN;
pub(super) use program::{Place, Program};

/// The instruction set used for operations on payloads.
///
/// It affects only the speed, not the results. A value is proof that this machine has the
/// instructions, so values come only from [`fastest`](Self::fastest) and
/// [`available`](Self::available).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512Gfni,
    #[cfg(target_arch = "x86_64")]
    Avx2Gfni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Set {
    /// All that the target architecture can have, the fastest first.
    const ALL: &[Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::Avx512Gfni,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2Gfni,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        Self::Portable,
    ];

    /// Returns whether this machine has it.
    fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gfni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("gfni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gfni => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            Self::Portable => true,
        }
    }
}

impl Kernel {
    /// Returns the fastest that this machine has.
    pub fn fastest() -> Self {
        // Chosen once: with AVX-512 and GFNI, a symbol from 64 sources of 1,408 bytes takes 1.0 us,
        // with portable code 10 us.
        static FASTEST: LazyLock<Kernel> =
            LazyLock::new(|| Kernel::available().next().unwrap_or(Kernel(Set::Portable)));
        *FASTEST
    }

    /// Returns all that this machine has, the fastest first; always includes the portable one.
    pub fn available() -> impl Iterator<Item = Self> {
        Set::ALL.iter().filter(|set| set.is_available()).map(|&set| Self(set))
    }

    /// Adds all of `from` to `to`. All have the same length.
    pub(super) fn add(self, to: &mut [u8], from: &[&[u8]]) {
        assert!(from.iter().all(|from| from.len() == to.len()), "payloads of different lengths");
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value is proof of the instructions; the lengths have just been checked.
            Set::Avx512Gfni => unsafe { x86::add_avx512(to, from) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value is proof of the instructions; the lengths have just been checked.
            Set::Avx2Gfni | Set::Avx2 => unsafe { x86::add_avx2(to, from) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the value is proof of the instructions; the lengths have just been checked.
            Set::Neon => unsafe { neon::add(to, from) },
            Set::Portable => portable::add(to, from),
        }
    }

    /// Adds to each of `to` the sum of `from`, each times its factor. The factors of the first
    /// output come first; there are as many of them as of `from`. All payloads have the same
    /// length.
    pub(super) fn add_products(self, to: &mut [&mut [u8]], from: &[&[u8]], factors: &[u8]) {
        let Some(len) = to.first().map(|to| to.len()) else { return };
        assert!(
            to.iter().all(|to| to.len() == len) && from.iter().all(|from| from.len() == len),
            "payloads of different lengths"
        );
        assert_eq!(factors.len(), to.len() * from.len(), "number of factors");
        if from.is_empty() || len == 0 {
            return;
        }
        if let [to] = to
            // The first repair symbol of RLF-256 is a plain sum, and the only one that most blocks
            // need.
            && factors.iter().all(|&factor| factor == 1)
        {
            return self.add(to, from);
        }
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value is proof of the instructions; lengths and the number of factors
            // have just been checked.
            Set::Avx512Gfni => unsafe { x86::add_products_avx512_gfni(to, from, factors) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx2Gfni => unsafe { x86::add_products_avx2_gfni(to, from, factors) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx2 => unsafe { x86::add_products_avx2(to, from, factors) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            Set::Neon => unsafe { neon::add_products(to, from, factors) },
            Set::Portable => portable::add_products(to, from, factors),
        }
    }

    /// Runs a program over contiguous payloads of `size` bytes each. `cells` is scratch memory, of no
    /// meaning before or after.
    pub(super) fn run(
        self,
        program: &Program,
        payloads: &mut [u8],
        size: usize,
        cells: &mut Vec<u8>,
    ) {
        let (needed, needed_cells) = program.extent();
        assert!(needed * size <= payloads.len(), "the program names payloads that do not exist");
        // Checked once for the whole program, so that the kernels need no bounds checks.
        grow(cells, needed_cells * COLUMN);
        // The kernels leave a rest shorter than a vector in each payload.
        let at = match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the value is proof of the instructions; it has just been checked that all
            // payloads and cells that the program names exist.
            Set::Avx512Gfni => unsafe { x86::run_avx512(program, payloads, size, cells) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx2Gfni | Set::Avx2 => unsafe { x86::run_avx2(program, payloads, size, cells) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            Set::Neon => unsafe { neon::run(program, payloads, size, cells) },
            Set::Portable => 0,
        };
        portable::run(program, payloads, size, cells, at);
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512Gfni => "avx512-gfni",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2Gfni => "avx2-gfni",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
            Set::Portable => "portable",
        })
    }
}

/// Makes memory at least this long, without excess capacity.
pub(super) fn grow(memory: &mut Vec<u8>, len: usize) {
    if let Some(more) = len.checked_sub(memory.len()) {
        memory.reserve_exact(more);
        memory.resize(len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::gf256::mul;
    use crate::rng::SplitMix64;

    /// Four columns of the widest vectors: longer payloads only repeat them.
    const MAX_LEN: usize = 4 * COLUMN;
    /// Vectors have up to 64 bytes: further alignments repeat.
    const ALIGNMENTS: usize = 64;

    /// The reference: the sum of products, byte by byte, by definition.
    fn add_products_naively(to: &mut [u8], from: &[&[u8]], factors: &[u8]) {
        for (from, &factor) in from.iter().zip(factors) {
            for (to, &byte) in to.iter_mut().zip(*from) {
                *to ^= mul(byte, factor);
            }
        }
    }

    fn random(rng: &mut SplitMix64, len: usize) -> Vec<u8> {
        (0..len).map(|_| rng.next_u64() as u8).collect()
    }

    /// One for the plain sum, and as many as passes of one, two, three and four outputs take.
    const OUTPUTS: usize = 11;
    const SOURCES: usize = 3;

    /// A copy that begins `alignment` bytes after a multiple of 64, with a margin on either side.
    struct Aligned {
        bytes: Vec<u8>,
        start: usize,
    }

    impl Aligned {
        fn new(content: &[u8], alignment: usize) -> Self {
            let mut bytes = vec![0xa5; content.len() + 3 * ALIGNMENTS];
            let start = ALIGNMENTS + bytes.as_ptr().align_offset(ALIGNMENTS) + alignment;
            bytes[start..start + content.len()].copy_from_slice(content);
            Self { bytes, start }
        }

        fn get(&self, len: usize) -> &[u8] {
            &self.bytes[self.start..self.start + len]
        }

        fn get_mut(&mut self, len: usize) -> &mut [u8] {
            &mut self.bytes[self.start..self.start + len]
        }
    }

    #[test]
    fn every_kernel_agrees_with_the_reference_at_every_length_and_alignment() {
        let mut rng = SplitMix64::new(1);
        let contents: Vec<_> = (0..SOURCES).map(|_| random(&mut rng, MAX_LEN)).collect();
        let from: Vec<Vec<Aligned>> = contents
            .iter()
            .map(|content| (0..ALIGNMENTS).map(|at| Aligned::new(content, at)).collect())
            .collect();
        let contents: Vec<&[u8]> = contents.iter().map(|content| &content[..]).collect();
        let before = random(&mut rng, MAX_LEN);
        let mut factors = random(&mut rng, OUTPUTS * SOURCES);
        // The first output is a plain sum; then some special factors.
        factors[..7].copy_from_slice(&[1, 1, 1, 0, 2, 0x8e, 1]);
        let after: Vec<Vec<u8>> = factors
            .chunks_exact(SOURCES)
            .map(|factors| {
                let mut after = before.clone();
                add_products_naively(&mut after, &contents, factors);
                after
            })
            .collect();
        for kernel in Kernel::available() {
            for alignment in 0..ALIGNMENTS {
                // Each payload has an alignment of its own.
                let aligned: Vec<&Aligned> = (0..SOURCES)
                    .map(|i| &from[i][(alignment * (2 * i + 3) + 11 * i) % ALIGNMENTS])
                    .collect();
                let mut outputs: Vec<Aligned> = (0..OUTPUTS)
                    .map(|i| Aligned::new(&before, (alignment + 21 * i) % ALIGNMENTS))
                    .collect();
                let untouched: Vec<Vec<u8>> =
                    outputs.iter().map(|output| output.bytes.clone()).collect();
                for len in 0..=MAX_LEN {
                    let from: Vec<&[u8]> = aligned.iter().map(|from| from.get(len)).collect();
                    let (sum, products) = outputs.split_at_mut(1);
                    kernel.add(sum[0].get_mut(len), &from);
                    let mut first = SOURCES;
                    let mut rest = products;
                    for count in [1, 2, 3, 4] {
                        let (some, others) = rest.split_at_mut(count);
                        let mut to: Vec<_> = some.iter_mut().map(|to| to.get_mut(len)).collect();
                        let factors = &factors[first..first + to.len() * SOURCES];
                        kernel.add_products(&mut to, &from, factors);
                        first += factors.len();
                        rest = others;
                    }
                    for ((output, untouched), after) in
                        outputs.iter_mut().zip(&untouched).zip(&after)
                    {
                        let case = (kernel, len, alignment);
                        assert_eq!(output.get(len), &after[..len], "{case:?}");
                        output.get_mut(len).copy_from_slice(&before[..len]);
                        // A write beyond either end makes the whole buffer differ.
                        assert!(output.bytes == *untouched, "beyond the ends: {case:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_kernel_takes_any_number_of_sources_and_outputs() {
        let mut rng = SplitMix64::new(2);
        for kernel in Kernel::available() {
            for outputs in 0..10 {
                for sources in [0, 1, 2, 3, 7, 128] {
                    for len in [5, 64, 200, 1408] {
                        check_products(kernel, &mut rng, outputs, sources, len);
                    }
                }
            }
        }
    }

    fn check_products(
        kernel: Kernel,
        rng: &mut SplitMix64,
        outputs: usize,
        sources: usize,
        len: usize,
    ) {
        let from: Vec<_> = (0..sources).map(|_| random(rng, len)).collect();
        let from: Vec<&[u8]> = from.iter().map(|from| &from[..]).collect();
        let factors = random(rng, outputs * sources);
        let mut expected: Vec<_> = (0..outputs).map(|_| random(rng, len)).collect();
        let mut got = expected.clone();
        for (i, to) in expected.iter_mut().enumerate() {
            add_products_naively(to, &from, &factors[i * sources..][..sources]);
        }
        let mut to: Vec<&mut [u8]> = got.iter_mut().map(|to| &mut to[..]).collect();
        kernel.add_products(&mut to, &from, &factors);
        assert_eq!(got, expected, "{kernel}: {outputs} from {sources} of {len} bytes");
        if let Some(to) = got.first_mut() {
            kernel.add(to, &from);
            add_products_naively(&mut expected[0], &from, &vec![1; sources]);
            assert_eq!(got[0], expected[0], "{kernel}: sum of {sources} of {len} bytes");
        }
    }

    #[test]
    fn every_kernel_runs_programs_at_every_length() {
        let mut program = Program::default();
        program.set(Place::Cell(1), [0, 2], []);
        program.add(Place::Cell(1), [1], [1]);
        program.set(Place::Cell(0), [1], [1]);
        program.set(Place::Payload(1), [], []);
        program.add(Place::Payload(2), [0, 1], [0, 1]);
        program.set(Place::Payload(0), [2], [1]);
        assert_eq!(program.xors(), 1 + 2 + 1 + 4 + 1);
        let mut rng = SplitMix64::new(3);
        let before = random(&mut rng, 3 * MAX_LEN + 1);
        for kernel in Kernel::available() {
            // The former contents of cells have no meaning.
            let mut cells = random(&mut rng, 10);
            for len in 0..=MAX_LEN {
                let mut payloads = before.clone();
                kernel.run(&program, &mut payloads[1..1 + 3 * len], len, &mut cells);
                let payload = |i: usize| &before[1 + i * len..1 + (i + 1) * len];
                for i in 0..len {
                    let [a, b, c] = [0, 1, 2].map(|payload_index| payload(payload_index)[i]);
                    // The second sum adds the cell to itself, and leaves the payload.
                    let cell_1 = b;
                    let cell_0 = 0;
                    let last = c ^ a ^ cell_0 ^ cell_1;
                    let after = [0, 1, 2].map(|index| payloads[1 + index * len + i]);
                    assert_eq!(after, [last ^ cell_1, 0, last], "{kernel}, {i} of {len} bytes");
                }
                assert_eq!(payloads[1 + 3 * len..], before[1 + 3 * len..]);
            }
        }
    }

    #[test]
    fn every_product_is_right() {
        let all: Vec<u8> = (0..=255).collect();
        for kernel in Kernel::available() {
            for factor in 0..=255 {
                let mut got = [0; 256];
                kernel.add_products(&mut [&mut got], &[&all], &[factor]);
                assert_eq!(got[..], all.iter().map(|&b| mul(b, factor)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_fastest_kernel_is_the_first_and_the_portable_one_the_last() {
        let all: Vec<Kernel> = Kernel::available().collect();
        assert_eq!(all.first(), Some(&Kernel::fastest()));
        assert_eq!(all.last().map(Kernel::to_string).as_deref(), Some("portable"));
    }
}
