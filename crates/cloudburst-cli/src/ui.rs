//! Output for the user: status and progress on standard error, results on standard output.

use crate::Exit;
use crate::progress::Progress;
use crate::text;
use cloudburst_program::complain;
use indicatif::{MultiProgress, ProgressDrawTarget};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The output of one program. Bars are drawn only on a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    program: &'static str,
    quiet: bool,
    json: Option<JsonTo>,
    /// Whether an object could not be written.
    lost: Arc<AtomicBool>,
    bars: MultiProgress,
}

/// The stream that JSON objects are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonTo {
    StandardOutput,
    StandardError,
}

/// The result of one file, as `--json` prints it, or of a run that ended before its first file.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report<'a> {
    /// The path of the file that was sent or stored. None: there was no file.
    pub(crate) file: Option<String>,
    /// Its name at the receiver.
    pub(crate) name: Option<&'a str>,
    /// The other end.
    pub(crate) peer: Option<String>,
    /// "done", "failed", or "unknown" where this end cannot know.
    pub(crate) outcome: &'static str,
    /// What went wrong.
    pub(crate) error: Option<String>,
    /// Bytes that arrived in this run.
    pub(crate) bytes: u64,
    /// Bytes that the receiver had from an earlier attempt.
    pub(crate) resumed: u64,
    /// Time from the offer to the end.
    pub(crate) seconds: f64,
    /// BLAKE3 of the file, if all of it was read or written.
    pub(crate) digest: Option<String>,
    /// Packets that were sent for the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets: Option<u64>,
    /// Packets sent for each one that a link without loss would have needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redundancy: Option<f64>,
}

/// Writes a result. A closed pipe is not an error: its reader has seen enough.
///
/// # Errors
///
/// If it cannot be written for any other reason.
pub(crate) fn print(to: JsonTo, text: &str) -> io::Result<()> {
    let written = match to {
        JsonTo::StandardOutput => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }
        JsonTo::StandardError => io::stderr().write_all(text.as_bytes()),
    };
    written.or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

impl Report<'_> {
    /// Returns the object of a run that ended with `error` before its first file.
    pub(crate) fn of_no_file(error: String) -> Self {
        Self { outcome: "failed", error: Some(error), ..Self::default() }
    }

    /// Formats the object, on one line.
    pub(crate) fn to_json(&self) -> String {
        // JSON can express all its values.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Returns the text of an error to write a result.
pub(crate) fn unwritable(error: &io::Error) -> String {
    format!("cannot write to standard output: {error}")
}

impl Ui {
    /// Creates the output of `program`, with only errors if it is `quiet`. JSON objects, if wanted, go to `json`.
    pub(crate) fn new(program: &'static str, quiet: bool, json: Option<JsonTo>) -> Self {
        let bars = MultiProgress::new();
        if quiet {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let ui = Self { program, quiet, json, lost: Arc::default(), bars };
        let level = if quiet { LevelFilter::ERROR } else { LevelFilter::WARN };
        // Fails if a subscriber is installed already, which then stays.
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(ui.clone())
            .with_ansi(io::stderr().is_terminal())
            .without_time()
            .with_target(false)
            .try_init();
        ui
    }

    /// Prints a status line, unless `--quiet` is given.
    pub(crate) fn status(&self, line: &str) {
        if !self.quiet {
            self.notice(line);
        }
    }

    /// Prints a line even if `--quiet` is given.
    pub(crate) fn notice(&self, line: &str) {
        self.bars.suspend(|| complain(line));
    }

    /// Prints an error.
    pub(crate) fn error(&self, line: &str) {
        self.notice(&format!("{}: {line}", self.program));
    }

    /// Prints the result of a file if `--json` is given.
    pub(crate) fn report(&self, report: &Report<'_>) {
        let Some(to) = self.json else { return };
        if let Err(error) = self.bars.suspend(|| print(to, &report.to_json()))
            && !self.lost.swap(true, Ordering::Relaxed)
        {
            self.error(&unwritable(&error));
        }
    }

    /// Returns the exit code of a run that has come to `exit`, which is no success if an object was lost.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        if self.lost.load(Ordering::Relaxed) { exit.max(Exit::Failed) } else { exit }
    }

    /// Creates the progress line of a file.
    pub(crate) fn progress(&self, name: &str, size: Option<u64>) -> Progress {
        Progress::new(&self.bars, Instant::now(), name, size)
    }
}

/// The end of a warning about what `--insecure` means, which whoever gives the option knows.
const CHOSEN: &str = "`Security::trusted_network` was chosen";

/// Warnings of the libraries take this way, so that bars do not garble them.
impl MakeWriter<'_> for Ui {
    type Writer = LineWriter;

    fn make_writer(&self) -> LineWriter {
        LineWriter { bars: self.bars.clone() }
    }
}

/// Writes whole lines between the bars.
#[derive(Debug)]
pub(crate) struct LineWriter {
    bars: MultiProgress,
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if !text.contains(CHOSEN) {
            let text = text::with_options(&text);
            self.bars.suspend(|| io::stderr().write_all(text.as_bytes()))?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
