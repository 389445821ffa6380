//! Counts the peers, sessions and messages that are visited, so that tests can bound work without a
//! clock.

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts a visit to an entry of a collection.
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The number of entries that `run` visits.
#[cfg(test)]
pub(super) fn steps_of(run: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    run();
    STEPS.get() - before
}
