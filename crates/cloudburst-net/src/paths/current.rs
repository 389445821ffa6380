//! The path map of an endpoint, which can be replaced while it runs.

use super::addresses::Addresses;
use super::resolve::Resolver;
use super::watch::Watch;
use crate::io::UdpIo;
use crate::path_map::{PathMap, PathMapError};
use cloudburst_core::burst::Engine;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The path map that an endpoint uses, and the watch on its file.
#[derive(Debug)]
pub(crate) struct Paths {
    resolver: Resolver,
    /// Held while the map is replaced.
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    /// The map that the order fits.
    whole: PathMap,
    watch: Option<Watch>,
    /// How often the map was replaced, which gives each watch a number of its own.
    replaced: u64,
}

impl Paths {
    pub(crate) const fn new(resolver: Resolver, map: PathMap) -> Self {
        let current = Mutex::new(Current { whole: map, watch: None, replaced: 0 });
        Self { resolver, current }
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.resolver.addresses
    }

    /// Replaces the map, and watches the file of the new one, if it has one, instead of that of the previous
    /// one.
    pub(crate) fn set(
        self: &Arc<Self>,
        map: PathMap,
        engine: &Arc<Engine<UdpIo>>,
    ) -> Result<(), PathMapError> {
        let mut current = self.lock();
        let number = current.replaced + 1;
        let watch = self.start_watch(&map, number, engine);
        let watch = watch.map_err(|error| map.unwatched(&error))?;
        self.replace(&mut current, map, engine)?;
        current.watch = watch;
        Ok(())
    }

    /// Watches the file of `map`, if it has one.
    pub(crate) fn watch(
        self: &Arc<Self>,
        map: &PathMap,
        engine: &Arc<Engine<UdpIo>>,
    ) -> io::Result<()> {
        let mut current = self.lock();
        current.watch = self.start_watch(map, current.replaced, engine)?;
        Ok(())
    }

    pub(crate) fn unwatch(&self) {
        self.lock().watch = None;
    }

    fn start_watch(
        self: &Arc<Self>,
        map: &PathMap,
        number: u64,
        engine: &Arc<Engine<UdpIo>>,
    ) -> io::Result<Option<Watch>> {
        let paths = Arc::downgrade(self);
        let engine = Arc::downgrade(engine);
        let replace = move |map| paths.upgrade()?.replace_watched(map, number, &*engine.upgrade()?);
        Watch::start(map, number, replace)
    }

    /// Applies the new contents of the watched file. Returns `None`, and does nothing, if another map was set
    /// meanwhile.
    fn replace_watched(
        &self,
        map: PathMap,
        number: u64,
        engine: &Engine<UdpIo>,
    ) -> Option<Result<(), PathMapError>> {
        let mut current = self.lock();
        let is_watched = current.watch.as_ref().is_some_and(|watch| watch.number == number);
        is_watched.then(|| self.replace(&mut current, map, engine))
    }

    fn replace(
        &self,
        current: &mut Current,
        map: PathMap,
        engine: &Engine<UdpIo>,
    ) -> Result<(), PathMapError> {
        let resolved = self.resolver.resolve(map, &current.whole, engine.io())?;
        let whole = resolved.whole.clone();
        engine.set_path_resolver(Arc::new(resolved))?;
        current.whole = whole;
        current.replaced += 1;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use cloudburst_core::config::Security;

    #[test]
    fn a_file_that_changes_does_not_overrule_a_map_that_was_set_meanwhile() {
        let loopback = "127.0.0.1:0".parse().unwrap();
        let builder = Endpoint::builder().bind(loopback).security(Security::pre_shared([7; 32]));
        let endpoint = builder.build().unwrap();
        endpoint.set_paths(PathMap::ecmp(4)).unwrap();
        let paths = &endpoint.inner.paths;
        let engine = &endpoint.inner.engine;
        assert_eq!(paths.replace_watched(PathMap::ecmp(2), 0, engine), None);
        assert_eq!(paths.lock().whole, PathMap::ecmp(4));
    }
}
