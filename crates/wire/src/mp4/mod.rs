//! MP4 files (ISO/IEC 14496-12): another index for a part of a film, so that a player that asks
//! for the part gets a film of its own. Samples are not looked at, and no file is read here.
//!
//! ```text
//!  Scan: where the atoms of the file are ──► cut: the index of a part, and which bytes it is of
//! ```

mod atoms;
mod scan;
mod tables;
#[cfg(test)]
mod tests;
mod track;

use std::fmt;
use std::ops::Range;

use atoms::{Atoms, number32, number64, write_atom};
pub use scan::{HEAD_BYTES_MAX, Layout, Scan};
use track::Track;

/// Tracks that a file may have: films have a picture, some languages and some subtitles. Each costs
/// memory however small it is.
const TRACKS_MAX: usize = 256;

/// Which part of a film is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// When it begins, in milliseconds from the film's beginning.
    pub start_ms: u64,
    /// How long it is, in milliseconds; `None`: to the end.
    pub length_ms: Option<u64>,
    /// Whether what is sent begins with a key frame. What stands before the wanted time is marked
    /// as not to be shown then.
    pub from_key_frame: bool,
}

/// A part of a film.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What is sent first: the index, and the head of the samples.
    pub index: Vec<u8>,
    /// The bytes of the file that follow: the samples.
    pub samples: Range<u64>,
}

/// Why no part can be cut out of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mp4Error {
    /// The file ends within an atom.
    Truncated,
    /// An atom is smaller than its own head.
    AtomTooSmall(u64),
    /// An atom goes beyond what it is in.
    AtomTooLarge(u64),
    /// An atom is too small for what it has to hold.
    TooSmallFor(&'static str),
    /// The atom that says of which kind the file is, is larger than is believed.
    KindTooLarge(u64),
    /// An atom stands twice.
    Duplicate(&'static str),
    /// An atom is missing.
    Missing(&'static str),
    /// The index is compressed.
    Compressed,
    /// There are more tracks than are looked at.
    TooManyTracks,
    /// The film is shorter than the wanted time.
    StartBehindEnd,
    /// The wanted time lies beyond what a table has.
    OutOf(&'static str, &'static str),
    /// Chunks are not in order.
    UnorderedChunks,
    /// A table holds a zero where none can be.
    Zero(&'static str),
    /// A sample or chunk would lie beyond the file, or beyond what its table can say.
    TooFar,
    /// There is nothing between start and end.
    NoData,
}

impl fmt::Display for Mp4Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => formatter.write_str("mp4 file truncated"),
            Self::AtomTooSmall(size) => write!(formatter, "mp4 atom is too small:{size}"),
            Self::AtomTooLarge(size) => write!(formatter, "mp4 atom too large:{size}"),
            Self::TooSmallFor(name) => write!(formatter, "mp4 {name} atom too small"),
            Self::KindTooLarge(size) => write!(formatter, "mp4 ftyp atom is too large:{size}"),
            Self::Duplicate(name) => write!(formatter, "duplicate mp4 {name} atom"),
            Self::Missing(name) => write!(formatter, "no mp4 {name} atoms were found"),
            Self::Compressed => {
                formatter.write_str("mp4 compressed moov atom (cmov) is not supported")
            }
            Self::TooManyTracks => write!(formatter, "more than {TRACKS_MAX} mp4 trak atoms"),
            Self::StartBehindEnd => formatter.write_str("mp4 start time exceeds file duration"),
            Self::OutOf(time, table) => write!(formatter, "{time} time is out mp4 {table}"),
            Self::UnorderedChunks => formatter.write_str("unordered mp4 stsc chunks"),
            Self::Zero(what) => write!(formatter, "zero {what}"),
            Self::TooFar => formatter.write_str("too large chunk offset"),
            Self::NoData => formatter.write_str("no data between start time and end time"),
        }
    }
}

impl std::error::Error for Mp4Error {}

/// A time in units of a track or film.
fn ticks(time_ms: u64, ticks_per_s: u32) -> u64 {
    let ticks = u128::from(time_ms) * u128::from(ticks_per_s) / 1000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

impl Excerpt {
    /// What is left of a duration, or `None` where the wanted time is behind it.
    fn duration(&self, whole: u64, ticks_per_s: u32) -> Option<u64> {
        let left = whole.checked_sub(ticks(self.start_ms, ticks_per_s))?;
        let length = self
            .length_ms
            .map(|length_ms| ticks(length_ms, ticks_per_s));
        Some(left.min(length.unwrap_or(u64::MAX)))
    }
}

/// Makes the index of a part. `index` is what is in the file's `moov` atom; `kind` is its whole
/// `ftyp` atom, or nothing.
///
/// # Errors
/// When the file is not as it has to be, or has nothing at the wanted time.
pub fn cut(kind: &[u8], index: &[u8], layout: &Layout, wish: &Excerpt) -> Result<Part, Mp4Error> {
    let samples = layout.samples.clone().ok_or(Mp4Error::Missing("mdat"))?;
    let mut film = Film::default();
    let mut tracks: Vec<&[u8]> = Vec::new();
    for atom in Atoms(index) {
        match atom? {
            (name, content) if name == *b"mvhd" => film.read(content, wish)?,
            (name, content) if name == *b"trak" => {
                if tracks.len() == TRACKS_MAX {
                    return Err(Mp4Error::TooManyTracks);
                }
                tracks.push(content);
            }
            (name, _) if name == *b"cmov" => return Err(Mp4Error::Compressed),
            _ => {}
        }
    }
    let mut cut = Vec::new();
    for content in tracks {
        if let Some(track) = Track::read(content, film.ticks_per_s, wish)? {
            cut.push(track.cut(wish, samples.end, layout.file_bytes)?);
        }
    }
    if cut.is_empty() {
        return Err(Mp4Error::Missing("trak"));
    }
    let start = cut.iter().map(|track| track.bytes.start).min();
    let end = cut.iter().map(|track| track.bytes.end).max();
    let bytes = start.unwrap_or(0)..end.unwrap_or(0);
    if bytes.is_empty() {
        return Err(Mp4Error::NoData);
    }
    if bytes.start >= samples.end {
        return Err(Mp4Error::OutOf("start", "mdat atom"));
    }
    // Offsets have the same width whatever they are, so that the first writing shows the size.
    let mut out = kind.to_vec();
    write_index(&mut out, &film, &cut, 0, 0)?;
    let samples_head = samples_head(bytes.end - bytes.start);
    let moved_to = (out.len() + samples_head.len()) as u64;
    out.truncate(kind.len());
    write_index(&mut out, &film, &cut, bytes.start, moved_to)?;
    out.extend_from_slice(&samples_head);
    Ok(Part {
        index: out,
        samples: bytes,
    })
}

/// What holds for the whole film.
#[derive(Default)]
struct Film {
    ticks_per_s: u32,
    /// What its atom holds, with the new duration; `None`: it has none.
    header: Option<Vec<u8>>,
}

impl Film {
    fn read(&mut self, content: &[u8], wish: &Excerpt) -> Result<(), Mp4Error> {
        const SIZES: [usize; 2] = [100, 112];
        if self.header.is_some() {
            return Err(Mp4Error::Duplicate("mvhd"));
        }
        let header = Header::read(content, "mvhd", SIZES, true)?;
        self.ticks_per_s = header.ticks_per_s;
        let duration = wish
            .duration(header.duration, header.ticks_per_s)
            .ok_or(Mp4Error::StartBehindEnd)?;
        self.header = Some(header.with_duration(content, duration));
        Ok(())
    }
}

/// The times of an `mvhd`, `mdhd` or `tkhd` atom, which come in two widths.
struct Header {
    ticks_per_s: u32,
    duration: u64,
    is_wide: bool,
    duration_at: usize,
}

impl Header {
    /// Reads what is in the atom; a track's header has a number in place of a time scale.
    fn read(
        content: &[u8],
        name: &'static str,
        sizes: [usize; 2],
        has_scale: bool,
    ) -> Result<Self, Mp4Error> {
        let too_small = Mp4Error::TooSmallFor(name);
        let is_wide = *content.first().ok_or(too_small.clone())? != 0;
        if content.len() < sizes[usize::from(is_wide)] {
            return Err(too_small);
        }
        // Version and flags, two times, then the scale (or a number and nothing).
        let scale_at = if is_wide { 4 + 8 + 8 } else { 4 + 4 + 4 };
        let duration_at = scale_at + if has_scale { 4 } else { 8 };
        let duration = if is_wide {
            number64(content, duration_at)
        } else {
            number32(content, duration_at).map(u64::from)
        };
        Ok(Self {
            ticks_per_s: number32(content, scale_at).ok_or(too_small.clone())?,
            duration: duration.ok_or(too_small)?,
            is_wide,
            duration_at,
        })
    }

    /// The content with another duration.
    fn with_duration(&self, content: &[u8], duration: u64) -> Vec<u8> {
        let mut content = content.to_vec();
        let at = self.duration_at;
        if self.is_wide {
            content[at..at + 8].copy_from_slice(&duration.to_be_bytes());
        } else {
            let duration = u32::try_from(duration).unwrap_or(u32::MAX);
            content[at..at + 4].copy_from_slice(&duration.to_be_bytes());
        }
        content
    }
}

/// Writes the index for samples that stood from `from` on, and will stand from `to` on.
fn write_index(
    out: &mut Vec<u8>,
    film: &Film,
    tracks: &[track::CutTrack<'_>],
    from: u64,
    to: u64,
) -> Result<(), Mp4Error> {
    let mut written = Ok(());
    write_atom(out, b"moov", |out| {
        if let Some(header) = &film.header {
            write_atom(out, b"mvhd", |out| out.extend_from_slice(header));
        }
        for track in tracks {
            let track = track.write(out, from, to);
            written = written.clone().and(track);
        }
    });
    written
}

/// The head of the atom with the samples.
fn samples_head(bytes: u64) -> Vec<u8> {
    const SHORT_BYTES: u64 = 8;
    const LONG_BYTES: u64 = 16;
    let mut head = Vec::with_capacity(LONG_BYTES as usize);
    match u32::try_from(bytes + SHORT_BYTES) {
        Ok(size) => {
            head.extend_from_slice(&size.to_be_bytes());
            head.extend_from_slice(b"mdat");
        }
        Err(_) => {
            head.extend_from_slice(&1_u32.to_be_bytes());
            head.extend_from_slice(b"mdat");
            head.extend_from_slice(&(bytes + LONG_BYTES).to_be_bytes());
        }
    }
    head
}
