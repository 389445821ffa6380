//! Memory that solving a block takes, and that means nothing before or after.
//!
//! There is one of it for each thread, allocated as far as blocks have needed it: a decoder that
//! waits for symbols holds no more than what it waits with.

use std::cell::RefCell;

use super::kernel::Program;
use super::linear_solve::Solver;

/// What solving works in.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// For linear codes over GF(2^8).
    pub(super) solver: Solver,
    /// For LT: what to do, and the cells that doing it takes.
    pub(super) program: Program,
    pub(super) cells: Vec<u8>,
}

/// Lends the workspace of this thread.
pub(super) fn with<R>(solve: impl FnOnce(&mut Workspace) -> R) -> R {
    thread_local! {
        static WORKSPACE: RefCell<Workspace> = RefCell::default();
    }
    WORKSPACE.with_borrow_mut(solve)
}
