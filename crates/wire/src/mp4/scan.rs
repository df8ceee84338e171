//! Where the atoms of a file are.

use std::ops::Range;

use super::Mp4Error;
use super::atoms::read_head;

/// Bytes that the head of an atom may have.
pub const HEAD_BYTES_MAX: usize = 16;

/// The largest `ftyp` that is believed, in bytes, without its head: nginx's limit. It is a list of
/// a few names.
const KIND_BYTES_MAX: u64 = 1024;

/// Where a file's atoms are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The file's length in bytes.
    pub file_bytes: u64,
    /// The atom that says of which kind the file is, whole.
    pub kind: Option<Range<u64>>,
    /// What is in the index, `moov`.
    pub index: Option<Range<u64>>,
    /// The samples, `mdat`.
    pub samples: Option<Range<u64>>,
    /// Whether the index stands before the samples, so that a player can begin at once.
    pub index_is_first: bool,
}

/// Goes through the atoms of a file. The caller reads for it:
///
/// ```text
///  while let Some(offset) = scan.wanted() { scan.take(bytes of the file at offset) }
/// ```
#[derive(Debug)]
pub struct Scan {
    layout: Layout,
    offset: u64,
}

impl Scan {
    /// A scan of a file of so many bytes.
    pub fn new(file_bytes: u64) -> Self {
        Self {
            layout: Layout {
                file_bytes,
                ..Layout::default()
            },
            offset: 0,
        }
    }

    /// Where the next head is to be read; `None`: nothing more is needed.
    pub fn wanted(&self) -> Option<u64> {
        let is_known = self.layout.index.is_some() && self.layout.samples.is_some();
        (!is_known && self.offset < self.layout.file_bytes).then_some(self.offset)
    }

    /// Takes the bytes at [`Scan::wanted`]: [`HEAD_BYTES_MAX`] of them, fewer only at the end of
    /// the file.
    ///
    /// # Errors
    /// When they are not the head of an atom that fits into the file.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Mp4Error> {
        let room = self.layout.file_bytes.saturating_sub(self.offset);
        let Some(head) = read_head(bytes, room)? else {
            self.offset = self.layout.file_bytes;
            return Ok(());
        };
        let start = self.offset;
        let content = start + head.head_bytes..start + head.atom_bytes;
        self.offset = content.end;
        let layout = &mut self.layout;
        let (place, name, range) = match &head.name {
            b"ftyp" => {
                let bytes = content.end - content.start;
                if bytes > KIND_BYTES_MAX {
                    return Err(Mp4Error::KindTooLarge(bytes));
                }
                (&mut layout.kind, "ftyp", start..content.end)
            }
            b"moov" => {
                layout.index_is_first = layout.samples.is_none();
                (&mut layout.index, "moov", content)
            }
            b"mdat" => (&mut layout.samples, "mdat", content),
            _ => return Ok(()),
        };
        match place.replace(range) {
            None => Ok(()),
            Some(_) => Err(Mp4Error::Duplicate(name)),
        }
    }

    /// What was found.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
