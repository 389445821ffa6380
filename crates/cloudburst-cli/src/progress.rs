//! The progress line of a file in transfer.

use crate::text;
use cloudburst_program::escaped;
use core::time::Duration;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::time::Instant;

/// The time over which the rate is averaged. When nothing has moved for this long, the line shows it.
const WINDOW: Duration = Duration::from_secs(2);
/// The least time between two redraws of the line.
const EVERY: Duration = Duration::from_millis(100);

/// The name takes the remaining columns, 24 of 80, and is cut to fit.
const WITH_SIZE: &str =
    "{wide_msg} {bar:12} {decimal_bytes:>9}/{decimal_total_bytes:9} {prefix:20}";
const WITHOUT_SIZE: &str = "{wide_msg} {spinner} {decimal_bytes:>9} {prefix:20}";

/// The progress line of one file. It costs next to nothing while it is not shown.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: MultiProgress,
    bar: ProgressBar,
    is_shown: bool,
    position: u64,
    rate: Rate,
    drawn: Option<Instant>,
    /// Shown instead of the rate, while no bytes move.
    other: Option<&'static str>,
}

impl Progress {
    /// Adds a line to `bars` for a file whose name may have any characters.
    pub(crate) fn new(bars: &MultiProgress, now: Instant, name: &str, size: Option<u64>) -> Self {
        // Hidden until it is styled and added: each change before would leave a line on the screen.
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = if size.is_some() { WITH_SIZE } else { WITHOUT_SIZE };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(escaped(name).into_owned());
        let bar = bars.add(bar);
        let is_shown = !bar.is_hidden();
        let bars = bars.clone();
        let rate = Rate::new(now, 0);
        Self { bars, bar, is_shown, position: 0, rate, drawn: None, other: None }
    }

    /// Whether the line is shown.
    pub(crate) const fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Starts at `position`: the bytes before it are left from an earlier attempt.
    pub(crate) fn resume(&mut self, now: Instant, position: u64) {
        self.position = position;
        self.rate = Rate::new(now, position);
    }

    /// Sets the number of bytes transferred.
    pub(crate) const fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Notes that part of a chunk has arrived, which the position does not show.
    pub(crate) const fn note_activity(&mut self, now: Instant) {
        self.rate.moved = now;
    }

    /// Shows `what` instead of a rate from now on.
    pub(crate) const fn wait_for(&mut self, what: &'static str) {
        self.other = Some(what);
    }

    /// Redraws the line if it is due.
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
        // Otherwise hidden bars would be kept forever if they do not end in the order in which they began.
        self.bars.remove(&self.bar);
    }
}

/// The recent rate of bytes.
#[derive(Debug)]
struct Rate {
    /// The positions during the last [`WINDOW`], with their times; never empty.
    samples: VecDeque<(Instant, u64)>,
    /// When something last moved.
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
        // The oldest sample kept is at least as old as the window.
        while self.samples.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Formats the bytes per second and the time left at this rate, or for how long nothing has moved.
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
        format!("{}/s{}", text::bytes(rate as u64), left.unwrap_or_default())
    }
}

/// Formats minutes and seconds, with hours if there are any.
fn clock(seconds: u64) -> String {
    let hours = seconds / 3600;
    let minutes = seconds / 60 % 60;
    let seconds = seconds % 60;
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
        assert_eq!(rate.text(now, None), "5.00 MB/s");
        assert_eq!(rate.text(now, Some(325_000_000)), "5.00 MB/s 1:01");
        assert!(rate.samples.len() <= 21, "{}", rate.samples.len());
    }

    #[test]
    fn the_rate_begins_with_the_transfer() {
        let (rate, now) = seen([200_000, 400_000]);
        assert_eq!(rate.text(now, None), "2.00 MB/s");
        let now = Instant::now();
        assert_eq!(Rate::new(now, 0).text(now, Some(1)), "");
    }

    #[test]
    fn a_transfer_without_progress_is_shown_as_stalled() {
        let (mut rate, now) = seen([1_000_000; 11]);
        assert_eq!(rate.text(now, None), "909.09 kB/s", "of 1.1 s");
        assert_eq!(rate.text(now + 999 * MS, None), "476.42 kB/s");
        assert_eq!(rate.text(now + 1000 * MS, None), "stalled 2 s");
        assert_eq!(rate.text(now + 2500 * MS, None), "stalled 3 s");
        rate.sample(now + 2600 * MS, 1_000_001);
        assert!(rate.text(now + 2600 * MS, None).ends_with("/s"));
    }

    #[test]
    fn cleared_lines_take_no_memory() {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let line = || Progress::new(&bars, Instant::now(), "a", Some(1));
        let overlap = |times| {
            for _ in 0..times {
                let first = line();
                let second = line();
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
