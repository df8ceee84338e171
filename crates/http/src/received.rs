//! Bytes in the buffer in which they were received. Those at the front are passed over where they
//! stand: a body that was received together with its head is sent on from there, without a copy.

use std::ops::{Deref, Range};

/// Received bytes; it derefs to those that are left.
#[derive(Clone, Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    /// Where those begin that are left. Nothing is left at the end only if there are no bytes.
    start: usize,
}

impl Received {
    /// Room behind the bytes, to be appended to. What it held before must stay as it is.
    pub fn room(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Changes what stands behind the first `from` of the bytes that are left: `change` is given
    /// the buffer, and where in it that begins.
    pub fn change_behind<T>(
        &mut self,
        from: usize,
        change: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> T {
        let changed = change(&mut self.bytes, self.start + from);
        // Nothing may be left now.
        self.skip(0);
        changed
    }

    /// The bytes without anything in front of them, to be changed.
    pub fn whole(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..std::mem::take(&mut self.start));
        }
        &mut self.bytes
    }

    /// The bytes without anything in front of them.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(self.whole())
    }

    /// Passes over so many bytes at the front.
    pub fn skip(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.clear();
        }
    }

    /// Removes all bytes; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Leaves the bytes of `range`, and makes those behind it the content of `behind`.
    pub fn cut(&mut self, range: Range<usize>, behind: &mut Self) {
        behind.clear();
        behind
            .bytes
            .extend_from_slice(self.get(range.end..).unwrap_or_default());
        self.bytes.truncate(self.start + range.end);
        self.skip(range.start);
    }

    /// Moves the bytes into `to`, which is empty. The memory changes hands if nothing stands in
    /// front of them; else they are copied.
    pub fn move_to(&mut self, to: &mut Vec<u8>) {
        match self.start {
            0 => std::mem::swap(to, &mut self.bytes),
            _ => to.extend_from_slice(self),
        }
        self.clear();
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Received {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_left_where_they_stand() {
        let mut input = Received::from(b"headbody".to_vec());
        input.room().extend_from_slice(b" and more");
        let place = input.get(4..).unwrap_or_default().as_ptr();
        input.skip(4);
        assert_eq!((&*input, input.as_ptr()), (&b"body and more"[..], place));
        let mut behind = Received::from(b"old".to_vec());
        input.cut(1..4, &mut behind);
        assert_eq!((&*input, &*behind), (&b"ody"[..], &b" and more"[..]));
        assert_eq!(input.whole(), b"ody");
        input.skip(1);
        input.change_behind(1, |bytes, from| {
            assert_eq!(bytes.get(from..), Some(&b"y"[..]));
            bytes.truncate(from);
        });
        assert_eq!(&*input, b"d");
        input.change_behind(0, Vec::truncate);
        assert_eq!((input.len(), input.whole().len()), (0, 0));
    }

    #[test]
    fn memory_changes_hands_only_if_nothing_is_in_front() {
        for (skipped, left) in [(0, &b"body"[..]), (1, b"ody"), (4, b""), (9, b"")] {
            let mut input = Received::from(b"body".to_vec());
            let place = input.as_ptr();
            input.skip(skipped);
            let mut to = Vec::new();
            input.move_to(&mut to);
            assert_eq!(to, left, "{skipped}");
            assert_eq!(to.as_ptr() == place, skipped == 0 || skipped >= 4);
            assert!(input.is_empty(), "{skipped}");
        }
    }
}
