//! One track: what its atoms hold, and what is left of it.

use std::ops::Range;

use super::atoms::{Atoms, Name, write_atom};
use super::tables::{ChunkRuns, Chunks, Counted, Selected, Sizes, SyncSamples};
use super::{Excerpt, Header, Mp4Error};

/// A track as the file has it.
#[derive(Default)]
pub(super) struct Track<'a> {
    /// Duration in the film's units that is left.
    film_duration: u64,
    header: Option<Vec<u8>>,
    media_header: Option<(&'a [u8], Header)>,
    /// Duration in its own units that is left.
    duration: u64,
    handler: Option<&'a [u8]>,
    /// The atoms that say what media it is: copied.
    media: Vec<(Name, &'a [u8])>,
    has_media: [bool; 2],
    has_table: bool,
    descriptions: Option<&'a [u8]>,
    times: Option<Counted>,
    sync_samples: Option<SyncSamples>,
    offsets: Option<Counted>,
    runs: Option<ChunkRuns>,
    sizes: Option<Sizes>,
    chunks: Option<Chunks>,
}

/// A part of a track.
pub(super) struct CutTrack<'a> {
    track: Track<'a>,
    /// What of the part is not to be shown, in its own units.
    hidden: u64,
    times: Counted,
    sync_samples: Option<SyncSamples>,
    offsets: Option<Counted>,
    runs: Vec<[u32; 3]>,
    sizes: Option<Sizes>,
    chunks: Chunks,
    /// The bytes of the file that it has.
    pub(super) bytes: Range<u64>,
}

/// Puts an atom where none may be yet.
fn once<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), Mp4Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Mp4Error::Duplicate(name)),
    }
}

impl<'a> Track<'a> {
    /// Reads a track. `None`: it ends before the wanted time.
    pub(super) fn read(
        content: &'a [u8],
        film_ticks_per_s: u32,
        wish: &Excerpt,
    ) -> Result<Option<Self>, Mp4Error> {
        const HEADER_SIZES: [usize; 2] = [84, 96];
        let mut track = Self::default();
        let mut media = None;
        for atom in Atoms(content) {
            match atom? {
                (name, content) if name == *b"tkhd" => {
                    let header = Header::read(content, "tkhd", HEADER_SIZES, false)?;
                    let left = wish.duration(header.duration, film_ticks_per_s);
                    let Some(left) = left.filter(|_| is_longer(&header, wish, film_ticks_per_s))
                    else {
                        return Ok(None);
                    };
                    track.film_duration = left;
                    let header = header.with_duration(content, left);
                    once(&mut track.header, "tkhd", header)?;
                }
                (name, content) if name == *b"mdia" => once(&mut media, "mdia", content)?,
                _ => {}
            }
        }
        let is_there = track.read_media(media.unwrap_or_default(), wish)?;
        Ok(is_there.then_some(track))
    }

    fn read_media(&mut self, content: &'a [u8], wish: &Excerpt) -> Result<bool, Mp4Error> {
        const HEADER_SIZES: [usize; 2] = [24, 36];
        let mut information = None;
        for atom in Atoms(content) {
            match atom? {
                (name, content) if name == *b"mdhd" => {
                    let header = Header::read(content, "mdhd", HEADER_SIZES, true)?;
                    let left = wish.duration(header.duration, header.ticks_per_s);
                    let Some(left) = left.filter(|_| is_longer(&header, wish, header.ticks_per_s))
                    else {
                        return Ok(false);
                    };
                    self.duration = left;
                    once(&mut self.media_header, "mdhd", (content, header))?;
                }
                (name, content) if name == *b"hdlr" => once(&mut self.handler, "hdlr", content)?,
                (name, content) if name == *b"minf" => once(&mut information, "minf", content)?,
                _ => {}
            }
        }
        self.read_information(information.unwrap_or_default())?;
        Ok(true)
    }

    fn read_information(&mut self, content: &'a [u8]) -> Result<(), Mp4Error> {
        for atom in Atoms(content) {
            let (name, content) = atom?;
            let kind = match &name {
                b"vmhd" | b"smhd" => 0,
                b"dinf" => 1,
                b"stbl" => {
                    if std::mem::replace(&mut self.has_table, true) {
                        return Err(Mp4Error::Duplicate("stbl"));
                    }
                    self.read_tables(content)?;
                    continue;
                }
                _ => continue,
            };
            if std::mem::replace(&mut self.has_media[kind], true) {
                return Err(Mp4Error::Duplicate(["vmhd/smhd", "dinf"][kind]));
            }
            self.media.push((name, content));
        }
        self.media.sort_by_key(|(name, _)| name == b"dinf");
        Ok(())
    }

    fn read_tables(&mut self, content: &'a [u8]) -> Result<(), Mp4Error> {
        /// Version, a count, and the head of one description.
        const DESCRIPTIONS_BYTES_MIN: usize = 16;
        for atom in Atoms(content) {
            let (name, content) = atom?;
            match &name {
                b"stsd" => {
                    if content.len() < DESCRIPTIONS_BYTES_MIN {
                        return Err(Mp4Error::TooSmallFor("stsd"));
                    }
                    once(&mut self.descriptions, "stsd", content)?;
                }
                b"stts" => once(&mut self.times, "stts", Counted::read(content, "stts")?)?,
                b"stss" => once(&mut self.sync_samples, "stss", SyncSamples::read(content)?)?,
                b"ctts" => once(&mut self.offsets, "ctts", Counted::read(content, "ctts")?)?,
                b"stsc" => once(&mut self.runs, "stsc", ChunkRuns::read(content)?)?,
                b"stsz" => once(&mut self.sizes, "stsz", Sizes::read(content)?)?,
                b"stco" => once(&mut self.chunks, "stco/co64", Chunks::read(content, false)?)?,
                b"co64" => once(&mut self.chunks, "stco/co64", Chunks::read(content, true)?)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Leaves of the track what is wanted.
    pub(super) fn cut(
        mut self,
        wish: &Excerpt,
        samples_end: u64,
        file_bytes: u64,
    ) -> Result<CutTrack<'a>, Mp4Error> {
        let ticks_per_s = self
            .media_header
            .as_ref()
            .map_or(0, |(_, header)| header.ticks_per_s);
        let times = self.times.take().ok_or(Mp4Error::Missing("stts"))?;
        let key_frames = self.sync_samples.as_ref().filter(|_| wish.from_key_frame);
        let start = super::ticks(wish.start_ms, ticks_per_s);
        let length = wish.length_ms.map(|ms| super::ticks(ms, ticks_per_s));
        let (times, selected, hidden) = times.select(start, length, key_frames)?;
        let sync_samples = self
            .sync_samples
            .take()
            .map(|samples| samples.cut(&selected));
        let offsets = self.offsets.take();
        let offsets = offsets.and_then(|offsets| offsets.cut(&selected));
        let runs = self.runs.take().ok_or(Mp4Error::Missing("stsc"))?;
        let chunks = self.chunks.take().ok_or(Mp4Error::Missing("stco"))?;
        let runs = runs.cut(&selected, chunks.count())?;
        let sizes = self.sizes.take();
        let mut around = (0, 0);
        let sizes = match sizes {
            None => None,
            Some(sizes) => {
                around = sizes.around(&selected, &runs, file_bytes)?;
                Some(sizes.cut(&selected)?)
            }
        };
        let (chunks, bytes) = chunks.cut(&runs, around, &selected, samples_end, file_bytes)?;
        Ok(CutTrack {
            track: self,
            hidden,
            times,
            sync_samples,
            offsets,
            runs: runs.runs,
            sizes,
            chunks,
            bytes,
        })
    }
}

/// Whether something is left behind the wanted start.
fn is_longer(header: &Header, wish: &Excerpt, ticks_per_s: u32) -> bool {
    header.duration > super::ticks(wish.start_ms, ticks_per_s)
}

impl CutTrack<'_> {
    /// Writes the track for samples that move from one place to another.
    pub(super) fn write(&self, out: &mut Vec<u8>, from: u64, to: u64) -> Result<(), Mp4Error> {
        let mut written = Ok(());
        write_atom(out, b"trak", |out| {
            if let Some(header) = &self.track.header {
                write_atom(out, b"tkhd", |out| out.extend_from_slice(header));
            }
            if self.hidden > 0 {
                write_atom(out, b"edts", |out| self.write_edit(out));
            }
            write_atom(out, b"mdia", |out| {
                written = self.write_media(out, from, to);
            });
        });
        written
    }

    /// One edit, which hides the beginning.
    fn write_edit(&self, out: &mut Vec<u8>) {
        write_atom(out, b"elst", |out| {
            // Version 1 without flags, and one entry.
            out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&self.track.film_duration.to_be_bytes());
            out.extend_from_slice(&self.hidden.to_be_bytes());
            // The usual speed.
            out.extend_from_slice(&[0, 1, 0, 0]);
        });
    }

    fn write_media(&self, out: &mut Vec<u8>, from: u64, to: u64) -> Result<(), Mp4Error> {
        let track = &self.track;
        if let Some((content, header)) = &track.media_header {
            let duration = track.duration.saturating_add(self.hidden);
            let content = header.with_duration(content, duration);
            write_atom(out, b"mdhd", |out| out.extend_from_slice(&content));
        }
        if let Some(handler) = track.handler {
            write_atom(out, b"hdlr", |out| out.extend_from_slice(handler));
        }
        let mut written = Ok(());
        write_atom(out, b"minf", |out| {
            for (name, content) in &track.media {
                write_atom(out, name, |out| out.extend_from_slice(content));
            }
            write_atom(out, b"stbl", |out| {
                written = self.write_tables(out, from, to);
            });
        });
        written
    }

    fn write_tables(&self, out: &mut Vec<u8>, from: u64, to: u64) -> Result<(), Mp4Error> {
        if let Some(descriptions) = self.track.descriptions {
            write_atom(out, b"stsd", |out| out.extend_from_slice(descriptions));
        }
        write_atom(out, b"stts", |out| self.times.write(out));
        if let Some(samples) = &self.sync_samples {
            write_atom(out, b"stss", |out| samples.write(out));
        }
        if let Some(offsets) = &self.offsets {
            write_atom(out, b"ctts", |out| offsets.write(out));
        }
        write_atom(out, b"stsc", |out| Selected::write_runs(&self.runs, out));
        if let Some(sizes) = &self.sizes {
            write_atom(out, b"stsz", |out| sizes.write(out));
        }
        let mut written = Ok(());
        write_atom(out, self.chunks.name(), |out| {
            written = self.chunks.write(out, from, to);
        });
        written
    }
}
