//! Counts the peers, sessions and messages that are looked at, so that tests bound work without a
//! clock.

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// An entry of some collection was looked at.
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// How many entries `run` looks at.
#[cfg(test)]
pub(super) fn steps_of(run: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    run();
    STEPS.get() - before
}
