//! Memory of finished blocks, kept for reuse.
//!
//! Large blocks would otherwise cost page faults, because the allocator returns their memory to the
//! system and maps it anew.

use crate::code::{BlockShape, Code, Decoder};
use crate::config::Parameters;
use crate::proto::idle::IdleTimer;
use crate::time::Instant;
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The maximum number of bytes kept.
// glibc maps and trims large blocks anew: some ten page faults for each message of 93 KB in a
// flood.
const MAX_KEPT: usize = 16 << 20;
/// The bytes kept are also at most `decode_bytes` divided by this.
const KEPT_SHARE: usize = 4;
/// The maximum number of buffers kept: a longer list takes longer than the allocator.
const MAX_BUFFERS: usize = 1024;
/// The maximum number of decoders kept, and of messages without their bytes.
pub(super) const MAX_RESERVE: usize = 64;
/// A pooled buffer may be larger than the requested length by at most a quarter plus this many
/// bytes.
const SLACK: usize = 256;

/// Memory of a receiver's messages. The buffers of delivered ones come back from the application.
#[derive(Debug)]
pub(super) struct Pool {
    free: Arc<Mutex<Free>>,
    /// Decoders without buffers.
    #[expect(clippy::vec_box, reason = "a message's blocks take the box")]
    decoders: Vec<Box<Decoder>>,
    /// Decoders are kept only while it runs.
    idle: IdleTimer,
}

#[derive(Debug)]
struct Free {
    /// Shortest first; among equals, the one returned last is last.
    buffers: Vec<Buffer>,
    /// Bytes of all buffers.
    bytes: usize,
    /// The maximum of `bytes`.
    limit: usize,
    /// The number of checks so far.
    checks: u64,
    /// Whether buffers are kept: one was requested recently.
    open: bool,
}

#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// The value of `checks` when it was returned.
    since: u64,
}

/// A delivered message, whose memory goes back to the pool it came from.
struct Delivered {
    bytes: Vec<u8>,
    pool: Weak<Mutex<Free>>,
}

impl Pool {
    pub(super) fn new(config: &Parameters) -> Self {
        let limit = MAX_KEPT.min(config.limits.decode_bytes / KEPT_SHARE);
        let free = Free { buffers: Vec::new(), bytes: 0, limit, checks: 0, open: false };
        Self { free: Arc::new(Mutex::new(free)), decoders: Vec::new(), idle: IdleTimer::default() }
    }

    /// A decoder of a block, with a buffer for it.
    pub(super) fn take_decoder(
        &mut self,
        now: Instant,
        code: Code,
        shape: BlockShape,
    ) -> Box<Decoder> {
        let kept = self.decoders.pop();
        let mut decoder = kept.unwrap_or_else(|| Box::new(Decoder::new(code, shape)));
        decoder.reset_within(code, shape);
        decoder.lend_memory(self.take(now, shape.len()));
        decoder
    }

    /// Takes back a decoder and its buffer.
    pub(super) fn put_decoder(&mut self, mut decoder: Box<Decoder>) {
        self.put(decoder.take_memory());
        if self.is_in_use() && self.decoders.len() < MAX_RESERVE {
            self.decoders.push(decoder);
        }
    }

    /// An empty buffer for `len` bytes, and for not many more: quotas count the bytes that are
    /// requested.
    pub(super) fn take(&mut self, now: Instant, len: usize) -> Vec<u8> {
        self.idle.on_use(now);
        let kept = lock(&self.free).take(len);
        // Exact sizes and not size classes: loads repeat the same sizes, and padding would count.
        // Appended to from empty, so that bytes of an earlier message cannot be read.
        kept.unwrap_or_else(|| Vec::with_capacity(len))
    }

    /// Takes back a buffer, whatever it holds.
    pub(super) fn put(&self, buffer: Vec<u8>) {
        lock(&self.free).put(buffer);
    }

    /// A message whose buffer comes back when the application drops the last reference to it.
    pub(super) fn deliver(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Delivered { bytes, pool: Arc::downgrade(&self.free) })
    }

    /// Whether memory was used recently, so that some should be kept.
    pub(super) const fn is_in_use(&self) -> bool {
        self.idle.due().is_some()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.idle.due()
    }

    /// Frees buffers that were not used since the last check, and everything if no buffer was
    /// requested since.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some(used) = self.idle.check(now) else { return };
        if !used {
            self.decoders = Vec::new();
        }
        lock(&self.free).shrink(used);
    }

    /// Bytes of the buffers that are not in use.
    #[cfg(test)]
    fn kept(&self) -> usize {
        lock(&self.free).bytes
    }
}

impl Free {
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        self.open = true;
        let enough = self.buffers.partition_point(|buffer| buffer.bytes.capacity() < len);
        let capacity = self.buffers.get(enough)?.bytes.capacity();
        if capacity > len + len / 4 + SLACK {
            return None;
        }
        let equals = &self.buffers[enough..];
        let after = equals.partition_point(|buffer| buffer.bytes.capacity() == capacity);
        self.bytes -= capacity;
        Some(self.buffers.remove(enough + after - 1).bytes)
    }

    fn put(&mut self, mut bytes: Vec<u8>) {
        let capacity = bytes.capacity();
        let has_capacity = self.bytes + capacity <= self.limit && self.buffers.len() < MAX_BUFFERS;
        if capacity == 0 || !self.open || !has_capacity {
            return;
        }
        bytes.clear();
        self.bytes += capacity;
        let at = self.buffers.partition_point(|buffer| buffer.bytes.capacity() <= capacity);
        self.buffers.insert(at, Buffer { bytes, since: self.checks });
    }

    fn shrink(&mut self, used: bool) {
        let oldest = self.checks;
        self.checks += 1;
        self.open = used;
        if used {
            self.buffers.retain(|buffer| buffer.since >= oldest);
        } else {
            self.buffers = Vec::new();
        }
        self.bytes = self.buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
    }
}

impl AsRef<[u8]> for Delivered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            lock(&pool).put(core::mem::take(&mut self.bytes));
        }
    }
}

/// A thread that panicked has left the list consistent: code that may panic runs before each
/// change.
fn lock(free: &Mutex<Free>) -> MutexGuard<'_, Free> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::idle::CHECK_EVERY;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn pool() -> Pool {
        Pool::new(&Parameters::default())
    }

    /// Has `many` buffers of `len` bytes in use at once.
    fn use_many(pool: &mut Pool, now: Instant, many: usize, len: usize) {
        let buffers: Vec<_> = (0..many).map(|_| pool.take(now, len)).collect();
        buffers.into_iter().for_each(|buffer| pool.put(buffer));
    }

    #[test]
    fn a_buffer_serves_again_if_it_is_long_enough_and_not_much_longer() {
        let mut pool = pool();
        let mut first = pool.take(START, 100_000);
        first.resize(100_000, 7);
        let at = first.as_ptr();
        pool.put(first);
        let others = [100_001, 79_000].map(|len| pool.take(START, len));
        assert!(others.iter().all(|other| other.as_ptr() != at), "too short, much longer");
        let again = pool.take(START, 90_000);
        assert_eq!((again.as_ptr(), again.len()), (at, 0));
        assert_eq!(pool.kept(), 0);
    }

    #[test]
    fn kept_memory_is_bounded() {
        let mut pool = pool();
        use_many(&mut pool, START, 40, 1 << 20);
        assert_eq!(pool.kept(), MAX_KEPT);
        use_many(&mut pool, START + CHECK_EVERY, 1, MAX_KEPT + 1);
        assert_eq!(pool.kept(), MAX_KEPT);
        let mut parameters = Parameters::default();
        parameters.limits.decode_bytes = 8 << 20;
        let mut pool = Pool::new(&parameters);
        use_many(&mut pool, START, 40, 1 << 20);
        assert_eq!(pool.kept(), 2 << 20, "a quarter");
        let mut pool = Pool::new(&Parameters::default());
        use_many(&mut pool, START, 2 * MAX_BUFFERS, 1);
        assert_eq!(pool.kept(), MAX_BUFFERS);
    }

    #[test]
    fn buffers_that_nobody_uses_are_freed_and_then_there_is_no_timer() {
        let mut pool = pool();
        assert_eq!(pool.poll_timeout(), None);
        use_many(&mut pool, START, 10, 5_000);
        let mut now = START;
        for kept in [10, 3, 3, 0] {
            if kept == 3 {
                use_many(&mut pool, now, 3, 5_000);
            }
            now = pool.poll_timeout().unwrap();
            pool.handle_timeout(now);
            assert_eq!(pool.kept(), kept * 5_000);
        }
        assert_eq!((pool.poll_timeout(), now), (None, START + CHECK_EVERY * 4));
    }

    #[test]
    fn a_message_gives_its_memory_back_to_a_pool_that_is_in_use() {
        let mut pool = pool();
        let deliver = |pool: &mut Pool| {
            let mut buffer = pool.take(START, 5_000);
            buffer.extend([7; 5_000]);
            pool.deliver(buffer)
        };
        let [first, second, third] = [(); 3].map(|()| deliver(&mut pool));
        drop((first.clone(), first));
        assert_eq!(pool.kept(), 5_000);
        for _ in 0..2 {
            let now = pool.poll_timeout().unwrap();
            pool.handle_timeout(now);
        }
        drop(second);
        assert_eq!((pool.kept(), pool.poll_timeout()), (0, None), "nobody would free it");
        drop(pool);
        assert_eq!(third, [7; 5_000][..]);
    }
}
