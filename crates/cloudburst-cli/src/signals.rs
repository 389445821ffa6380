//! Ctrl-C and its kin: the main thread ends in order, and if it cannot, the process ends anyway.

use crate::Exit;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io, process, thread};

/// How long the main thread may take to end: it may be stuck in a write to standard error.
const GRACE: Duration = Duration::from_secs(3);

/// Whether somebody wants the program to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    /// What must not remain, whoever ends the process.
    leftovers: Mutex<Option<PathBuf>>,
}

impl Interrupts {
    /// To be called by the main thread before there are others: they inherit the signal mask.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupts = Self::default();
        let signals = cloudburst_program::block_signals()?;
        let (shared, main) = (interrupts.shared.clone(), thread::current());
        thread::Builder::new().name("signals".into()).spawn(move || {
            while signals.wait().is_ok() {
                if shared.stopped.swap(true, Ordering::SeqCst) {
                    shared.abandon();
                }
                main.unpark();
                let shared = shared.clone();
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    shared.abandon();
                });
            }
        })?;
        Ok(interrupts)
    }

    /// Whether to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Names the directory that must not outlive the process.
    pub(crate) fn clean_up(&self, leftovers: PathBuf) {
        let mut slot = self.shared.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(leftovers);
    }
}

impl Shared {
    fn abandon(&self) -> ! {
        let leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leftovers) = &*leftovers {
            let _ = fs::remove_dir_all(leftovers);
        }
        process::exit(Exit::Interrupted as i32)
    }
}
