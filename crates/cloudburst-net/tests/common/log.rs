//! A subscriber that keeps log records.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the log records of one thread or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    events: Vec<(Level, String)>,
    /// Names and fields.
    spans: Vec<(Level, String)>,
}

impl Log {
    /// Warnings that contain `about`.
    pub(crate) fn warnings(&self, about: &str) -> usize {
        self.events(Level::WARN, about).len()
    }

    /// Events of `level` that contain `about`.
    pub(crate) fn events(&self, level: Level, about: &str) -> Vec<String> {
        matching(&self.kept().events, level, about)
    }

    /// Spans of `level` whose name or fields contain `about`, as they are by now.
    pub(crate) fn spans(&self, level: Level, about: &str) -> Vec<String> {
        matching(&self.kept().spans, level, about)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("no panic")
    }
}

fn matching(lines: &[(Level, String)], level: Level, about: &str) -> Vec<String> {
    let wanted = lines.iter().filter(|(of, line)| *of == level && line.contains(about));
    wanted.map(|(_, line)| line.clone()).collect()
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").expect("strings take everything");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut line = format!("{} ", attributes.metadata().name());
        attributes.record(&mut Line(&mut line));
        let mut kept = self.kept();
        kept.spans.push((*attributes.metadata().level(), line));
        Id::from_u64(kept.spans.len() as u64)
    }

    fn record(&self, id: &Id, record: &Record<'_>) {
        let at = id.into_u64() as usize - 1;
        record.record(&mut Line(&mut self.kept().spans[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Line(&mut line));
        self.kept().events.push((*event.metadata().level(), line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
