//! The tables of a track: when its samples are shown, how large they are, and where they stand.
//!
//! Samples and chunks are counted from 0 here; the file counts them from 1.

use std::ops::Range;

use super::Mp4Error;
use super::atoms::{Name, number32, number64};

/// Which samples are left: from the first one up to, not including, the end. Without an end: all
/// that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) start: u64,
    pub(super) end: Option<u64>,
}

impl Selected {
    /// Writes runs of chunks.
    pub(super) fn write_runs(runs: &[[u32; 3]], out: &mut Vec<u8>) {
        write_count(out, runs.len());
        for number in runs.iter().flatten() {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Version and flags of a table, all zero, and the number of its entries.
fn write_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&[0; 4]);
    // There are at most as many entries as were read, whose count had 32 bits, and two more.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
}

/// The entries of a table, each of so many bytes, behind so many others.
fn entries<'a>(
    content: &'a [u8],
    name: &'static str,
    before: usize,
    entry_bytes: usize,
) -> Result<&'a [u8], Mp4Error> {
    let too_small = || Mp4Error::TooSmallFor(name);
    let count = number32(content, before).ok_or_else(too_small)? as usize;
    let bytes = count.checked_mul(entry_bytes).ok_or_else(too_small)?;
    let table = content.get(before + 4..).ok_or_else(too_small)?;
    table.get(..bytes).ok_or_else(too_small)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| u32::from_be_bytes(*number))
}

/// A value for each of so many samples in turn: how long they are shown (`stts`), or how much later
/// than they are decoded (`ctts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// Version and flags: what kind of number the values are.
    kind: [u8; 4],
    runs: Vec<[u32; 2]>,
}

impl Counted {
    pub(super) fn read(content: &[u8], name: &'static str) -> Result<Self, Mp4Error> {
        let table = entries(content, name, 4, 8)?;
        let (runs, _) = table.as_chunks::<8>();
        let run = |run: &[u8; 8]| {
            let [a, b, c, d, e, f, g, h] = *run;
            [
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, g, h]),
            ]
        };
        Ok(Self {
            kind: content
                .first_chunk()
                .copied()
                .ok_or(Mp4Error::TooSmallFor(name))?,
            runs: runs.iter().map(run).collect(),
        })
    }

    /// The samples from a time on, for so long, both in the track's units: the table for them,
    /// which they are, and what time they have before the wanted one, where a key frame is begun
    /// with.
    pub(super) fn select(
        self,
        start: u64,
        length: Option<u64>,
        key_frames: Option<&SyncSamples>,
    ) -> Result<(Self, Selected, u64), Mp4Error> {
        const TABLE: &str = "stts samples";
        let first = self
            .sample_at(start)
            .ok_or(Mp4Error::OutOf("start", TABLE))?;
        let begin = match key_frames {
            None => first,
            Some(samples) => samples.last_until(first)?.unwrap_or(first),
        };
        let hidden = self.duration_of(begin..first);
        let from_begin = Self {
            kind: self.kind,
            runs: part_of(&self.runs, begin..u64::MAX),
        };
        let Some(length) = length else {
            let selected = Selected {
                start: begin,
                end: None,
            };
            return Ok((from_begin, selected, hidden));
        };
        let count = from_begin.sample_at(length.saturating_add(hidden));
        let count = count.unwrap_or_else(|| from_begin.count());
        let times = Self {
            kind: self.kind,
            runs: part_of(&from_begin.runs, 0..count),
        };
        let selected = Selected {
            start: begin,
            end: Some(begin + count),
        };
        Ok((times, selected, hidden))
    }

    /// The table for some of the samples; `None`: none of them is in it.
    pub(super) fn cut(self, selected: &Selected) -> Option<Self> {
        let runs = part_of(&self.runs, selected.start..selected.end.unwrap_or(u64::MAX));
        (!runs.is_empty()).then_some(Self {
            kind: self.kind,
            runs,
        })
    }

    /// The sample that is shown at a time. `None`: the last one was shown before.
    fn sample_at(&self, time: u64) -> Option<u64> {
        let (mut sample, mut left) = (0_u64, time);
        for [count, duration] in &self.runs {
            let (count, duration) = (u64::from(*count), u64::from(*duration));
            if left < count * duration {
                return Some(sample + left / duration);
            }
            left -= count * duration;
            sample += count;
        }
        None
    }

    /// How many samples it has.
    fn count(&self) -> u64 {
        self.runs.iter().map(|[count, _]| u64::from(*count)).sum()
    }

    fn duration_of(&self, samples: Range<u64>) -> u64 {
        let runs = part_of(&self.runs, samples);
        let durations = runs
            .iter()
            .map(|[count, each]| u64::from(*count) * u64::from(*each));
        durations.fold(0, u64::saturating_add)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        write_count(out, self.runs.len());
        out[start..start + 4].copy_from_slice(&self.kind);
        for number in self.runs.iter().flatten() {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// The runs of some of the samples.
fn part_of(runs: &[[u32; 2]], samples: Range<u64>) -> Vec<[u32; 2]> {
    let mut part = Vec::new();
    let mut sample = 0_u64;
    for [count, value] in runs {
        let end = sample + u64::from(*count);
        let (from, to) = (sample.max(samples.start), end.min(samples.end));
        if from < to {
            // Not more than the run has.
            part.push([(to - from) as u32, *value]);
        }
        sample = end;
        if sample >= samples.end {
            break;
        }
    }
    part
}

/// The samples that can be shown without another one: key frames (`stss`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyncSamples(Vec<u32>);

impl SyncSamples {
    pub(super) fn read(content: &[u8]) -> Result<Self, Mp4Error> {
        Ok(Self(numbers(entries(content, "stss", 4, 4)?).collect()))
    }

    /// The last of them that is not behind a sample.
    fn last_until(&self, sample: u64) -> Result<Option<u64>, Mp4Error> {
        let mut last = None;
        for number in &self.0 {
            let own = number.checked_sub(1).ok_or(Mp4Error::Zero("sync sample"))?;
            if u64::from(own) > sample {
                break;
            }
            last = Some(u64::from(own));
        }
        Ok(last)
    }

    pub(super) fn cut(self, selected: &Selected) -> Self {
        let own = |number: &u32| {
            let sample = u64::from(*number).checked_sub(1)?;
            let is_in = sample >= selected.start && selected.end.is_none_or(|end| sample < end);
            // Not more than it was.
            is_in.then(|| (sample - selected.start + 1) as u32)
        };
        Self(self.0.iter().filter_map(own).collect())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_count(out, self.0.len());
        for number in &self.0 {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// How many samples are in which chunks (`stsc`): the first chunk of a run, the samples in each of
/// its chunks, and their description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkRuns(Vec<[u32; 3]>);

/// Runs of the chunks that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutRuns {
    pub(super) runs: Vec<[u32; 3]>,
    /// The chunks that are left.
    chunks: Range<u64>,
    /// Samples of the first chunk that are not.
    skipped: u64,
    /// Samples of the last chunk that are.
    last_samples: u64,
}

impl CutRuns {
    /// Adds a run of chunks.
    fn push(&mut self, chunks: u64, samples: u64, description: u32) {
        if chunks == 0 || samples == 0 {
            return;
        }
        let number = self.chunks.end - self.chunks.start + 1;
        // Neither is more than what was read.
        self.runs.push([number as u32, samples as u32, description]);
        self.chunks.end += chunks;
        self.last_samples = samples;
    }
}

impl ChunkRuns {
    pub(super) fn read(content: &[u8]) -> Result<Self, Mp4Error> {
        let table = entries(content, "stsc", 4, 12)?;
        let (runs, _) = table.as_chunks::<12>();
        let run = |run: &[u8; 12]| {
            let mut numbers = numbers(run);
            [0; 3].map(|_: u32| numbers.next().unwrap_or(0))
        };
        Ok(Self(runs.iter().map(run).collect()))
    }

    /// Leaves the chunks with the selected samples, of so many that there are.
    pub(super) fn cut(&self, selected: &Selected, chunk_count: u64) -> Result<CutRuns, Mp4Error> {
        if self.0.is_empty() {
            return Err(Mp4Error::Zero("number of entries in stsc atom"));
        }
        let mut cut: Option<CutRuns> = None;
        let mut before = selected.start;
        let mut left = selected.end.map_or(u64::MAX, |end| end - selected.start);
        for (index, [first, samples, description]) in self.0.iter().enumerate() {
            let first = u64::from(*first)
                .checked_sub(1)
                .ok_or(Mp4Error::Zero("chunk"))?;
            let next = match self.0.get(index + 1) {
                Some([next, ..]) => u64::from(*next).saturating_sub(1),
                None => chunk_count,
            };
            let count = next.checked_sub(first).ok_or(Mp4Error::UnorderedChunks)?;
            let samples = u64::from(*samples);
            if cut.is_none() && before >= count * samples {
                before -= count * samples;
                continue;
            }
            if samples == 0 {
                return Err(Mp4Error::Zero("number of samples"));
            }
            let skipped_chunks = before / samples;
            let mut count = count - skipped_chunks;
            let cut = cut.get_or_insert_with(|| CutRuns {
                runs: Vec::new(),
                chunks: first + skipped_chunks..first + skipped_chunks,
                skipped: before % samples,
                last_samples: 0,
            });
            if !before.is_multiple_of(samples) && count > 0 {
                let part = left.min(samples - before % samples);
                cut.push(1, part, *description);
                left -= part;
                count -= 1;
            }
            before = 0;
            let whole = count.min(left / samples);
            cut.push(whole, samples, *description);
            left -= whole * samples;
            if whole < count {
                cut.push(1, left, *description);
                left = 0;
            }
            if left == 0 {
                break;
            }
        }
        let cut = cut.ok_or(Mp4Error::OutOf("start", "stsc chunks"))?;
        match selected.end {
            Some(_) if left > 0 => Err(Mp4Error::OutOf("end", "stsc chunks")),
            _ => Ok(cut),
        }
    }
}

/// How large samples are (`stsz`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// All of them the same, and how many they are.
    Same(u32, u32),
    Each(Vec<u32>),
}

impl Sizes {
    pub(super) fn read(content: &[u8]) -> Result<Self, Mp4Error> {
        const NAME: &str = "stsz";
        let number = |at| number32(content, at).ok_or(Mp4Error::TooSmallFor(NAME));
        match (number(4)?, number(8)?) {
            (0, _) => Ok(Self::Each(numbers(entries(content, NAME, 8, 4)?).collect())),
            (size, count) => Ok(Self::Same(size, count)),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Same(_, count) => u64::from(*count),
            Self::Each(sizes) => sizes.len() as u64,
        }
    }

    /// Bytes of samples.
    fn bytes(&self, samples: Range<u64>) -> Option<u64> {
        match self {
            Self::Same(size, _) => u64::from(*size).checked_mul(samples.end - samples.start),
            Self::Each(sizes) => {
                let (start, end) = (samples.start as usize, samples.end as usize);
                let sizes = sizes.get(start..end)?.iter();
                Some(sizes.map(|size| u64::from(*size)).sum())
            }
        }
    }

    /// Bytes of the first chunk that are left out, and bytes of the last chunk that are not.
    pub(super) fn around(
        &self,
        selected: &Selected,
        runs: &CutRuns,
        file_bytes: u64,
    ) -> Result<(u64, u64), Mp4Error> {
        const TABLE: &str = "stsz samples";
        let end = selected.end.unwrap_or(self.count());
        if selected.start >= self.count() {
            return Err(Mp4Error::OutOf("start", TABLE));
        }
        if end > self.count() {
            return Err(Mp4Error::OutOf("end", TABLE));
        }
        let within = |bytes: Option<u64>| bytes.filter(|bytes| *bytes <= file_bytes);
        let skipped_from = selected.start.checked_sub(runs.skipped);
        let skipped = skipped_from.and_then(|from| self.bytes(from..selected.start));
        let last_from = end.saturating_sub(runs.last_samples).max(selected.start);
        let last = self.bytes(last_from..end.max(last_from));
        match (within(skipped), within(last)) {
            (Some(skipped), Some(last)) => Ok((skipped, last)),
            _ => Err(Mp4Error::TooFar),
        }
    }

    pub(super) fn cut(self, selected: &Selected) -> Result<Self, Mp4Error> {
        let end = selected.end.unwrap_or(self.count());
        let count = end.saturating_sub(selected.start);
        Ok(match self {
            Self::Same(size, _) => Self::Same(size, u32::try_from(count).unwrap_or(u32::MAX)),
            Self::Each(sizes) => {
                let (start, end) = (selected.start as usize, end as usize);
                let sizes = sizes.get(start..end);
                Self::Each(
                    sizes
                        .ok_or(Mp4Error::OutOf("end", "stsz samples"))?
                        .to_vec(),
                )
            }
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Same(size, count) => {
                for number in [0, *size, *count] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
            }
            Self::Each(sizes) => {
                out.extend_from_slice(&[0; 4]);
                write_count(out, sizes.len());
                for size in sizes {
                    out.extend_from_slice(&size.to_be_bytes());
                }
            }
        }
    }
}

/// Where chunks stand in the file: `stco`, or `co64` where 64 bits are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    is_wide: bool,
    offsets: Vec<u64>,
}

impl Chunks {
    pub(super) fn read(content: &[u8], is_wide: bool) -> Result<Self, Mp4Error> {
        let offsets = if is_wide {
            let table = entries(content, "co64", 4, 8)?;
            let at = |at| number64(table, at).unwrap_or(0);
            (0..table.len()).step_by(8).map(at).collect()
        } else {
            let table = entries(content, "stco", 4, 4)?;
            numbers(table).map(u64::from).collect()
        };
        Ok(Self { is_wide, offsets })
    }

    pub(super) fn count(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// The chunks that are left, and the bytes of the file from the first to the last of them.
    pub(super) fn cut(
        self,
        runs: &CutRuns,
        (skipped_bytes, last_bytes): (u64, u64),
        selected: &Selected,
        samples_end: u64,
        file_bytes: u64,
    ) -> Result<(Self, Range<u64>), Mp4Error> {
        let range = &runs.chunks;
        if range.start >= self.count() {
            return Err(Mp4Error::OutOf("start", "stco chunks"));
        }
        if range.end > self.count() {
            return Err(Mp4Error::OutOf("end", "stco chunks"));
        }
        let mut offsets = self.offsets[range.start as usize..range.end as usize].to_vec();
        let behind = |offset: u64, bytes: u64| {
            let end = offset.checked_add(bytes);
            end.filter(|end| *end <= file_bytes).ok_or(Mp4Error::TooFar)
        };
        let Some(first) = offsets.first_mut() else {
            // It has nothing of the part.
            let nothing = file_bytes..0;
            return Ok((Self { offsets, ..self }, nothing));
        };
        *first = behind(*first, skipped_bytes)?;
        let start = *first;
        let end = match (selected.end, offsets.last()) {
            (Some(_), Some(last)) => behind(*last, last_bytes)?,
            _ => samples_end,
        };
        Ok((Self { offsets, ..self }, start..end))
    }

    pub(super) fn name(&self) -> &'static Name {
        if self.is_wide { b"co64" } else { b"stco" }
    }

    /// Writes the offsets of what stood from `from` on, and stands from `to` on.
    pub(super) fn write(&self, out: &mut Vec<u8>, from: u64, to: u64) -> Result<(), Mp4Error> {
        write_count(out, self.offsets.len());
        for offset in &self.offsets {
            // A chunk before the first one that is sent is none of this part.
            let moved = offset
                .checked_sub(from)
                .and_then(|offset| offset.checked_add(to));
            let moved = moved.ok_or(Mp4Error::TooFar)?;
            if self.is_wide {
                out.extend_from_slice(&moved.to_be_bytes());
            } else {
                let moved = u32::try_from(moved).map_err(|_| Mp4Error::TooFar)?;
                out.extend_from_slice(&moved.to_be_bytes());
            }
        }
        Ok(())
    }
}
