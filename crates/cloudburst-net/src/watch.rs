//! A path map file that is looked at while its endpoint runs.

use crate::inner::Inner;
use crate::path_map::PathMap;
use core::time::Duration;
use std::path::Path;
use std::sync::Weak;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::{io, thread};

/// How often the file is read. It is a few kilobytes in the system's cache, and reading it finds
/// whatever way of replacing it somebody has.
const EVERY: Duration = Duration::from_millis(500);

/// Watches as long as it lives.
#[derive(Debug)]
pub(crate) struct Watch {
    _stop: Sender<()>,
}

impl Watch {
    /// Has `endpoint` use what the file says, if `map` was read from one. `None`: it was not.
    pub(crate) fn start(map: &PathMap, endpoint: Weak<Inner>) -> io::Result<Option<Self>> {
        let Some((path, text)) = map.source() else { return Ok(None) };
        let (path, mut last) = (path.to_owned(), Ok(text.to_owned()));
        let (stop, stopped) = channel();
        let watch = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let read = PathMap::file(&path);
                let now = match &read {
                    Ok(map) => {
                        Ok(map.source().map(|(_, text)| text.to_owned()).unwrap_or_default())
                    }
                    Err(error) => Err(error.to_string()),
                };
                if now != last {
                    let Some(endpoint) = endpoint.upgrade() else { return };
                    apply(&path, read.and_then(|map| endpoint.replace_paths(map)));
                    last = now;
                }
            }
        };
        thread::Builder::new().name("cbrst-paths".into()).spawn(watch)?;
        Ok(Some(Self { _stop: stop }))
    }
}

fn apply(path: &Path, result: Result<(), crate::PathMapError>) {
    let path = path.display();
    match result {
        Ok(()) => tracing::info!(%path, "the path map file has changed, and is used"),
        Err(error) => tracing::warn!(%path, %error, "the path map stays as it was"),
    }
}
