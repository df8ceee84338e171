//! Transfer codings belong to one connection (RFC 9112 section 7): what a server has compressed for
//! its connection to us is expanded before anybody else sees it.

use flate2::{Decompress, FlushDecompress, Status};
use turnpike_wire::message::TransferCoding;

/// Most compressed bytes that are read at a time. One may expand to 1032 (RFC 1951), so that a
/// piece takes a megabyte of memory, and little of the lane's time.
pub(crate) const READ_BYTES_MAX: usize = 1024;

/// The largest window that a gzip member may need (RFC 1951 section 2).
const WINDOW_BITS: u8 = 15;

/// Room that is made for what is expanded, in bytes, until there is enough.
const ROOM_BYTES: usize = 16 * 1024;

/// The low four bits of a zlib stream's first byte (RFC 1950 section 2.2). A bare deflate stream,
/// which some servers send in its place, does not begin so.
const ZLIB_METHOD: u8 = 8;

/// What came is not in the coding that was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Expands a body as it comes.
pub(crate) struct Expander {
    coding: TransferCoding,
    /// The stream that has begun; of gzip, several may follow one another.
    stream: Option<Decompress>,
    /// Whether nothing may follow.
    over: bool,
}

impl Expander {
    pub(crate) fn new(coding: TransferCoding) -> Self {
        Self {
            coding,
            stream: None,
            over: false,
        }
    }

    /// Expands a piece behind what `out` holds.
    pub(crate) fn expand(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut rest = piece;
        loop {
            let stream = match (&mut self.stream, rest.first()) {
                (Some(stream), _) => stream,
                (None, None) => return Ok(()),
                (None, Some(_)) if self.over => return Err(Malformed),
                (none, Some(first)) => none.insert(match self.coding {
                    TransferCoding::Gzip => Decompress::new_gzip(WINDOW_BITS),
                    TransferCoding::Deflate => Decompress::new(first & 0x0f == ZLIB_METHOD),
                }),
            };
            out.reserve(ROOM_BYTES);
            let (taken, given) = (stream.total_in(), out.len());
            let status = stream.decompress_vec(rest, out, FlushDecompress::None);
            let taken = (stream.total_in() - taken) as usize;
            rest = rest.get(taken..).unwrap_or_default();
            match status {
                Ok(Status::StreamEnd) => {
                    self.stream = None;
                    self.over = self.coding == TransferCoding::Deflate;
                }
                Ok(_) if taken == 0 && out.len() == given => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(Malformed),
            }
        }
    }

    /// Whether a body may end here.
    pub(crate) fn is_whole(&self) -> bool {
        self.stream.is_none()
    }
}
