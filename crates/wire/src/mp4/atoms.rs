//! Atoms: a length, a name, and what is in between (ISO/IEC 14496-12 section 4.2).

use super::Mp4Error;

/// An atom's name.
pub(super) type Name = [u8; 4];

/// Bytes of a length and a name; and of a length of 64 bits with them.
pub(super) const HEAD_BYTES: u64 = 8;
const LONG_HEAD_BYTES: u64 = 16;

/// How an atom begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtomHead {
    pub(super) name: Name,
    pub(super) head_bytes: u64,
    /// The whole atom, its head included.
    pub(super) atom_bytes: u64,
}

/// Reads the head of an atom that may take `room` bytes; `bytes` are the first of these, at least
/// 16 where there are so many. `None`: what follows is no atom but the end.
///
/// # Errors
/// When the atom is smaller than its head, or goes beyond its room.
pub(super) fn read_head(bytes: &[u8], room: u64) -> Result<Option<AtomHead>, Mp4Error> {
    let Some(size) = number32(bytes, 0) else {
        return Err(Mp4Error::Truncated);
    };
    if size == 0 {
        return Ok(None);
    }
    let name = bytes.get(4..8).and_then(|name| name.try_into().ok());
    let Some(name) = name else {
        return Err(Mp4Error::Truncated);
    };
    let (atom_bytes, head_bytes) = match size {
        1 => match number64(bytes, 8) {
            Some(size) => (size, LONG_HEAD_BYTES),
            None => return Err(Mp4Error::Truncated),
        },
        size => (u64::from(size), HEAD_BYTES),
    };
    if atom_bytes < head_bytes {
        return Err(Mp4Error::AtomTooSmall(atom_bytes));
    }
    if atom_bytes > room {
        return Err(Mp4Error::AtomTooLarge(atom_bytes));
    }
    Ok(Some(AtomHead {
        name,
        head_bytes,
        atom_bytes,
    }))
}

/// The atoms in a piece of memory, one after the other: names, and what is in them.
pub(super) struct Atoms<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Atoms<'a> {
    type Item = Result<(Name, &'a [u8]), Mp4Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let head = match read_head(bytes, bytes.len() as u64) {
            Ok(head) => head?,
            Err(error) => return Some(Err(error)),
        };
        let (atom, rest) = bytes.split_at(head.atom_bytes as usize);
        self.0 = rest;
        Some(Ok((head.name, &atom[head.head_bytes as usize..])))
    }
}

/// The number of 32 bits at a place, where there are so many bytes.
pub(super) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*digits))
}

/// The number of 64 bits at a place, where there are so many bytes.
pub(super) fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    let digits = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes(*digits))
}

/// Appends an atom whose content `write` appends.
pub(super) fn write_atom(out: &mut Vec<u8>, name: &Name, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name);
    write(out);
    // What is written is not more than what was read of a file's index, whose size is limited.
    let size = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}
