//! The state of a message that its receiver pulls: which symbols are in flight, and which are lost.

use crate::proto::layout::Layout;
use crate::proto::limits::{MAX_BACKOFF, MAX_BLOCKS_IN_FLIGHT};
use crate::proto::round_trip::RoundTrip;
use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;

/// Arrivals of a block that packets on other paths may still overtake; symbols sent before older
/// arrivals count as lost.
const RECENT: usize = 32;
/// The largest window that a sender is believed to have, in symbols.
const MAX_WINDOW: u32 = 1_024;
/// The window that a sender is believed to have before any of its symbols has arrived: the largest
/// default.
const MAX_UNPROVEN: u32 = 32;
/// The maximum number of symbols of a block that count as lost when it stalls: the largest default
/// window. A sender that answers no pull must not have many symbols pulled in vain.
const MAX_STALLED: u32 = 32;
/// The same for each further stall in a row.
// With one, 93 KB took up to 4.1 s where 20 % were lost in bursts of ten, and with two 0.2 s.
const MAX_STALLED_AGAIN: u32 = 2;
/// Symbols of a block after the first one in flight that are recorded if they are trimmed: four
/// times the largest default window. The loss of others is detected by later arrivals.
const TRIMMED: u32 = u128::BITS;
/// Symbols of a block that are counted: no sender that respects its packet cap sends as many.
const MAX_SYMBOLS: u32 = 1 << 24;

/// The state of a pulled message.
///
/// A symbol is *outstanding* if it was sent unscheduled or pulled, and neither arrived nor counts as
/// lost. No symbol is pulled while the outstanding symbols fill the sender's window, nor of a block
/// whose outstanding symbols are as many as it needs.
#[derive(Debug, Default)]
pub(super) struct Pulling {
    /// Blocks that have begun and are not done, in order.
    blocks: ArrayVec<Block, MAX_BLOCKS_IN_FLIGHT>,
    /// The first block that has not begun.
    next: u32,
    /// Symbols that the sender sends unscheduled, over all blocks.
    window: u32,
    /// Symbols that have arrived, of all blocks.
    arrived: u32,
    /// The block and the first symbol that answer the timed pull, and the time of that pull.
    timed: Option<(u32, u32, Instant)>,
    /// The start of the current wait: the last arrival, pull or stall.
    since: Instant,
    /// Stalls since the last arrival.
    stalls: u32,
}

/// One block of a pulled message. Counts are of symbols.
#[derive(Debug)]
struct Block {
    index: u32,
    /// Missing from the block.
    needed: u32,
    /// Sent unscheduled.
    unscheduled: u32,
    /// Pulled.
    credit: u32,
    arrived: u32,
    /// Symbols from the first on that are no longer in flight, and (`settled`) how many of them
    /// arrived.
    passed: u32,
    settled: u32,
    /// Symbols from `passed` on that were trimmed: the lowest bit stands for the first.
    trimmed: u128,
    /// The number of symbols sent before a probe, and the time by which they must arrive.
    probed: Option<(u32, Instant)>,
    /// Packet number and ESI of arrivals from `passed` on, by packet number.
    recent: ArrayVec<(u64, u32), RECENT>,
}

/// The symbols of the blocks under way whose fate is known.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    arrived: u32,
    lost: u32,
}

impl Losses {
    /// The number of symbols of which `count` arrive if as many are lost as before, at most twice
    /// `count`.
    fn make_up(self, count: u32) -> u32 {
        if self.lost == 0 {
            return count;
        }
        let arrived = u64::from(self.arrived);
        let lost = u64::from(self.lost).min(arrived);
        count + ((u64::from(count) * lost + arrived / 2) / arrived.max(1)) as u32
    }
}

/// A symbol of a message that is pulled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) block: u32,
    /// Its ESI in the block.
    pub(super) symbol: u32,
    /// Symbols of the block that the sender sends unscheduled.
    // The receiver cannot infer it: in steady state, the ESI of each arrival fits any window. A
    // credit that counted all symbols would release nothing before the size of the opening is
    // known.
    pub(super) unscheduled: u32,
    /// Its packet number.
    pub(super) number: u64,
    /// All symbols sent before the packet with this number have arrived or are lost.
    // By packet numbers, because a gap in path numbers does not say to which message the lost
    // packet belongs: one message would send an unnecessary symbol while the other stalls.
    pub(super) horizon: u64,
    /// Symbols that the block still needs.
    pub(super) needed: u32,
}

/// The credit of a block: the total number of symbols pulled, and whether no more are needed unless
/// some are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PullCredit {
    pub(super) block: u32,
    pub(super) credit: u32,
    pub(super) fin: bool,
}

impl Pulling {
    /// Handles an arrival. Returns how many more symbols are lost.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        arrival: Arrival,
        layout: &Layout,
        round_trip: &mut RoundTrip,
    ) -> u32 {
        let Arrival { block: index, symbol, unscheduled, number, horizon, needed } = arrival;
        if symbol >= MAX_SYMBOLS {
            return 0;
        }
        self.since = now;
        self.stalls = 0;
        if let Some((block, awaited, pulled_at)) = self.timed
            && block == index
            && symbol >= awaited
        {
            round_trip.sample(now.saturating_since(pulled_at));
            self.timed = None;
        }
        self.begin_up_to(index, layout);
        self.arrived = self.arrived.saturating_add(1);
        let lost_before = self.lost();
        for block in &mut self.blocks {
            if block.index == index {
                self.window = (self.window + block.opening(unscheduled)).clamp(1, MAX_WINDOW);
                block.on_arrival(symbol, unscheduled, number, needed);
            }
            block.pass(horizon);
        }
        self.lost().saturating_sub(lost_before)
    }

    /// Handles a symbol that a switch has trimmed. It is lost, but says nothing about symbols sent
    /// before it, because trimmed packets overtake others. Returns how many more symbols are lost.
    pub(super) fn on_trimmed(
        &mut self,
        now: Instant,
        index: u32,
        symbol: u32,
        unscheduled: u32,
        layout: &Layout,
    ) -> u32 {
        if symbol >= MAX_SYMBOLS {
            return 0;
        }
        self.since = now;
        self.stalls = 0;
        self.begin_up_to(index, layout);
        let lost_before = self.lost();
        if let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) {
            self.window = (self.window + block.opening(unscheduled)).clamp(1, MAX_WINDOW);
            block.on_sent(symbol.saturating_add(1), unscheduled);
            block.trimmed |= block.trimmed_bit(symbol);
        }
        self.lost().saturating_sub(lost_before)
    }

    /// Begins the blocks up to `index`, within the number that may be in flight.
    fn begin_up_to(&mut self, index: u32, layout: &Layout) {
        while self.next <= index && self.begin(layout) {}
    }

    /// Begins the next block. Returns whether one was allowed to begin.
    fn begin(&mut self, layout: &Layout) -> bool {
        let shape = layout.shape(self.next as usize).filter(|_| !self.blocks.is_full());
        let Some(shape) = shape else { return false };
        let index = self.next;
        let needed = shape.source_symbols() as u32;
        self.blocks.push(Block {
            index,
            needed,
            unscheduled: 0,
            credit: 0,
            arrived: 0,
            passed: 0,
            settled: 0,
            trimmed: 0,
            probed: None,
            recent: ArrayVec::new(),
        });
        self.next += 1;
        true
    }

    /// Forgets the outstanding symbols of block `index`, which is done.
    pub(super) fn on_block_done(&mut self, now: Instant, index: u32, layout: &Layout) {
        self.since = now;
        self.stalls = 0;
        self.begin_up_to(index, layout);
        self.blocks.retain(|block| block.index != index);
        self.timed.take_if(|(block, ..)| *block == index);
    }

    /// Handles a probe: `sent` symbols of block `index` have been sent before it, and `unscheduled` of
    /// the block are sent unscheduled. Those that have not arrived by `due` are lost.
    pub(super) fn on_probe(
        &mut self,
        index: u32,
        sent: u32,
        unscheduled: u32,
        due: Instant,
        layout: &Layout,
    ) {
        if sent > MAX_SYMBOLS {
            return;
        }
        self.begin_up_to(index, layout);
        let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) else { return };
        self.window = (self.window + block.opening(unscheduled)).clamp(1, MAX_WINDOW);
        block.on_sent(sent, unscheduled);
        block.probed = Some((sent, due));
        // The message does not stall before `due`, even if no symbol of it has arrived.
        self.since = self.since.max(due);
    }

    /// The time by which symbols before a probe must arrive.
    pub(super) fn probes_due(&self) -> Option<Instant> {
        self.blocks.iter().filter_map(|block| block.probed).map(|(_, due)| due).min()
    }

    /// Counts symbols as lost that were sent before a probe and have not arrived by `now`. Returns
    /// how many.
    pub(super) fn on_probes_due(&mut self, now: Instant) -> u32 {
        let lost_before = self.lost();
        for block in &mut self.blocks {
            if let Some((sent, _)) = block.probed.take_if(|(_, due)| *due <= now) {
                block.pass_all(sent);
            }
        }
        self.lost().saturating_sub(lost_before)
    }

    /// The credit of block `index`.
    pub(super) fn credit(&self, index: u32) -> PullCredit {
        let block = self.blocks.iter().find(|block| block.index == index);
        block.map_or(PullCredit { block: index, credit: 0, fin: false }, Block::credit)
    }

    /// The number of symbols that are missing from the message; `None` if none may be pulled now.
    pub(super) fn missing(&self, layout: &Layout) -> Option<u32> {
        let expected = self.expected_losses();
        let may_begin = (self.next as usize) < layout.blocks() && !self.blocks.is_full();
        let wants = may_begin || self.blocks.iter().any(|block| block.wants(expected));
        // A window is believed as far as symbols arrive. One probe could otherwise have a whole message
        // pulled in vain.
        let window = self.window.clamp(1, MAX_UNPROVEN.saturating_add(self.arrived));
        // Symbols whose loss is not yet known take no room in the network, but would fill the window:
        // with half of all packets lost, 93 KB took 5.3 ms over four paths, and 3.6 ms this way.
        let may_pull = wants && self.outstanding() < self.losses().make_up(window);
        let begun: u32 = self.blocks.iter().map(|block| block.needed).sum();
        let left = layout.blocks() - (self.next as usize).min(layout.blocks());
        let symbols = left * layout.source_symbols() / layout.blocks();
        may_pull.then(|| begun.saturating_add(symbols as u32))
    }

    /// Pulls one more symbol, of the first block that needs one.
    pub(super) fn pull(&mut self, now: Instant, layout: &Layout) -> Option<PullCredit> {
        self.missing(layout)?;
        let expected = self.expected_losses();
        if !self.blocks.iter().any(|block| block.wants(expected)) {
            self.begin(layout);
        }
        let block = self.blocks.iter_mut().find(|block| block.wants(expected))?;
        block.credit = block.credit.saturating_add(1);
        self.since = now;
        let awaited = block.sent() - 1;
        self.timed.get_or_insert((block.index, awaited, now));
        Some(block.credit())
    }

    /// When [`on_stall`](Self::on_stall) is due, if nothing arrives until then and pulls are
    /// answered within `rto`. `may_pull` says that a symbol [may be pulled](Self::missing) now.
    pub(super) fn stalls_at(&self, rto: Duration, may_pull: bool) -> Option<Instant> {
        let waits = self.outstanding() > 0 && !may_pull;
        let wait = rto.saturating_mul(1 << (self.stalls / 2).min(8)).min(MAX_BACKOFF);
        waits.then(|| self.since + wait)
    }

    /// Counts all outstanding symbols as lost, because nothing has arrived for too long. In further
    /// stalls only a few count as lost each time, so that the credit of a sender that returns is not many
    /// times its window. Returns how many symbols are lost.
    pub(super) fn on_stall(&mut self, now: Instant) -> u32 {
        let lost_before = self.lost();
        // The tail of a message has no successors whose arrival would reveal its loss.
        let most = if self.stalls == 0 { MAX_STALLED } else { MAX_STALLED_AGAIN };
        for block in &mut self.blocks {
            block.give_up(most);
        }
        self.timed = None;
        self.since = now;
        self.stalls = self.stalls.saturating_add(1);
        self.lost().saturating_sub(lost_before)
    }

    fn losses(&self) -> Losses {
        let arrived = self.blocks.iter().map(|block| block.arrived).fold(0, u32::saturating_add);
        Losses { arrived, lost: self.lost() }
    }

    /// The losses that are made up for before they are known: in a stall, the last symbols of a
    /// block have no successors that would reveal their loss.
    fn expected_losses(&self) -> Losses {
        if self.stalls > 0 { self.losses() } else { Losses::default() }
    }

    fn lost(&self) -> u32 {
        self.blocks.iter().map(Block::lost).fold(0, u32::saturating_add)
    }

    fn outstanding(&self) -> u32 {
        self.blocks.iter().map(Block::outstanding).fold(0, u32::saturating_add)
    }

    /// Panics if the state is inconsistent.
    pub(super) fn check_invariants(&self, layout: &Layout) {
        assert!(self.blocks.is_sorted_by_key(|block| block.index), "blocks in order");
        assert!((self.next as usize) <= layout.blocks(), "block {} of {layout:?}", self.next);
        for block in &self.blocks {
            assert!(block.index < self.next, "block {} has begun", block.index);
            assert!(block.settled <= block.arrived, "{block:?}: more settled than arrived");
            assert!(block.passed <= block.sent(), "{block:?}: more passed than were sent");
            let end = block.passed + (TRIMMED - block.trimmed.leading_zeros());
            assert!(block.trimmed == 0 || end <= block.sent(), "{block:?}: trimmed and not sent");
        }
    }
}

impl Block {
    /// Of the `unscheduled` symbols that the sender announces, those that the block opens with. Later
    /// additions are probes of paths and retries, which do not widen the window.
    const fn opening(&self, unscheduled: u32) -> u32 {
        if self.unscheduled == 0 { unscheduled } else { 0 }
    }

    fn on_arrival(&mut self, symbol: u32, unscheduled: u32, number: u64, needed: u32) {
        self.on_sent(symbol.saturating_add(1), unscheduled);
        self.needed = needed;
        self.arrived += 1;
        self.trimmed &= !self.trimmed_bit(symbol);
        if symbol < self.passed {
            self.settled += 1;
            return;
        }
        if self.recent.is_full() {
            self.pass_first();
        }
        // Paths differ in delay, so symbols may arrive out of order.
        let at = self.recent.partition_point(|&(before, _)| before < number);
        self.recent.insert(at, (number, symbol));
    }

    /// Records that `sent` symbols of the block have been sent, and that `unscheduled` are sent
    /// unscheduled.
    fn on_sent(&mut self, sent: u32, unscheduled: u32) {
        self.unscheduled = self.unscheduled.max(unscheduled);
        // If this receiver has forgotten the message, the block begins in the middle: earlier
        // symbols count as pulled.
        self.credit = self.credit.max(sent.saturating_sub(self.unscheduled));
    }

    /// Records that the first `sent` symbols of the block are no longer in flight.
    fn pass_all(&mut self, sent: u32) {
        while self.recent.first().is_some_and(|&(_, symbol)| symbol < sent) {
            self.pass_first();
        }
        self.pass_up_to(sent);
    }

    /// Records that symbols below `symbol` are no longer in flight.
    fn pass_up_to(&mut self, symbol: u32) {
        let by = symbol.saturating_sub(self.passed);
        self.passed += by;
        self.trimmed = self.trimmed.checked_shr(by).unwrap_or(0);
    }

    /// The bit of a symbol in `trimmed`, if it has one.
    fn trimmed_bit(&self, symbol: u32) -> u128 {
        let place = symbol.checked_sub(self.passed).filter(|&place| place < TRIMMED);
        place.map_or(0, |place| 1 << place)
    }

    /// Records that symbols sent before packet `horizon` are no longer in flight.
    fn pass(&mut self, horizon: u64) {
        while self.recent.first().is_some_and(|&(number, _)| number <= horizon) {
            self.pass_first();
        }
    }

    fn pass_first(&mut self) {
        if let Some((_, symbol)) = self.recent.pop_at(0) {
            self.pass_up_to(symbol.saturating_add(1));
            self.settled += 1;
        }
    }

    /// Counts outstanding symbols as lost, at most `most` of them.
    fn give_up(&mut self, most: u32) {
        while !self.recent.is_empty() {
            self.pass_first();
        }
        // Trimmed symbols may be among them, and are already lost.
        let lost = self.outstanding().min(most) + self.trimmed.count_ones();
        let passed = self.passed.max(self.settled).saturating_add(lost);
        // A sender that repeats symbols has more arrivals than it has sent symbols.
        self.pass_up_to(passed.min(self.sent()));
    }

    /// Symbols that may have been sent.
    const fn sent(&self) -> u32 {
        self.unscheduled.saturating_add(self.credit)
    }

    const fn lost(&self) -> u32 {
        self.passed.saturating_sub(self.settled) + self.trimmed.count_ones()
    }

    const fn outstanding(&self) -> u32 {
        self.sent().saturating_sub(self.arrived).saturating_sub(self.lost())
    }

    /// Whether the outstanding symbols would not complete the block, with these losses among them.
    fn wants(&self, expected: Losses) -> bool {
        self.outstanding() < expected.make_up(self.needed)
    }

    fn credit(&self) -> PullCredit {
        PullCredit { block: self.index, credit: self.credit, fin: !self.wants(Losses::default()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten blocks of 100 symbols of 16 bytes, or nearly.
    fn layout() -> Layout {
        Layout::new(15_000, 16).unwrap()
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// Handles the arrival of a symbol on the only path, after which its block needs `needed` more.
    fn arrive(pulling: &mut Pulling, symbol: u32, needed: u32) -> u32 {
        let number = symbol.into();
        let arrival = Arrival { block: 0, symbol, unscheduled: 4, number, horizon: number, needed };
        pulling.on_arrival(at(symbol.into()), arrival, &layout(), &mut RoundTrip::default())
    }

    #[test]
    fn each_arrival_and_each_loss_is_pulled_for_once_and_a_window_more_if_half_is_lost() {
        let mut pulling = Pulling::default();
        let layout = layout();
        assert_eq!(arrive(&mut pulling, 0, 50), 0);
        let credit = |pulling: &mut Pulling| pulling.pull(at(9), &layout).map(|it| it.credit);
        assert_eq!([credit(&mut pulling), credit(&mut pulling)], [Some(1), None]);
        // Symbols 1 and 2 were sent before symbol 3, on the same path.
        assert_eq!(arrive(&mut pulling, 3, 49), 2);
        let more: Vec<_> = core::iter::from_fn(|| credit(&mut pulling)).collect();
        assert_eq!(more, [2, 3, 4, 5, 6, 7, 8]);
        pulling.check_invariants(&layout);
    }

    #[test]
    fn each_trimmed_symbol_is_pulled_for_once_and_those_before_it_are_still_in_flight() {
        let mut pulling = Pulling::default();
        let layout = layout();
        let trim = |pulling: &mut Pulling, symbol| {
            let lost = pulling.on_trimmed(at(1), 0, symbol, 4, &layout);
            pulling.check_invariants(&layout);
            lost
        };
        assert_eq!([trim(&mut pulling, 3), trim(&mut pulling, 3)], [1, 0], "the first to arrive");
        assert_eq!(pulling.outstanding(), 3);
        assert_eq!(pulling.pull(at(2), &layout).map(|it| it.credit), Some(1));
        assert_eq!(pulling.pull(at(2), &layout), None);
        assert_eq!(trim(&mut pulling, 1), 1);
        // The symbols that were overtaken arrive, then the pulled one: nothing more is lost.
        assert_eq!([arrive(&mut pulling, 0, 90), arrive(&mut pulling, 2, 89)], [0, 0]);
        assert_eq!([arrive(&mut pulling, 4, 88), pulling.lost()], [0, 2]);
        assert_eq!(trim(&mut pulling, 1), 0, "known already");
        // The whole packet may arrive after all, if it was duplicated.
        arrive(&mut pulling, 3, 87);
        assert_eq!(pulling.lost(), 1);
        pulling.check_invariants(&layout);
    }

    #[test]
    fn a_stall_gives_up_all_that_is_outstanding_behind_trimmed_symbols() {
        let mut pulling = Pulling::default();
        let layout = layout();
        for symbol in [1, 2] {
            assert_eq!(pulling.on_trimmed(at(1), 0, symbol, 4, &layout), 1);
        }
        assert_eq!(pulling.on_stall(at(1_000)), 2);
        assert_eq!((pulling.outstanding(), pulling.lost()), (0, 4));
        pulling.check_invariants(&layout);
    }

    #[test]
    fn no_more_is_pulled_than_completes_the_block_and_then_of_the_next() {
        let mut pulling = Pulling::default();
        let layout = layout();
        arrive(&mut pulling, 0, 3);
        let next = pulling.pull(at(9), &layout).unwrap();
        assert_eq!(next, PullCredit { block: 1, credit: 1, fin: false });
        assert!(pulling.credit(0).fin, "three are on their way");
    }

    #[test]
    fn a_stall_gives_up_what_is_outstanding_and_the_next_ones_two_symbols_each() {
        let mut pulling = Pulling::default();
        let layout = layout();
        arrive(&mut pulling, 0, 50);
        pulling.pull(at(9), &layout).unwrap();
        let rto = Duration::from_micros(500);
        assert_eq!(pulling.stalls_at(rto, pulling.missing(&layout).is_some()), Some(at(509)));
        assert_eq!(pulling.on_stall(at(509)), 4);
        let may_pull = pulling.missing(&layout).is_some();
        assert_eq!(pulling.stalls_at(rto, may_pull), None, "others are pulled instead");
        while pulling.pull(at(600), &layout).is_some() {}
        assert_eq!([pulling.on_stall(at(1_100)), pulling.on_stall(at(2_100))], [2, 2]);
        // The symbol pulled last arrives: of eight pulled anew, the three that had not been given up
        // are lost.
        let before = pulling.credit(0).credit;
        assert_eq!(arrive(&mut pulling, 4 + before - 1, 49), 3);
        pulling.check_invariants(&layout);
    }

    #[test]
    fn a_message_that_begins_with_a_probe_does_not_stall_before_that_is_due() {
        let mut pulling = Pulling::default();
        let layout = layout();
        let rto = Duration::from_micros(500);
        let now = 60_000_000;
        pulling.on_probe(0, 4, 4, at(now), &layout);
        let may_pull = pulling.missing(&layout).is_some();
        assert_eq!(pulling.stalls_at(rto, may_pull), Some(at(now) + rto));
        assert_eq!(pulling.on_probes_due(at(now)), 4);
    }

    #[test]
    fn probes_of_paths_and_retries_do_not_widen_the_window() {
        let mut pulling = Pulling::default();
        let layout = layout();
        arrive(&mut pulling, 0, 50);
        let arrival =
            Arrival { block: 0, symbol: 1, unscheduled: 40, number: 1, horizon: 1, needed: 49 };
        pulling.on_arrival(at(1), arrival, &layout, &mut RoundTrip::default());
        assert_eq!(pulling.window, 4);
        assert_eq!(pulling.outstanding(), 38, "they are on their way for all that");
    }

    #[test]
    fn a_probe_tells_what_was_lost_when_it_is_due() {
        let mut pulling = Pulling::default();
        let layout = layout();
        pulling.on_probe(0, 4, 4, at(100), &layout);
        assert_eq!(pulling.probes_due(), Some(at(100)));
        assert_eq!(pulling.missing(&layout), None, "all may still come");
        assert_eq!(arrive(&mut pulling, 1, 90), 1);
        assert_eq!(pulling.on_probes_due(at(100)), 2);
        assert_eq!(pulling.probes_due(), None);
        pulling.check_invariants(&layout);
    }
}
