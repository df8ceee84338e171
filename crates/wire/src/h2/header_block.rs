//! A header block that comes in several frames (RFC 9113 section 6.10).

use super::error::{ConnectionError, ErrorCode};
use super::frame::StreamId;

/// Bytes of a block, as compressed, beyond which it is refused whatever it would decode to: the
/// list of fields is limited when it is decoded, and is no smaller but for padded texts.
const BLOCK_BYTES_MAX: usize = 256 * 1024;

/// A block of which not all frames have come.
pub(super) struct HeaderBlock {
    pub(super) stream: StreamId,
    pub(super) ends_stream: bool,
    bytes: Vec<u8>,
}

impl HeaderBlock {
    /// Begins with the fragment of a HEADERS frame.
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
