//! Signals that stop a program: the main thread ends in order, and if it cannot, the process ends anyway.

use crate::Exit;
use core::convert::Infallible;
use core::time::Duration;
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io, process, thread};

/// How long the main thread may take to end: it may be stuck in a write to standard error.
const GRACE: Duration = Duration::from_secs(3);

/// Whether the program is to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    stopped: Receiver<Infallible>,
    leftovers: Leftovers,
}

/// The directory to remove before the process ends.
#[derive(Clone, Debug, Default)]
struct Leftovers(Arc<Mutex<Option<PathBuf>>>);

impl Interrupts {
    /// Starts to watch for signals. Call it before starting other threads: they inherit the signal mask.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(crate) fn install() -> io::Result<Self> {
        let signals = cloudburst_program::block_signals()?;
        // Nothing is ever sent: all receivers see that the sender is gone, and none consumes it.
        let (stop, stopped) = bounded(0);
        let interrupts = Self { stopped, leftovers: Leftovers::default() };
        let leftovers = interrupts.leftovers.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            let mut stop = Some(stop);
            while signals.wait().is_ok() {
                if stop.take().is_none() {
                    leftovers.abandon();
                }
                let leftovers = leftovers.clone();
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    leftovers.abandon();
                });
            }
        })?;
        Ok(interrupts)
    }

    /// Whether to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.stopped.try_recv(), Err(TryRecvError::Disconnected))
    }

    /// The channel that is disconnected when the program is to stop.
    pub(crate) const fn stopped(&self) -> &Receiver<Infallible> {
        &self.stopped
    }

    /// Names the directory that must not outlive the process.
    pub(crate) fn clean_up(&self, leftovers: PathBuf) {
        let mut slot = self.leftovers.0.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(leftovers);
    }
}

/// Ends the process at the first signal. Call it before starting other threads: they inherit the signal mask.
///
/// # Errors
///
/// If the system refuses a thread.
pub(crate) fn exit_at_once() -> io::Result<()> {
    let signals = cloudburst_program::block_signals()?;
    let wait = move || {
        if signals.wait().is_ok() {
            Leftovers::default().abandon();
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

impl Leftovers {
    fn abandon(&self) -> ! {
        let leftovers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leftovers) = &*leftovers {
            let _ = fs::remove_dir_all(leftovers);
        }
        process::exit(Exit::Interrupted as i32)
    }
}
