//! Values by range of IPv4 addresses.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Ranges are added in pieces of so many addresses, as in nginx: a range may lie over others in
/// one piece and beside them in the next.
const PIECE_MASK: u32 = 0xffff;

/// Ranges while they are added: last address and value, by first address.
#[derive(Default)]
pub(super) struct RangesDraft(BTreeMap<u32, (u32, usize)>);

/// Ranges that do not overlap, sorted.
pub(super) struct Ranges(Vec<Range>);

struct Range {
    first: u32,
    last: u32,
    value: usize,
}

/// Reads `FIRST-LAST`.
pub(super) fn parse(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-')?;
    let bits = |text: &str| text.parse().map(Ipv4Addr::to_bits).ok();
    let (first, last) = (bits(first)?, bits(last)?);
    // nginx cannot tell 255.255.255.255 from no address.
    (first <= last && last != u32::MAX).then_some((first, last))
}

/// The pieces of a range.
fn pieces(first: u32, last: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let start = next.filter(|start| *start <= last)?;
        let end = (start | PIECE_MASK).min(last);
        next = end.checked_add(1);
        Some((start, end))
    })
}

impl RangesDraft {
    /// Adds a range, which may be there already, or lie within another and not touch both ends.
    /// Returns the value that it, or its first piece that was there, had before.
    ///
    /// # Errors
    /// The range that it overlaps.
    pub(super) fn insert(
        &mut self,
        first: u32,
        last: u32,
        value: usize,
    ) -> Result<Option<usize>, String> {
        pieces(first, last).try_fold(None, |old, (first, last)| {
            Ok(old.or(self.piece(first, last, value)?))
        })
    }

    fn piece(&mut self, first: u32, last: u32, value: usize) -> Result<Option<usize>, String> {
        let below = self.0.range(..=last).next_back();
        let Some((&start, &(end, old))) = below.filter(|(_, (end, _))| *end >= first) else {
            self.0.insert(first, (last, value));
            return Ok(None);
        };
        if first < start || last > end {
            let (start, end) = (Ipv4Addr::from_bits(start), Ipv4Addr::from_bits(end));
            return Err(format!("{start}-{end}"));
        }
        if last < end {
            self.0.insert(last + 1, (end, old));
        }
        if first > start {
            self.0.insert(start, (first - 1, old));
        }
        self.0.insert(first, (last, value));
        Ok(((start, end) == (first, last)).then_some(old))
    }

    /// Removes a range, piece by piece, where just that piece is there. Returns whether all were.
    pub(super) fn remove(&mut self, first: u32, last: u32) -> bool {
        pieces(first, last).fold(true, |all, (first, last)| {
            let is_there = self.0.get(&first).is_some_and(|(end, _)| *end == last);
            if is_there {
                self.0.remove(&first);
            }
            all && is_there
        })
    }

    /// Joins neighbours of one value.
    pub(super) fn finish(self) -> Ranges {
        let mut ranges: Vec<Range> = Vec::new();
        for (first, (last, value)) in self.0 {
            match ranges.last_mut() {
                Some(before) if before.value == value && before.last + 1 == first => {
                    before.last = last;
                }
                _ => ranges.push(Range { first, last, value }),
            }
        }
        Ranges(ranges)
    }
}

impl Ranges {
    pub(super) fn find(&self, address: u32) -> Option<usize> {
        let after = self.0.partition_point(|range| range.first <= address);
        let range = self.0.get(after.checked_sub(1)?)?;
        (address <= range.last).then_some(range.value)
    }
}
