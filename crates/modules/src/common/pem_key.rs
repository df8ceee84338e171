//! The private key of a PEM text, as OpenSSL finds it: the first one there.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use turnpike_wire::pem::{Block, Piece, Pieces};

/// OpenSSL's words where there is no key, or one of an unknown kind.
pub(crate) const UNSUPPORTED: &str = "error:1E08010C:DECODER routines::unsupported:No supported \
                                      data to decode. Input type: PEM";

/// The block of the key.
///
/// # Errors
/// There is none, or a block that cannot be read is before it.
pub(crate) fn block(pem: &[u8]) -> Result<Block<'_>, String> {
    for piece in Pieces::new(pem) {
        match piece {
            Ok(Piece::Block(block)) if block.label.ends_with(b"PRIVATE KEY") => return Ok(block),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(UNSUPPORTED.to_owned())
}

/// The key of a block that no password protects.
///
/// # Errors
/// It is of an unknown kind.
pub(crate) fn plain(block: Block<'_>) -> Result<PrivateKeyDer<'static>, String> {
    match block.label {
        b"PRIVATE KEY" => Ok(PrivatePkcs8KeyDer::from(block.data).into()),
        b"RSA PRIVATE KEY" => Ok(PrivatePkcs1KeyDer::from(block.data).into()),
        b"EC PRIVATE KEY" => Ok(PrivateSec1KeyDer::from(block.data).into()),
        _ => Err(UNSUPPORTED.to_owned()),
    }
}

/// The key of a text, which no password protects.
///
/// # Errors
/// As for [`block`] and [`plain`].
pub(crate) fn read(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    plain(block(pem)?)
}
