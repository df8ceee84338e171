//! One HTTP/1.1 exchange on a connection that the server itself asks for, as active checks do. It
//! runs on the thread of background services, never on a lane.

use std::io;

use turnpike_http::h1::origin::{BodyReader, HeadReader};
use turnpike_lane::timeout::bounded;
use turnpike_upstream::Connection;
use turnpike_wire::message::{BodyEnd, Delivery, Head, HeadRules, Method, Strictness};

/// The most bytes of a body that are kept; nginx's number for checks.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// The most bytes of a head: such an answer needs no more.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The most fields of a head.
const FIELDS_MAX: usize = 200;

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;

/// The most interim responses before the answer.
const INTERIM_MAX: usize = 16;

/// The step at which an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Sending,
    ReadingHead,
    ReadingBody,
}

impl Failed {
    /// The action in nginx's log messages, after `while`.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Failed::Sending => "sending request to upstream",
            Failed::ReadingHead => "reading response header from upstream",
            Failed::ReadingBody => "reading upstream",
        }
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) head: Head,
    /// The body, cut at [`BODY_BYTES_MAX`].
    pub(crate) body: Vec<u8>,
    /// Whether another request can follow on the connection.
    pub(crate) is_reusable: bool,
}

/// Sends a request, which has this method, and reads the answer. Sending, the head and the body may
/// take `timeout_ms` each: a peer that trickles is as bad as one that is silent.
///
/// # Errors
/// The step that failed.
pub(crate) async fn exchange(
    connection: &Connection,
    request: &[u8],
    method: Method,
    timeout_ms: u64,
) -> Result<Answer, Failed> {
    let sent = connection.write_all(request, timeout_ms).await;
    sent.map_err(|_| Failed::Sending)?;
    let (mut head, mut input) = (Head::default(), Vec::new());
    let read = read_head(connection, method, &mut input, &mut head);
    let read = bounded(timeout_ms, read).await;
    let delivery = read.unwrap_or(Err(Failed::ReadingHead))?;
    let read = bounded(timeout_ms, read_body(connection, input, delivery.end));
    let (body, ended) = read.await.unwrap_or(Err(Failed::ReadingBody))?;
    Ok(Answer {
        head,
        body,
        is_reusable: ended == Ended::Cleanly && delivery.keeps_connection,
    })
}

/// How a body that was read ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// With nothing behind it.
    Cleanly,
    /// With the connection, too late to look at, or with something behind it.
    Otherwise,
}

async fn read_head(
    connection: &Connection,
    method: Method,
    input: &mut Vec<u8>,
    head: &mut Head,
) -> Result<Delivery, Failed> {
    let rules = HeadRules {
        line_bytes_max: HEAD_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        // What matters is the answer, not how well the server writes.
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let (mut lines, mut interim) = (HeadReader::default(), 0);
    loop {
        let is_whole = lines.read(input, &rules, method, head);
        if is_whole.map_err(|_| Failed::ReadingHead)? {
            if head.is_interim() && interim < INTERIM_MAX {
                interim += 1;
                continue;
            }
            let delivery = lines.delivery();
            // A coding that nobody asked for: what is compared with would be compressed.
            return match delivery.coding {
                Some(_) => Err(Failed::ReadingHead),
                None => Ok(delivery),
            };
        }
        let read = connection.read(input, READ_BYTES, 0).await;
        if read.map_err(|_| Failed::ReadingHead)? == 0 {
            return Err(Failed::ReadingHead);
        }
    }
}

/// Reads the body as far as it is looked at.
async fn read_body(
    connection: &Connection,
    mut input: Vec<u8>,
    end: BodyEnd,
) -> Result<(Vec<u8>, Ended), Failed> {
    let until_close = end == BodyEnd::UntilClose;
    let mut reader = BodyReader::new(end, Strictness::Nginx);
    let mut body = Vec::new();
    loop {
        loop {
            let piece = reader.read(&input).map_err(|_| Failed::ReadingBody)?;
            body.extend_from_slice(piece.data);
            let (taken_bytes, is_last) = (piece.taken_bytes, piece.is_last);
            input.drain(..taken_bytes);
            if is_last || body.len() >= BODY_BYTES_MAX {
                body.truncate(BODY_BYTES_MAX);
                let ended = match is_last && input.is_empty() {
                    true => Ended::Cleanly,
                    false => Ended::Otherwise,
                };
                return Ok((body, ended));
            }
            if taken_bytes == 0 {
                break;
            }
        }
        match connection.read(&mut input, READ_BYTES, 0).await {
            Ok(0) if until_close => return Ok((body, Ended::Otherwise)),
            Err(error) if until_close && error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok((body, Ended::Otherwise));
            }
            Ok(0) | Err(_) => return Err(Failed::ReadingBody),
            Ok(_) => {}
        }
    }
}
