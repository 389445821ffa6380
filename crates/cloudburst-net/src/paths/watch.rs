//! Watches a path map file while its endpoint runs.

use crate::path_map::{self, PathMap, PathMapError};
use core::time::Duration;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::{io, thread};

/// How often the file is read.
// Read and not watched: that also detects a file that was renamed into place, one behind a link
// that was changed, and one on a file system that reports no changes. The file is in the page
// cache.
const EVERY: Duration = Duration::from_millis(500);

/// A watch, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) number: u64,
    _stop: Sender<()>,
}

impl Watch {
    /// Calls `replace` with the map in the file of `map` whenever it changes. `None` if `map` was not
    /// read from a file. The watch ends when `replace` returns `None`: the endpoint is gone, or has
    /// another map.
    ///
    /// `number` must differ from that of the previous watch.
    pub(crate) fn start(
        map: &PathMap,
        number: u64,
        replace: impl Fn(PathMap) -> Option<Result<(), PathMapError>> + Send + 'static,
    ) -> io::Result<Option<Self>> {
        let Some((path, text)) = map.source() else { return Ok(None) };
        let path = path.to_owned();
        let text = text.to_owned();
        let (stop, stopped) = channel();
        let watch = move || watch(&path, text, &stopped, &replace);
        thread::Builder::new().name("cbrst-paths".into()).spawn(watch)?;
        Ok(Some(Self { number, _stop: stop }))
    }
}

fn watch(
    path: &Path,
    text: String,
    stopped: &Receiver<()>,
    replace: &dyn Fn(PathMap) -> Option<Result<(), PathMapError>>,
) {
    let mut last = Ok(text);
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = path_map::read(path);
        if now == last {
            continue;
        }
        let map = now.clone().and_then(|text| PathMap::from_file(path, text));
        let replaced = match map {
            Ok(map) => replace(map),
            Err(error) => Some(Err(error)),
        };
        let Some(replaced) = replaced else { return };
        let path = path.display();
        match replaced {
            Ok(()) => tracing::info!(%path, "the path map file has changed: using the new map"),
            Err(error) => {
                tracing::warn!(%path, %error, "path map file refused: keeping the old map");
            }
        }
        last = now;
    }
}
