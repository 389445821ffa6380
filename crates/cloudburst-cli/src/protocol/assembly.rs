//! Which chunks of a file have arrived, and whether the next one may be accepted.

use super::frame::Offer;
use super::limits::MAX_WINDOW;
use super::reason::Reason;

/// The receiver's record of one file. It limits the load that a sender can put on the receiver: each chunk
/// is accepted once, inside the window, and with the length that its number requires.
#[derive(Debug)]
pub struct Assembly {
    chunk: u64,
    declared: Option<u64>,
    max_size: u64,
    window: u64,
    /// All chunks below this one have arrived.
    next: u64,
    /// Which chunks from `next` on have arrived: the lowest bit stands for `next`.
    ahead: u64,
    /// The chunk that was shorter than a full one, and its length.
    short: Option<(u64, u64)>,
    /// Bytes of all chunks that have arrived.
    received: u64,
    /// The highest chunk that has arrived, plus one.
    highest: u64,
}

impl Assembly {
    /// Creates the record of a file of which no bytes have arrived.
    pub fn new(offer: &Offer, window: u16, max_size: u64) -> Self {
        Self {
            chunk: u64::from(offer.chunk).max(1),
            declared: offer.size,
            max_size,
            window: window.clamp(1, MAX_WINDOW).into(),
            next: 0,
            ahead: 0,
            short: None,
            received: 0,
            highest: 0,
        }
    }

    /// Counts the first `len` bytes, which are whole chunks or the whole file, as arrived. Call it before the
    /// first chunk.
    pub fn resume(&mut self, len: u64) {
        self.next = len.div_ceil(self.chunk);
        self.highest = self.next;
        self.received = len;
        if !len.is_multiple_of(self.chunk) {
            self.short = Some((self.next - 1, len % self.chunk));
        }
    }

    /// Returns the number of bytes before the first missing chunk.
    pub fn contiguous(&self) -> u64 {
        match self.short {
            Some((last, len)) if last < self.next => last * self.chunk + len,
            _ => self.next * self.chunk,
        }
    }

    /// Records a chunk and returns its offset in the file.
    ///
    /// # Errors
    ///
    /// [`Reason::TooLarge`], or [`Reason::Protocol`] if the chunk violates the protocol.
    pub fn admit(&mut self, number: u64, len: usize) -> Result<u64, Reason> {
        let broken = Reason::Protocol(number);
        let len = len as u64;
        let bit = number.checked_sub(self.next).ok_or(broken)?;
        if bit >= self.window || self.ahead & (1 << bit) != 0 {
            return Err(broken);
        }
        if len == 0 || len > self.chunk {
            return Err(broken);
        }
        // A short chunk must be the last one, whatever the order of arrival.
        let is_short = len < self.chunk;
        if self.short.is_some_and(|(last, _)| is_short || number > last)
            || (is_short && number + 1 < self.highest)
        {
            return Err(broken);
        }
        let offset = number.checked_mul(self.chunk).ok_or(broken)?;
        let end = offset.checked_add(len).ok_or(broken)?;
        if end > self.max_size {
            return Err(Reason::TooLarge(self.max_size));
        }
        if self.declared.is_some_and(|size| end > size || (is_short && end != size)) {
            return Err(broken);
        }
        if is_short {
            self.short = Some((number, len));
        }
        self.ahead |= 1 << bit;
        self.received += len;
        self.highest = self.highest.max(number + 1);
        Ok(offset)
    }

    /// Moves past the next chunk if it has arrived, and returns its number, offset and length. Call
    /// it until it returns `None`.
    pub fn advance(&mut self) -> Option<(u64, u64, usize)> {
        if self.ahead & 1 == 0 {
            return None;
        }
        let number = self.next;
        self.ahead >>= 1;
        self.next += 1;
        let len = match self.short {
            Some((last, len)) if last == number => len,
            _ => self.chunk,
        };
        Some((number, number * self.chunk, len as usize))
    }

    /// Whether all bytes have arrived of a file of `size` bytes.
    pub fn is_whole(&self, size: u64) -> bool {
        self.ahead == 0
            && self.received == size
            && self.declared.is_none_or(|declared| declared == size)
    }

    /// Returns the number of bytes that have arrived.
    pub const fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Entry, FilePath};
    use core::time::Duration;

    fn assembly(chunk: u32, size: Option<u64>) -> Assembly {
        let name = FilePath::new("x");
        let patience = Duration::from_secs(1);
        let entry = Entry::File;
        let sparse = false;
        let attributes = None;
        let offer = Offer { files: 1, chunk, size, patience, entry, sparse, attributes, name };
        Assembly::new(&offer, 4, 1000)
    }

    fn advanced(assembly: &mut Assembly) -> Vec<(u64, u64, usize)> {
        core::iter::from_fn(|| assembly.advance()).collect()
    }

    #[test]
    fn chunks_in_any_order_within_the_window_make_the_file_whole() {
        let mut file = assembly(10, Some(35));
        assert_eq!(file.admit(3, 5), Ok(30));
        assert_eq!(file.admit(1, 10), Ok(10));
        assert_eq!(advanced(&mut file), []);
        assert_eq!(file.admit(0, 10), Ok(0));
        assert_eq!(advanced(&mut file), [(0, 0, 10), (1, 10, 10)]);
        assert!(!file.is_whole(35));
        assert_eq!(file.admit(2, 10), Ok(20));
        assert_eq!(advanced(&mut file), [(2, 20, 10), (3, 30, 5)]);
        assert!(file.is_whole(35));
        assert!(!file.is_whole(34));
    }

    #[test]
    fn an_empty_file_is_whole_from_the_start() {
        assert!(assembly(10, Some(0)).is_whole(0));
        assert!(assembly(10, None).is_whole(0));
        assert!(!assembly(10, Some(1)).is_whole(0));
    }

    #[test]
    fn a_file_continues_after_the_prefix_that_exists() {
        let mut file = assembly(10, Some(35));
        file.resume(20);
        assert_eq!((file.received(), file.contiguous()), (20, 20));
        assert_eq!(file.admit(1, 10), Err(Reason::Protocol(1)));
        assert_eq!(file.admit(3, 5), Ok(30));
        assert_eq!(file.contiguous(), 20);
        assert_eq!(file.admit(2, 10), Ok(20));
        assert_eq!(advanced(&mut file), [(2, 20, 10), (3, 30, 5)]);
        assert_eq!(file.contiguous(), 35);
        assert!(file.is_whole(35));
        let mut whole = assembly(10, Some(35));
        whole.resume(35);
        assert!(whole.is_whole(35) && whole.contiguous() == 35);
        assert_eq!(whole.admit(4, 1), Err(Reason::Protocol(4)));
    }

    #[test]
    fn chunks_that_no_correct_sender_sends_are_refused() {
        let mut file = assembly(10, None);
        assert_eq!(file.admit(0, 10), Ok(0));
        for (number, len, why) in [
            (0, 10, "a second time"),
            (4, 10, "beyond the window"),
            (u64::MAX, 10, "beyond every file"),
            (1, 11, "longer than a chunk"),
            (1, 0, "empty"),
        ] {
            assert_eq!(file.admit(number, len), Err(Reason::Protocol(number)), "{why}");
        }
        assert_eq!(advanced(&mut file), [(0, 0, 10)]);
        assert_eq!(file.admit(0, 10), Err(Reason::Protocol(0)), "again, and already passed");
        assert_eq!(file.admit(2, 10), Ok(20));
        assert_eq!(file.admit(1, 9), Err(Reason::Protocol(1)), "short, and not the last");
        assert_eq!(file.admit(3, 9), Ok(30));
        assert_eq!(file.admit(4, 1), Err(Reason::Protocol(4)), "after the last");
    }

    #[test]
    fn no_file_exceeds_its_declared_size_or_the_receivers_limit() {
        let mut declared = assembly(10, Some(25));
        assert_eq!(declared.admit(2, 6), Err(Reason::Protocol(2)));
        assert_eq!(declared.admit(2, 4), Err(Reason::Protocol(2)));
        assert_eq!(declared.admit(3, 1), Err(Reason::Protocol(3)));
        let mut endless = assembly(300, None);
        for number in 0..3 {
            assert!(endless.admit(number, 300).is_ok());
        }
        assert_eq!(endless.admit(3, 300), Err(Reason::TooLarge(1000)));
    }
}
