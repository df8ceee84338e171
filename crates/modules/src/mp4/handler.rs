//! What this family does with a request.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_lane::files::FileHandle;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::file;
use turnpike_plan::background::run_blocking;
use turnpike_wire::mp4::{self, Excerpt, HEAD_BYTES_MAX, Mp4Error, Part, Scan};

use crate::common::file_response;
use crate::common::files::Files;
use crate::common::query_argument::argument;

/// Atoms that are looked at before index and samples are found. Films have a handful; others would
/// cost a read each.
const ATOMS_MAX: usize = 1024;

/// Answers with films and parts of them.
pub(super) struct Films {
    pub(super) files: Files,
    pub(super) index_bytes_max: u64,
    pub(super) from_key_frame: bool,
}

impl Handler for Films {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        if exchange.walk.path().last() == Some(&b'/') {
            return Verdict::Declined;
        }
        let wish = wish(exchange.walk.query(), self.from_key_frame);
        let opened = file_response::open(exchange, &self.files);
        let file = match opened {
            Ok(file) => file,
            Err(verdict) => return verdict,
        };
        let Some(wish) = wish.filter(|_| file.metadata().is_file()) else {
            return file_response::answer_opened(exchange, &self.files, file);
        };
        let film = Film {
            source: match Source::of(&file) {
                Ok(source) => source,
                Err(error) => return fail(exchange, &CutError::Read(error)),
            },
            file_bytes: file.metadata().size_bytes,
            index_bytes_max: self.index_bytes_max,
        };
        Verdict::Wait(Box::new(Cutting {
            film,
            files: self.files.clone(),
            file,
            wish,
        }))
    }
}

/// The part that a query asks for. `None`: the whole film, as it is.
pub(super) fn wish(query: &[u8], from_key_frame: bool) -> Option<Excerpt> {
    let start_ms = argument(query, b"start").and_then(milliseconds);
    let end_ms = argument(query, b"end").and_then(milliseconds);
    let end_ms = end_ms.filter(|end_ms| *end_ms > 0);
    if start_ms.is_none() && end_ms.is_none() {
        return None;
    }
    let start_ms = start_ms.unwrap_or(0);
    Some(Excerpt {
        start_ms,
        length_ms: end_ms
            .and_then(|end_ms| end_ms.checked_sub(start_ms))
            .filter(|length_ms| *length_ms > 0),
        from_key_frame,
    })
}

/// Seconds with any number of digits behind a dot, of which three count.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let dot = memchr::memchr(b'.', text);
    let (whole, part) = match dot {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let is_number = !text.is_empty() && whole.iter().chain(part).all(u8::is_ascii_digit);
    if !is_number {
        return None;
    }
    let digits = whole.iter().chain(part.iter().chain(b"000").take(3));
    digits.copied().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// A film that is to be cut, on a thread that may block.
struct Film {
    source: Source,
    file_bytes: u64,
    index_bytes_max: u64,
}

/// Where the bytes of a film are.
enum Source {
    File(OwnedFd),
    Memory(Box<[u8]>),
}

/// Why a film was not cut.
enum CutError {
    Film(Mp4Error),
    IndexTooLarge(u64),
    Read(io::Error),
}

impl From<Mp4Error> for CutError {
    fn from(error: Mp4Error) -> Self {
        Self::Film(error)
    }
}

impl fmt::Display for CutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Film(error) => error.fmt(formatter),
            Self::IndexTooLarge(bytes) => write!(
                formatter,
                "mp4 moov atom is too large:{bytes}, you may want to increase mp4_max_buffer_size"
            ),
            Self::Read(error) => write!(formatter, "read() failed {}", Errno(error)),
        }
    }
}

impl Source {
    fn of(file: &FileHandle) -> io::Result<Self> {
        if let Some(content) = file.content() {
            return Ok(Self::Memory(content.into()));
        }
        match file.descriptor() {
            Some(descriptor) => Ok(Self::File(descriptor.try_clone_to_owned()?)),
            None => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        }
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let too_short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let length = usize::try_from(range.end - range.start).map_err(|_| too_short())?;
        match self {
            Self::Memory(bytes) => {
                let bytes = usize::try_from(range.start)
                    .ok()
                    .and_then(|start| bytes.get(start..)?.get(..length));
                Ok(bytes.ok_or_else(too_short)?.to_vec())
            }
            Self::File(descriptor) => {
                let mut bytes = vec![0; length];
                let filled = file::fill_at(descriptor.as_fd(), &mut bytes, range.start)?;
                if filled < length {
                    return Err(too_short());
                }
                Ok(bytes)
            }
        }
    }
}

impl Film {
    /// The part; `None`: the whole file does as it is.
    fn cut(&self, wish: &Excerpt) -> Result<Option<Part>, CutError> {
        let read = |range| self.source.read(range).map_err(CutError::Read);
        let mut scan = Scan::new(self.file_bytes);
        for _ in 0..ATOMS_MAX {
            let Some(offset) = scan.wanted() else { break };
            let end = offset
                .saturating_add(HEAD_BYTES_MAX as u64)
                .min(self.file_bytes);
            scan.take(&read(offset..end)?)?;
        }
        let layout = scan.layout();
        if layout.index_is_first && wish.start_ms == 0 && wish.length_ms.is_none() {
            return Ok(None);
        }
        let index = layout.index.clone().ok_or(Mp4Error::Missing("trak"))?;
        let index_bytes = index.end - index.start;
        if index_bytes > self.index_bytes_max {
            return Err(CutError::IndexTooLarge(index_bytes));
        }
        let index = read(index)?;
        let kind = match layout.kind.clone() {
            Some(kind) => read(kind)?,
            None => Vec::new(),
        };
        Ok(Some(mp4::cut(&kind, &index, layout, wish)?))
    }
}

/// A request that waits for its part.
struct Cutting {
    film: Film,
    files: Files,
    file: FileHandle,
    wish: Excerpt,
}

impl Work for Cutting {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let Cutting {
            film,
            files,
            file,
            wish,
        } = self;
        let Ok(job) = run_blocking(move || film.cut(&wish)) else {
            exchange.log(
                Level::Error,
                format_args!("too many mp4 files are being processed: answered with 503"),
            );
            return Verdict::Status(503);
        };
        let Some(cut) = client.unless_gone(job).await else {
            return exchange.client_went_away();
        };
        let part = match cut {
            Some(Ok(part)) => part,
            Some(Err(error)) => return fail(exchange, &error),
            None => return Verdict::Status(500),
        };
        let verdict = file_response::answer_opened(exchange, &files, file);
        if let (Verdict::Respond, Some(part)) = (&verdict, part) {
            let Part { index, samples } = part;
            let length = samples.end - samples.start;
            file_response::put_part(&mut exchange.response, index, samples.start, length);
        }
        verdict
    }
}

fn fail(exchange: &Exchange, error: &CutError) -> Verdict {
    let mut path = Vec::new();
    exchange.file_path(&mut path);
    let path = Quoted(&path);
    exchange.log(Level::Error, format_args!("{error} in \"{path}\""));
    Verdict::Status(500)
}
