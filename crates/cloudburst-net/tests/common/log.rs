//! A subscriber that keeps what was logged.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the lines that were logged on one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// Warnings that contain `about`.
    pub(crate) fn warnings(&self, about: &str) -> usize {
        let lines = self.0.lock().expect("no panic");
        lines.iter().filter(|(level, line)| *level == Level::WARN && line.contains(about)).count()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").expect("strings take everything");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no panic").push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
