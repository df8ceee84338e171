//! Compressed certificates (RFC 8879) for clients of TLS 1.3 that take them. A chain is compressed
//! once; the library keeps the result.

use std::io::Write as _;

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustls::CertificateCompressionAlgorithm as Algorithm;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};

/// Both, the one that makes chains shorter first.
pub(super) const COMPRESSORS: &[&dyn CertCompressor] = &[&Brotli, &Zlib];

/// The effort of Brotli. A lane waits for it at the first handshake: a chain takes a part of a
/// millisecond, and ten with the highest one.
const BROTLI_QUALITY: i32 = 5;

#[derive(Debug)]
struct Brotli;

#[derive(Debug)]
struct Zlib;

impl CertCompressor for Brotli {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let parameters = BrotliEncoderParams {
            quality: BROTLI_QUALITY,
            size_hint: input.len(),
            ..BrotliEncoderParams::default()
        };
        let mut output = Vec::new();
        match brotli::BrotliCompress(&mut input.as_slice(), &mut output, &parameters) {
            Ok(_) => Ok(output),
            Err(_) => Err(CompressionFailed),
        }
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Brotli
    }
}

impl CertCompressor for Zlib {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(&input);
        written
            .and_then(|()| encoder.finish())
            .map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Zlib
    }
}

#[cfg(test)]
mod tests {
    //! What was compressed, read again.

    use std::io::Read as _;

    use super::{Algorithm, COMPRESSORS, CompressionLevel};

    #[test]
    fn a_chain_is_shorter_and_the_same() {
        let chain = b"issuer, subject, key; ".repeat(100);
        for compressor in COMPRESSORS {
            let short = compressor.compress(chain.clone(), CompressionLevel::Amortized);
            let short = short.expect("compressed");
            assert!(short.len() < chain.len() / 2, "{compressor:?}");
            let mut back = Vec::new();
            let read = match compressor.algorithm() {
                Algorithm::Brotli => {
                    brotli::Decompressor::new(short.as_slice(), 4096).read_to_end(&mut back)
                }
                _ => flate2::read::ZlibDecoder::new(short.as_slice()).read_to_end(&mut back),
            };
            assert_eq!(read.ok(), Some(chain.len()), "{compressor:?}");
            assert_eq!(back, chain, "{compressor:?}");
        }
    }
}
