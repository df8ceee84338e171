//! HTTP/1 as origins speak it.

use super::parts::{ParsedRequest, Written, at_percent, breaks_head, content_of, fields};
use crate::answer::{Answer, Disorder, Ending};
use crate::content::chunked;
use crate::message;

/// A field that no reader may accept.
const WRONG_FIELD: &str = "X-Wrong: \0\r\n";

/// A line that is no chunk's size.
const WRONG_SIZE: &[u8] = b"zz\r\n";

/// The most bytes of a chunk.
const CHUNK_BYTES_MAX: usize = 1_500;

pub(super) fn read(input: &[u8]) -> Result<Option<ParsedRequest>, String> {
    let Some(request) = message::request(input)? else {
        return Ok(None);
    };
    if !request.is_whole {
        return Ok(None);
    }
    let mut words = request.first_line.split(' ');
    let is_head = words.next() == Some("HEAD");
    let path = words.next().unwrap_or_default().to_owned();
    let number = request.field("X-Number").and_then(|text| text.parse().ok());
    let number = number.ok_or("a request has no X-Number")?;
    Ok(Some(ParsedRequest {
        number,
        path,
        is_head,
        length: request.length,
        body: request.body,
        keeps: true,
    }))
}

pub(super) fn write(answer: &Answer, content: u64, asked: &ParsedRequest) -> Written {
    let mut head = String::new();
    if answer.has_interim {
        head.push_str("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n");
    }
    let reason = match answer.status {
        101 => "Switching Protocols",
        200 => "OK",
        _ => "Fault",
    };
    head.push_str(&format!("HTTP/1.1 {} {reason}\r\n", answer.status));
    head.push_str(&fields(answer, content));
    if answer.says_close {
        head.push_str("Connection: close\r\n");
    }
    match answer.ending {
        Ending::Tunnel => head.push_str("Connection: upgrade\r\nUpgrade: simulated\r\n"),
        Ending::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
        Ending::Length | Ending::Close => {}
    }
    let content = content_of(answer, content, asked);
    let is_chunked = answer.ending == Ending::Chunked && !asked.is_head;
    let mut broken_at = breaks_head(answer).then_some(0);
    let mut wrong_from = None;
    if let Some(Disorder::Wrong { kind, percent }) = answer.disorder {
        if is_chunked && kind % 2 == 1 {
            wrong_from = Some(at_percent(percent, content.len()));
        } else {
            broken_at = Some(head.len());
            head.push_str(WRONG_FIELD);
        }
    }
    if answer.disorder != Some(Disorder::EndlessHead) {
        head.push_str("\r\n");
    }
    let mut bytes = head.into_bytes();
    let head_bytes = bytes.len();
    match (is_chunked, wrong_from) {
        (true, Some(from)) => {
            let mut chunks = chunked(&content[..from], CHUNK_BYTES_MAX);
            chunks.truncate(chunks.len() - b"0\r\n\r\n".len());
            bytes.extend_from_slice(&chunks);
            broken_at = Some(bytes.len());
            bytes.extend_from_slice(WRONG_SIZE);
        }
        (true, None) => bytes.extend_from_slice(&chunked(&content, CHUNK_BYTES_MAX)),
        (false, _) => bytes.extend_from_slice(&content),
    }
    Written {
        bytes,
        head_bytes,
        broken_at,
        is_last: answer.says_close || answer.ending == Ending::Close,
    }
}
