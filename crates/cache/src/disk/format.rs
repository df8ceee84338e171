//! The file format: its layout, and the checks of a file that is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::disk::{Disk, Identity};
use crate::freshness::{Staleness, Timing};
use crate::head::{self, put_text, take, take_text};
use crate::partial::Part;
use crate::vary::Selection;

/// Bytes before the content.
pub const HEADER_BYTES: u64 = 128;

/// The start of every file; the digit is the version. Files of another version are removed and
/// fetched again. Version 1 selected variants by fields that were not normalised, which no request
/// matches; version 2 kept the reason of the status among the fields.
const MAGIC: &[u8; 8] = b"TPCACHE3";

/// Longest description that is accepted; real heads are far smaller.
const DESCRIPTION_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// Most fields that select a variant, in a file.
const SELECTING_MAX: u32 = 64;

/// The bytes read at a time for a checksum.
const PIECE_BYTES: usize = 128 * 1024;

const _: () = assert!(HEADER_BYTES as usize <= PIECE_BYTES);
const _: () = assert!(PIECE_BYTES as u64 <= DESCRIPTION_BYTES_MAX as u64);

/// The metadata after the content.
pub(crate) struct Description {
    pub(crate) key: Vec<u8>,
    pub(crate) host: Vec<u8>,
    pub(crate) selection: Selection,
    pub(crate) head: turnpike_wire::message::Head,
    pub(crate) for_head: bool,
    pub(crate) status_only: bool,
    pub(crate) timing: Timing,
}

/// Lengths and checksums.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) body_bytes: u64,
    pub(crate) body_crc: u32,
    pub(crate) description_bytes: u32,
    pub(crate) description_crc: u32,
}

impl Description {
    /// The path of the file.
    pub(crate) fn path(&self, disk: &Disk) -> PathBuf {
        let part = Part::of(&self.head);
        disk.path(&self.key, &self.selection, self.for_head, part.as_ref())
    }

    /// The bytes after the content.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_text(&mut out, &self.key);
        put_text(&mut out, &self.host);
        let count = self.selection.iter().count() as u32;
        out.extend_from_slice(&count.to_le_bytes());
        for (name, value) in self.selection.iter() {
            put_text(&mut out, name);
            out.push(u8::from(value.is_some()));
            put_text(&mut out, value.unwrap_or_default());
        }
        head::encode(&self.head, &mut out);
        out.push(u8::from(self.status_only));
        out
    }

    fn decode(mut input: &[u8], timing: Timing, for_head: bool) -> Option<Self> {
        let input = &mut input;
        let key = take_text(input)?.to_vec();
        let host = take_text(input)?.to_vec();
        let mut selection = Selection::default();
        let count = u32::from_le_bytes(take(input)?);
        if count > SELECTING_MAX {
            return None;
        }
        for _ in 0..count {
            let name = take_text(input)?;
            let [is_there] = take(input)?;
            let value = take_text(input)?;
            selection.push(name, (is_there == 1).then_some(value));
        }
        let head = head::decode(input)?;
        let [status_only] = take(input)?;
        input.is_empty().then_some(Self {
            key,
            host,
            selection,
            head,
            for_head,
            status_only: status_only == 1,
            timing,
        })
    }
}

/// The bytes before the content.
pub(crate) fn header(sums: &Sums, timing: &Timing, for_head: bool) -> [u8; HEADER_BYTES as usize] {
    let mut out = Vec::with_capacity(HEADER_BYTES as usize);
    out.extend_from_slice(&sums.body_bytes.to_le_bytes());
    out.extend_from_slice(&sums.body_crc.to_le_bytes());
    out.extend_from_slice(&sums.description_bytes.to_le_bytes());
    out.extend_from_slice(&sums.description_crc.to_le_bytes());
    for time_ms in [
        timing.received_ms,
        timing.initial_age_ms,
        timing.fresh_until_ms,
        timing.while_revalidating_ms,
        timing.if_error_ms,
    ] {
        out.extend_from_slice(&time_ms.to_le_bytes());
    }
    out.push(match timing.staleness {
        Staleness::Allowed => 0,
        Staleness::OnlyByOrigin => 1,
        Staleness::Never => 2,
    });
    out.push(u8::from(for_head));
    let mut whole = [0; HEADER_BYTES as usize];
    whole[..8].copy_from_slice(MAGIC);
    whole[12..12 + out.len()].copy_from_slice(&out);
    let crc = crc32fast::hash(&whole[12..]);
    whole[8..12].copy_from_slice(&crc.to_le_bytes());
    whole
}

fn parse_header(bytes: &[u8; HEADER_BYTES as usize]) -> Option<(Sums, Timing, bool)> {
    let mut input = &bytes[..];
    if take::<8>(&mut input)? != *MAGIC {
        return None;
    }
    if u32::from_le_bytes(take(&mut input)?) != crc32fast::hash(input) {
        return None;
    }
    let sums = Sums {
        body_bytes: u64::from_le_bytes(take(&mut input)?),
        body_crc: u32::from_le_bytes(take(&mut input)?),
        description_bytes: u32::from_le_bytes(take(&mut input)?),
        description_crc: u32::from_le_bytes(take(&mut input)?),
    };
    let mut number = || Some(u64::from_le_bytes(take(&mut input)?));
    let timing = Timing {
        received_ms: number()?,
        initial_age_ms: number()?,
        fresh_until_ms: number()?,
        while_revalidating_ms: number()?,
        if_error_ms: number()?,
        staleness: Staleness::Never,
    };
    let [staleness, for_head] = take(&mut input)?;
    let staleness = match staleness {
        0 => Staleness::Allowed,
        1 => Staleness::OnlyByOrigin,
        2 => Staleness::Never,
        _ => return None,
    };
    Some((
        sums,
        Timing {
            staleness,
            ..timing
        },
        for_head == 1,
    ))
}

/// Whether this program wrote a file, complete or not. Files of other programs are left alone. An
/// empty file belongs to no program.
pub(crate) fn is_ours(file: &File) -> bool {
    let mut start = [0; MAGIC.len() - 1];
    match file.read_at(&mut start, 0) {
        Ok(0) => true,
        Ok(_) => start == MAGIC[..MAGIC.len() - 1],
        Err(_) => false,
    }
}

/// Reads everything except the content, whose length is only checked. `None`: the file is not ours,
/// or is incomplete.
pub(crate) fn read(file: &File) -> Option<(Description, Sums)> {
    let mut bytes = [0; HEADER_BYTES as usize];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (sums, timing, for_head) = parse_header(&bytes)?;
    let behind = HEADER_BYTES.checked_add(sums.body_bytes)?;
    let size = behind.checked_add(u64::from(sums.description_bytes))?;
    if sums.description_bytes > DESCRIPTION_BYTES_MAX || file.metadata().ok()?.len() != size {
        return None;
    }
    let mut description = vec![0; sums.description_bytes as usize];
    file.read_exact_at(&mut description, behind).ok()?;
    if crc32fast::hash(&description) != sums.description_crc {
        return None;
    }
    Some((Description::decode(&description, timing, for_head)?, sums))
}

/// Verifies the length and the checksum of the content. Returns the identity of the file if they
/// are right.
pub(crate) fn verify(file: &File, length: u64, crc: u32) -> Option<Identity> {
    let before = Identity::of_file(file).ok()?;
    let (_, sums) = read(file)?;
    if (sums.body_bytes, sums.body_crc) != (length, crc) {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut done = 0;
    while done < sums.body_bytes {
        let count = usize::try_from(sums.body_bytes - done).unwrap_or(usize::MAX);
        let piece = &mut piece[..count.min(PIECE_BYTES)];
        file.read_exact_at(piece, HEADER_BYTES + done).ok()?;
        hasher.update(piece);
        done += piece.len() as u64;
    }
    let after = Identity::of_file(file).ok()?;
    (hasher.finalize() == crc && before == after).then_some(after)
}

/// Replaces the times in a file.
pub(crate) fn rewrite_timing(file: &File, timing: &Timing) -> io::Result<()> {
    let (description, sums) = read(file).ok_or(io::ErrorKind::InvalidData)?;
    file.write_all_at(&header(&sums, timing, description.for_head), 0)
}

/// Replaces the description after the content.
pub(crate) fn rewrite_description(file: &File, new: &Description) -> io::Result<()> {
    let (_, sums) = read(file).ok_or(io::ErrorKind::InvalidData)?;
    let description = new.encode();
    let behind = HEADER_BYTES + sums.body_bytes;
    file.write_all_at(&description, behind)?;
    file.set_len(behind + description.len() as u64)?;
    let sums = Sums {
        description_bytes: description.len() as u32,
        description_crc: crc32fast::hash(&description),
        ..sums
    };
    file.write_all_at(&header(&sums, &new.timing, new.for_head), 0)
}

/// The entry points of the fuzz targets into this module.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing {
    use super::{Description, HEADER_BYTES, MAGIC, header as write_header, parse_header};
    use crate::freshness::{Staleness, Timing};

    /// Reads bytes as a header with a correct checksum, and writes the result again.
    pub(crate) fn header(bytes: &[u8]) {
        let mut whole = [0; HEADER_BYTES as usize];
        let count = bytes.len().min(whole.len() - 12);
        whole[12..12 + count].copy_from_slice(&bytes[..count]);
        whole[..8].copy_from_slice(MAGIC);
        let crc = crc32fast::hash(&whole[12..]);
        whole[8..12].copy_from_slice(&crc.to_le_bytes());
        if let Some((sums, timing, for_head)) = parse_header(&whole) {
            let again = parse_header(&write_header(&sums, &timing, for_head));
            let (_, timing_again, for_head_again) = again.expect("what was written can be read");
            assert_eq!((timing_again, for_head_again), (timing, for_head));
        }
    }

    /// Reads bytes as a description, and writes the result again.
    pub(crate) fn description(bytes: &[u8]) {
        let timing = Timing {
            received_ms: 0,
            initial_age_ms: 0,
            fresh_until_ms: 0,
            while_revalidating_ms: 0,
            if_error_ms: 0,
            staleness: Staleness::Allowed,
        };
        if let Some(read) = Description::decode(bytes, timing, false) {
            let written = read.encode();
            let again = Description::decode(&written, timing, false);
            let again = again.expect("what was written can be read");
            assert_eq!(again.encode(), written);
        }
    }
}
