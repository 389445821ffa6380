//! Damage to the bytes of a packet: cutting, appending, flipping bits.

use super::{LinkConfig, LinkStats};
use crate::rng::SplitMix64;

/// Maximum number of bytes appended to a packet.
const LONGEST_EXTENSION: u64 = 64;
/// Maximum number of bits flipped in a packet.
const MOST_FLIPS: usize = 3;

/// Damages `packet` as configured and counts the damage.
///
/// Bits are flipped last, so that a packet counted as corrupted does have flipped bits.
pub(super) fn damage(
    packet: &mut Vec<u8>,
    config: &LinkConfig,
    rng: &mut SplitMix64,
    stats: &mut LinkStats,
) {
    if rng.chance(config.truncate) && !packet.is_empty() {
        packet.truncate(rng.index(packet.len()));
        stats.truncated += 1;
    }
    if rng.chance(config.extend) {
        let more = 1 + rng.below(LONGEST_EXTENSION);
        packet.extend((0..more).map(|_| rng.next_u64() as u8));
        stats.extended += 1;
    }
    if rng.chance(config.corrupt) && !packet.is_empty() {
        flip_bits(packet, rng);
        stats.corrupted += 1;
    }
}

/// Flips 1 to [`MOST_FLIPS`] bits of a packet that is not empty, none of them twice.
fn flip_bits(packet: &mut [u8], rng: &mut SplitMix64) {
    let mut flipped = [0; MOST_FLIPS];
    let count = 1 + rng.index(MOST_FLIPS);
    for done in 0..count {
        // A byte has more bits than are ever flipped, so the loop ends.
        let bit = loop {
            let bit = rng.index(packet.len() * 8);
            if !flipped[..done].contains(&bit) {
                break bit;
            }
        };
        packet[bit / 8] ^= 1 << (bit % 8);
        flipped[done] = bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_three_bits_flip_even_in_a_single_byte() {
        let mut rng = SplitMix64::new(3);
        let mut seen = [0; MOST_FLIPS + 1];
        for _ in 0..1_000 {
            let mut packet = [0];
            flip_bits(&mut packet, &mut rng);
            seen[packet[0].count_ones() as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&times| times > 250), "{seen:?}");
    }

    #[test]
    fn packets_too_short_to_damage_are_not_counted() {
        let config = LinkConfig { truncate: 1.0, corrupt: 1.0, ..LinkConfig::default() };
        let mut stats = LinkStats::default();
        let mut packet = Vec::new();
        damage(&mut packet, &config, &mut SplitMix64::new(4), &mut stats);
        assert!(packet.is_empty());
        assert_eq!(stats, LinkStats::default());
    }
}
