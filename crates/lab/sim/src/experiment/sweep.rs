//! Running cells on many threads.

use super::{Case, Cell, Experiment, Failure, Outcome, Record, Scale};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

/// How often interruptions are checked for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A cell to run.
#[derive(Clone, Debug)]
pub struct Todo {
    /// Its experiment.
    pub experiment: &'static Experiment,
    /// The cell.
    pub cell: Cell,
    /// How much to simulate.
    pub scale: Scale,
    /// The seed of the run.
    pub seed: u64,
}

impl Todo {
    fn run(self) -> Result<Record, Failure> {
        let Self { experiment, cell, scale, seed } = self;
        let failed = |reason| Failure::Cell { cell: cell.to_string(), reason };
        // The simulation is created, run and dropped here, so it need not be `Send`.
        let run = || (experiment.run)(&Case::new(&cell, scale, seed));
        let outcome: Outcome = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed("it panicked".to_owned())),
        };
        Ok(Record { cell, outcome })
    }
}

struct Shared {
    all: Vec<Todo>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// Runs all cells on `jobs` threads and calls `done` with each as soon as it is finished. Returns `false` if
/// `interrupted` was set before all were finished; cells that are still running are then abandoned, and each
/// thread exits after its cell.
///
/// # Errors
///
/// A failure of `done`, immediately; or the first failure of a cell, after all others have run.
pub fn sweep(
    all: Vec<Todo>,
    jobs: usize,
    interrupted: &AtomicBool,
    mut done: impl FnMut(Record) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let count = all.len();
    let shared = Shared { all, next: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    let shared = Arc::new(shared);
    let (sender, finished) = mpsc::channel();
    for _ in 0..jobs.min(count) {
        let shared = shared.clone();
        let sender = sender.clone();
        let work = move || {
            while !shared.stopped.load(Ordering::Relaxed) {
                let next = shared.next.fetch_add(1, Ordering::Relaxed);
                let Some(todo) = shared.all.get(next) else { return };
                if sender.send(todo.clone().run()).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("cell".to_owned()).spawn(work);
        thread.map_err(|error| Failure::System(format!("cannot start a thread: {error}")))?;
    }
    let mut run = || {
        let mut failed = None;
        let mut left = count;
        while left > 0 {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match finished.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(record)) => done(record)?,
                Ok(Err(failure)) => _ = failed.get_or_insert(failure),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
            left -= 1;
        }
        failed.map_or(Ok(true), Err)
    };
    let result = run();
    shared.stopped.store(true, Ordering::Relaxed);
    result
}
