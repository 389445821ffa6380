//! The shared buffer of a switch, with dynamic thresholds (Choudhury and Hahne,
//! IEEE/ACM Transactions on Networking 6(2), 1998).
//!
//! Each queue (a class at a port) has a reserve. Beyond it, a queue may hold up to alpha times the free shared
//! memory. A packet holds memory until it has left.

use std::cell::RefCell;
use std::rc::Rc;

/// The shared memory of a switch. Clones refer to the same memory.
#[derive(Clone, Debug)]
pub struct SharedBuffer(Rc<RefCell<Buffer>>);

#[derive(Debug)]
struct Buffer {
    /// Bytes, excluding the reserves.
    size: u64,
    used: u64,
    alpha: f64,
}

impl SharedBuffer {
    /// A buffer of `size` bytes, excluding the reserves.
    pub fn new(size: u64, alpha: f64) -> Self {
        Self(Rc::new(RefCell::new(Buffer { size, used: 0, alpha })))
    }

    /// Bytes in use, excluding the reserves.
    pub fn used(&self) -> u64 {
        self.0.borrow().used
    }
}

/// The memory held by the classes of a port.
#[derive(Debug)]
pub(super) struct Share {
    buffer: SharedBuffer,
    reserve: u64,
    /// Bytes held by each class, including its reserve.
    held: Vec<u64>,
}

impl Share {
    pub(super) fn new(buffer: &SharedBuffer, reserve: u64, classes: usize) -> Self {
        Self { buffer: buffer.clone(), reserve, held: vec![0; classes] }
    }

    /// Takes memory for a packet of a class. Returns `false` if there is not enough.
    pub(super) fn take(&mut self, class: usize, size: u16) -> bool {
        let before = self.held[class].saturating_sub(self.reserve);
        let held = self.held[class] + u64::from(size);
        let beyond = held.saturating_sub(self.reserve);
        if beyond > 0 {
            let mut buffer = self.buffer.0.borrow_mut();
            let free = buffer.size - buffer.used;
            if beyond as f64 > buffer.alpha * free as f64 || beyond - before > free {
                return false;
            }
            buffer.used += beyond - before;
        }
        self.held[class] = held;
        true
    }

    /// Returns the memory of a packet of a class.
    pub(super) fn give_back(&mut self, class: usize, size: u16) {
        let before = self.held[class].saturating_sub(self.reserve);
        self.held[class] -= u64::from(size);
        let after = self.held[class].saturating_sub(self.reserve);
        self.buffer.0.borrow_mut().used -= before - after;
    }
}
