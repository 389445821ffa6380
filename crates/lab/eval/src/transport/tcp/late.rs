//! Copies that were not first. They continue on another thread than the caller's, and their
//! connections become idle once the whole response has arrived.

use super::exchange::{Exchange, poll_until};
use nix::poll::{PollFd, PollFlags};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A thread that reads responses that no call waits for. It ends when this is dropped.
pub(super) struct Late {
    added: Arc<Mutex<Vec<Exchange>>>,
    /// A byte announces more exchanges. The end of the pipe stops the thread.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Late {
    pub(super) fn open() -> Result<Self, String> {
        let (woken, wake) = pipe().map_err(|reason| format!("cannot open a pipe: {reason}"))?;
        let added = Arc::<Mutex<Vec<Exchange>>>::default();
        let shared = Arc::clone(&added);
        let thread = thread::Builder::new()
            .name("tcp late".into())
            .spawn(move || read_all(&shared, woken))
            .map_err(|reason| format!("cannot start a thread: {reason}"))?;
        Ok(Self { added, wake: Some(wake), thread: Some(thread) })
    }

    pub(super) fn take_over(&self, mut exchanges: Vec<Exchange>) {
        if exchanges.is_empty() {
            return;
        }
        self.added.lock().unwrap_or_else(PoisonError::into_inner).append(&mut exchanges);
        if let Some(mut wake) = self.wake.as_ref() {
            // This fails only if the thread has ended. The exchanges are then dropped with `self`.
            let _ = wake.write_all(&[0]);
        }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_all(added: &Mutex<Vec<Exchange>>, mut woken: PipeReader) {
    let mut running: Vec<Exchange> = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(woken.as_fd(), PollFlags::POLLIN)];
        fds.extend(running.iter().map(Exchange::poll_fd));
        let next = running.iter().map(|exchange| exchange.until).min();
        let Ok(ready) = poll_until(&mut fds, next) else { return };
        let now = Instant::now();
        let steps = running.into_iter().zip(&ready[1..]);
        running = steps.filter_map(|(exchange, ready)| step(exchange, *ready, now)).collect();
        if ready[0] {
            match woken.read(&mut [0; 64]) {
                Ok(0) => return,
                _ => {
                    running.append(&mut added.lock().unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }
}

/// Advances an exchange, and returns it if it is not over. If it fails or takes too long, its
/// connection is closed.
fn step(mut exchange: Exchange, is_ready: bool, now: Instant) -> Option<Exchange> {
    let advanced = if is_ready { exchange.advance() } else { Ok(false) };
    match advanced {
        Ok(true) => {
            exchange.finish();
            None
        }
        Ok(false) => (now < exchange.until).then_some(exchange),
        Err(_) => None,
    }
}
