//! Scratch memory for solving a block, without meaning before or after.
//!
//! Each thread has one workspace, allocated as far as blocks have needed it, so that a decoder that
//! waits for symbols holds only their memory.

use std::cell::RefCell;

use super::kernel::Program;
use super::linear_solve::Solver;

/// The scratch memory for solving.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// For linear codes over GF(2^8).
    pub(super) solver: Solver,
    /// For LT: the program, and its cells.
    pub(super) program: Program,
    pub(super) cells: Vec<u8>,
}

/// Lends the workspace of this thread.
pub(super) fn with<R>(solve: impl FnOnce(&mut Workspace) -> R) -> R {
    thread_local! {
        // Per thread and not per decoder: a waiting decoder holds only the memory that receivers
        // account for.
        static WORKSPACE: RefCell<Workspace> = RefCell::default();
    }
    WORKSPACE.with_borrow_mut(solve)
}
