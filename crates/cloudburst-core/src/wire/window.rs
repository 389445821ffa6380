//! The packet numbers seen so far: a sliding bit window that detects replays.

/// How far behind the newest packet another may arrive and still be accepted.
pub const REPLAY_WINDOW: u64 = if cfg!(feature = "small-limits") { 64 } else { 8192 };

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// The packet numbers of one direction that have been accepted.
///
/// Numbers start at 0. Those more than [`REPLAY_WINDOW`] below the newest count as seen.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// One above the newest number accepted.
    end: u64,
    /// Bit `number % REPLAY_WINDOW` for each number in `end - REPLAY_WINDOW..end`.
    seen: Box<[u64; WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { end: 0, seen: Box::new([0; WORDS]) }
    }
}

impl ReplayWindow {
    /// Returns whether `number` is new. [Mark] it only once the packet has proved authentic.
    ///
    /// [Mark]: Self::mark
    pub fn is_fresh(&self, number: u64) -> bool {
        if number >= self.end {
            return true;
        }
        let (word, bit) = Self::place(number);
        self.end - number <= REPLAY_WINDOW && self.seen[word] & bit == 0
    }

    /// Returns the number right above the newest accepted one.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Marks the authentic packet `number` as accepted.
    pub fn mark(&mut self, number: u64) {
        if number >= self.end {
            let skipped = number - self.end;
            if skipped >= REPLAY_WINDOW {
                self.seen.fill(0);
            } else {
                for between in self.end..number {
                    let (word, bit) = Self::place(between);
                    self.seen[word] &= !bit;
                }
            }
            self.end = number.saturating_add(1);
        } else if self.end - number > REPLAY_WINDOW {
            return;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
    }

    const fn place(number: u64) -> (usize, u64) {
        let slot = number % REPLAY_WINDOW;
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn takes_each_number_once_and_none_that_is_too_old() {
        let mut window = ReplayWindow::default();
        for number in [5, 3, 4, 0, REPLAY_WINDOW + 2] {
            assert!(window.is_fresh(number));
            window.mark(number);
            assert!(!window.is_fresh(number));
        }
        assert!(!window.is_fresh(2), "older than the window");
        assert!(window.is_fresh(6));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0..4_u8, 0..20_000_u64), 1..200)) {
            let mut window = ReplayWindow::default();
            let mut oracle = BTreeSet::new();
            for (how, by) in steps {
                let newest = oracle.last().copied().unwrap_or(0);
                let number = if how == 0 { newest + by } else { newest.saturating_sub(by % 10_000) };
                let too_old = newest >= number && newest - number >= REPLAY_WINDOW;
                let fresh = !too_old && !oracle.contains(&number);
                prop_assert_eq!(window.is_fresh(number), fresh);
                if fresh {
                    window.mark(number);
                    oracle.insert(number);
                }
            }
        }
    }
}
