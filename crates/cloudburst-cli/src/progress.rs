//! The line on the terminal for a file under way.

use crate::ui;
use core::time::Duration;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::time::Instant;

/// What the rate is an average over; when nothing moves for so long, the line says so.
const WINDOW: Duration = Duration::from_secs(2);
/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// 80 columns leave 24 for the name, which takes all that is left and is cut.
const WITH_SIZE: &str =
    "{wide_msg} {bar:12} {decimal_bytes:>9}/{decimal_total_bytes:9} {prefix:20}";
const WITHOUT_SIZE: &str = "{wide_msg} {spinner} {decimal_bytes:>9} {prefix:20}";

/// One line for one file. It costs nothing where nobody sees it.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: MultiProgress,
    bar: ProgressBar,
    is_shown: bool,
    position: u64,
    rate: Rate,
    drawn: Option<Instant>,
    /// What is being done instead of moving bytes.
    other: Option<&'static str>,
}

impl Progress {
    /// A line among `bars` for a file whose name may have any characters.
    pub(crate) fn new(bars: &MultiProgress, now: Instant, name: &str, size: Option<u64>) -> Self {
        // Hidden until it has its style and belongs to the others: each change would leave a line.
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = if size.is_some() { WITH_SIZE } else { WITHOUT_SIZE };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(ui::escaped(name).into_owned());
        let bar = bars.add(bar);
        let is_shown = !bar.is_hidden();
        let (bars, rate) = (bars.clone(), Rate::new(now, 0));
        Self { bars, bar, is_shown, position: 0, rate, drawn: None, other: None }
    }

    /// Whether anybody sees the line.
    pub(crate) const fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// So many bytes are there from an earlier attempt.
    pub(crate) fn resume(&mut self, now: Instant, position: u64) {
        self.position = position;
        self.rate = Rate::new(now, position);
    }

    /// So many bytes of the file are there.
    pub(crate) const fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Part of a chunk has arrived, which the position does not show.
    pub(crate) const fn stir(&mut self, now: Instant) {
        self.rate.moved = now;
    }

    /// From here on the line says `what` instead of a rate.
    pub(crate) const fn wait_for(&mut self, what: &'static str) {
        self.other = Some(what);
    }

    /// Draws the line again if it is time to.
    pub(crate) fn tick(&mut self, now: Instant) {
        if !self.is_shown || self.drawn.is_some_and(|drawn| now.duration_since(drawn) < EVERY) {
            return;
        }
        self.drawn = Some(now);
        self.rate.sample(now, self.position);
        self.bar.set_position(self.position);
        self.bar.set_prefix(match self.other {
            Some(what) => what.to_owned(),
            None => self.rate.text(now, self.bar.length()),
        });
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
        // Else those that nobody sees are kept for ever when they do not end in the order in which they began.
        self.bars.remove(&self.bar);
    }
}

/// How fast bytes have come recently.
#[derive(Debug)]
struct Rate {
    /// The times of the last [`WINDOW`] and the positions then; never empty.
    samples: VecDeque<(Instant, u64)>,
    /// When something was seen to move.
    moved: Instant,
}

impl Rate {
    fn new(now: Instant, position: u64) -> Self {
        Self { samples: VecDeque::from([(now, position)]), moved: now }
    }

    fn sample(&mut self, now: Instant, position: u64) {
        if self.samples.back().is_some_and(|(_, before)| *before != position) {
            self.moved = now;
        }
        self.samples.push_back((now, position));
        // The oldest one is as old as the window, or older.
        while self.samples.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Bytes a second and the time that is left at this rate; or since when nothing has moved.
    fn text(&self, now: Instant, size: Option<u64>) -> String {
        let still = now.duration_since(self.moved);
        if still >= WINDOW {
            return format!("stalled {} s", still.as_secs());
        }
        let (Some((since, before)), Some((_, position))) =
            (self.samples.front(), self.samples.back())
        else {
            return String::new();
        };
        let seconds = now.duration_since(*since).as_secs_f64();
        let rate = position.saturating_sub(*before) as f64 / seconds;
        if !rate.is_normal() {
            return String::new();
        }
        let left = size.map(|size| size.saturating_sub(*position) as f64 / rate);
        let left = left.map(|seconds| format!(" {}", clock(seconds.ceil() as u64)));
        format!("{}/s{}", ui::bytes(rate as u64), left.unwrap_or_default())
    }
}

/// Minutes and seconds, with hours where there are any.
fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        1..100 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => "days".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A rate that has seen `positions`, one each 100 ms, and the time of the last.
    fn seen(positions: impl IntoIterator<Item = u64>) -> (Rate, Instant) {
        let mut now = Instant::now();
        let mut rate = Rate::new(now, 0);
        for position in positions {
            now += EVERY;
            rate.sample(now, position);
        }
        (rate, now)
    }

    #[test]
    fn the_rate_is_that_of_the_last_two_seconds() {
        // Ten seconds at 1 MB/s, then two at 5.
        let slow = (1..=100).map(|tick| tick * 100_000);
        let fast = (1..=20).map(|tick| 10_000_000 + tick * 500_000);
        let (rate, now) = seen(slow.chain(fast));
        assert_eq!(rate.text(now, None), "5.0 MB/s");
        assert_eq!(rate.text(now, Some(325_000_000)), "5.0 MB/s 1:01");
        assert!(rate.samples.len() <= 21, "{}", rate.samples.len());
    }

    #[test]
    fn the_rate_begins_with_the_transfer() {
        let (rate, now) = seen([200_000, 400_000]);
        assert_eq!(rate.text(now, None), "2.0 MB/s");
        let now = Instant::now();
        assert_eq!(Rate::new(now, 0).text(now, Some(1)), "");
    }

    #[test]
    fn what_does_not_move_is_stalled_until_it_does() {
        let (mut rate, now) = seen([1_000_000; 11]);
        assert_eq!(rate.text(now, None), "909.1 kB/s", "of 1.1 s");
        assert_eq!(rate.text(now + 999 * MS, None), "476.4 kB/s");
        assert_eq!(rate.text(now + 1000 * MS, None), "stalled 2 s");
        assert_eq!(rate.text(now + 2500 * MS, None), "stalled 3 s");
        rate.sample(now + 2600 * MS, 1_000_001);
        assert!(rate.text(now + 2600 * MS, None).ends_with("/s"));
    }

    #[test]
    fn lines_that_were_cleared_take_no_memory() {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let line = || Progress::new(&bars, Instant::now(), "a", Some(1));
        let overlap = |times| {
            for _ in 0..times {
                let (first, second) = (line(), line());
                second.clear();
                drop(second);
                first.clear();
            }
            format!("{bars:?}").len()
        };
        let few = overlap(2);
        assert_eq!(overlap(32), few, "{bars:?}");
    }

    #[test]
    fn times_are_short() {
        for (seconds, text) in
            [(0, "0:00"), (61, "1:01"), (3661, "1:01:01"), (359_999, "99:59:59"), (360_000, "days")]
        {
            assert_eq!(clock(seconds), text);
        }
    }
}
