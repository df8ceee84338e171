//! A range of a buffer without a borrow of it.

/// Start and end offsets, in bytes, within a buffer of the caller.
///
/// Heads are stored as spans, so that they can be kept and reused with the buffer they describe.
/// Offsets are 32 bits wide: no head or chunk of this crate is longer than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The empty span at offset 0.
    pub const EMPTY: Span = Span { start: 0, end: 0 };

    /// A span from `start` up to but not including `end`; offsets past 4 GiB are cut to it.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Span {
        let cut = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span {
            start: cut(start),
            end: cut(end),
        }
    }

    /// Offset of the first byte.
    #[must_use]
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Offset just past the last byte.
    #[must_use]
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether the span holds no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of the span in `buffer`; empty if it reaches outside of `buffer`.
    #[must_use]
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.start()..self.end()).unwrap_or(&[])
    }
}
