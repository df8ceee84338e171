//! A header block that comes in several frames (RFC 9113 section 6.10).

use super::error::{ConnectionError, ErrorCode};
use super::frame::StreamId;

/// The largest compressed block, in bytes. The decoded list of fields has its own limit and is at
/// least as large as the block, except for padded texts.
const BLOCK_BYTES_MAX: usize = 256 * 1024;

/// An incomplete block.
pub(super) struct HeaderBlock {
    pub(super) stream: StreamId,
    pub(super) ends_stream: bool,
    bytes: Vec<u8>,
}

impl HeaderBlock {
    /// A block that begins with the fragment of a HEADERS frame.
    pub(super) fn new(stream: StreamId, fragment: &[u8], ends_stream: bool) -> HeaderBlock {
        HeaderBlock {
            stream,
            ends_stream,
            bytes: fragment.to_vec(),
        }
    }

    /// Adds the fragment of a CONTINUATION frame.
    ///
    /// # Errors
    /// The block is too large.
    pub(super) fn add(&mut self, fragment: &[u8]) -> Result<(), ConnectionError> {
        if self.bytes.len() + fragment.len() > BLOCK_BYTES_MAX {
            return Err(ConnectionError::new(
                ErrorCode::EnhanceYourCalm,
                "client sent too large header block",
            ));
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }

    /// The whole block.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
