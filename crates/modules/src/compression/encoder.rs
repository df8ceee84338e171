//! The codings that a response may be compressed with, and what compresses them (RFC 1952,
//! RFC 7932, RFC 8878). Nothing here knows requests or responses.

use std::io;

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderStateStruct};
use flate2::{Compress, FlushCompress, Status};
use zstd::stream::raw::{CParameter, Operation, OutBuffer};

/// Room that is made in the output at once, in bytes.
const ROOM_BYTES: usize = 4 * 1024;

/// The highest level of brotli that a lane works at: 64 KB take some milliseconds. The levels above
/// take up to a hundred.
const BROTLI_LEVEL_ON_LANE_MAX: u32 = 6;

/// The highest level of zstd that a lane works at, for the same reason.
const ZSTD_LEVEL_ON_LANE_MAX: u32 = 9;

/// Brotli gathers so many bytes before it compresses them, as a power of two: the least that its
/// format's encoder knows, so that a turn is short.
const BROTLI_BLOCK_BITS: i32 = 16;

/// The highest level of zstd whose window is no larger than clients must have room for.
const ZSTD_LEVEL_OF_SMALL_WINDOW_MAX: u32 = 19;

/// The largest window that whoever reads zstd as a content coding must have room for, as a power of
/// two (RFC 9659 section 3: 8 MB).
const ZSTD_WINDOW_BITS_MAX: u32 = 23;

/// A content coding, the best for its size first: which one a client gets that likes several
/// equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// The registered name (RFC 9110 section 8.4.1).
    pub(super) fn token(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// What its directives begin with.
    pub(super) fn directive(self) -> &'static str {
        match self {
            Coding::Brotli => "brotli",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// What the names of files end with that are compressed so.
    pub(super) fn suffix(self) -> &'static [u8] {
        match self {
            Coding::Brotli => b".br",
            Coding::Zstd => b".zst",
            Coding::Gzip => b".gz",
        }
    }

    /// How much a client that sent this Accept-Encoding likes it, in thousandths; 0: not at all.
    pub(super) fn weight(self, codings: &[u8]) -> u16 {
        weight_of(codings, self.token().as_bytes())
    }
}

/// How a response is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Strength {
    pub(super) coding: Coding,
    pub(super) level: u32,
    /// As a power of two; zstd's follows from its level.
    pub(super) window_bits: u8,
}

impl Strength {
    /// Whether compressing would hold a lane for too long.
    pub(super) fn is_slow(&self) -> bool {
        match self.coding {
            Coding::Gzip => false,
            Coding::Brotli => self.level > BROTLI_LEVEL_ON_LANE_MAX,
            Coding::Zstd => self.level > ZSTD_LEVEL_ON_LANE_MAX,
        }
    }

    /// A new encoder.
    ///
    /// # Errors
    /// It has no memory.
    pub(super) fn encoder(&self) -> io::Result<Encoder> {
        Ok(match self.coding {
            // zlib-rs's first level is for speed alone: zlib's first, which users know, is nearer
            // to its second.
            Coding::Gzip => {
                let level = flate2::Compression::new(self.level.max(2));
                Encoder::Gzip(Compress::new_gzip(level, self.window_bits))
            }
            Coding::Brotli => {
                let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
                state.params.quality = self.level as i32;
                state.params.lgwin = i32::from(self.window_bits);
                state.params.lgblock = BROTLI_BLOCK_BITS;
                Encoder::Brotli(Box::new(state))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::raw::Encoder::new(self.level as i32)?;
                if self.level > ZSTD_LEVEL_OF_SMALL_WINDOW_MAX {
                    encoder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS_MAX))?;
                }
                Encoder::Zstd(encoder)
            }
        })
    }
}

/// What comes after the bytes that are given to an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// More bytes.
    More,
    /// A pause: what was given is to be readable.
    Pause,
    /// Nothing.
    End,
}

/// A body while it is compressed.
pub(super) enum Encoder {
    Gzip(Compress),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(zstd::stream::raw::Encoder<'static>),
}

impl Encoder {
    /// Compresses `bytes`, and appends what is ready to `out`.
    ///
    /// # Errors
    /// The library's.
    pub(super) fn encode(&mut self, bytes: &[u8], next: Next, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Encoder::Gzip(compress) => deflate(compress, bytes, next, out),
            Encoder::Brotli(state) => encode_brotli(state, bytes, next, out),
            Encoder::Zstd(encoder) => encode_zstd(encoder, bytes, next, out),
        }
    }

    /// Makes ready for another body; `None` where a new encoder costs no more.
    pub(super) fn reset(self) -> Option<Self> {
        match self {
            Encoder::Gzip(mut compress) => {
                compress.reset();
                Some(Encoder::Gzip(compress))
            }
            Encoder::Brotli(_) => None,
            Encoder::Zstd(mut encoder) => {
                encoder.reinit().ok()?;
                Some(Encoder::Zstd(encoder))
            }
        }
    }
}

fn deflate(compress: &mut Compress, bytes: &[u8], next: Next, out: &mut Vec<u8>) -> io::Result<()> {
    let flush = match next {
        Next::More => FlushCompress::None,
        Next::Pause => FlushCompress::Sync,
        Next::End => FlushCompress::Finish,
    };
    let begin = compress.total_in();
    loop {
        let taken = (compress.total_in() - begin) as usize;
        let rest = bytes.get(taken..).unwrap_or_default();
        out.reserve(ROOM_BYTES);
        match compress.compress_vec(rest, out, flush)? {
            Status::StreamEnd => return Ok(()),
            // All was taken, and there was room for more than it became.
            _ if out.len() < out.capacity() && next != Next::End => return Ok(()),
            _ => {}
        }
    }
}

fn encode_brotli(
    state: &mut BrotliEncoderStateStruct<StandardAlloc>,
    bytes: &[u8],
    next: Next,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let operation = match next {
        Next::More => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Next::Pause => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Next::End => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut left, mut from) = (bytes.len(), 0);
    loop {
        let end = out.len();
        out.resize(end + ROOM_BYTES, 0);
        let (mut room, mut given) = (ROOM_BYTES, 0);
        let done = state.compress_stream(
            operation,
            &mut left,
            bytes,
            &mut from,
            &mut room,
            &mut out[end..],
            &mut given,
            &mut None,
            &mut |_, _, _, _| (),
        );
        out.truncate(end + given);
        if !done {
            return Err(io::Error::other("the encoder refused"));
        }
        let is_over = match next {
            Next::End => state.is_finished(),
            Next::More | Next::Pause => left == 0 && !state.has_more_output(),
        };
        if is_over {
            return Ok(());
        }
    }
}

fn encode_zstd(
    encoder: &mut zstd::stream::raw::Encoder<'static>,
    bytes: &[u8],
    next: Next,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let mut taken = 0;
    while taken < bytes.len() {
        out.reserve(ROOM_BYTES);
        let mut input = zstd::stream::raw::InBuffer::around(&bytes[taken..]);
        let at = out.len();
        encoder.run(&mut input, &mut OutBuffer::around_pos(out, at))?;
        taken += input.pos();
    }
    loop {
        out.reserve(ROOM_BYTES);
        let at = out.len();
        let mut room = OutBuffer::around_pos(out, at);
        let left = match next {
            Next::More => 0,
            Next::Pause => encoder.flush(&mut room)?,
            Next::End => encoder.finish(&mut room, true)?,
        };
        if left == 0 {
            return Ok(());
        }
    }
}

/// The weight of a coding in an Accept-Encoding field (RFC 9110 section 12.5.3), in thousandths;
/// 0 where it is not named. `*` is not taken for it.
fn weight_of(codings: &[u8], token: &[u8]) -> u16 {
    let mut named = codings.split(|byte| *byte == b',').filter_map(|one| {
        let mut parts = one.splitn(2, |byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_named = parts.next()?.eq_ignore_ascii_case(token);
        is_named.then(|| parts.next().map_or(1000, weight))
    });
    named.find(|weight| *weight > 0).unwrap_or(0)
}

/// What a parameter that is a weight says, in thousandths; 0 where it is none.
fn weight(parameter: &[u8]) -> u16 {
    let Some((b'q' | b'Q', rest)) = parameter.split_first() else {
        return if parameter.is_empty() { 1000 } else { 0 };
    };
    let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
        return 0;
    };
    match value.trim_ascii_start().split_first() {
        Some((b'1', rest)) if thousandths(rest) == Some(0) => 1000,
        Some((b'0', rest)) => thousandths(rest).unwrap_or(0),
        _ => 0,
    }
}

/// Nothing, or a dot and at most three digits.
fn thousandths(text: &[u8]) -> Option<u16> {
    let digits = match text.split_first() {
        None => return Some(0),
        Some((b'.', digits)) if digits.len() <= 3 => digits,
        Some(_) => return None,
    };
    let mut sum = 0;
    for place in 0..3 {
        let digit = *digits.get(place).unwrap_or(&b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        sum = sum * 10 + u16::from(digit - b'0');
    }
    Some(sum)
}
