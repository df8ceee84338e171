//! Cutting bodies of every kind.

use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{
    Body, BodyFailed, BodyStream, FileBody, LocalFuture, Parts, Response,
};

use super::parse::ByteRange;

/// Leaves of a body what is in the range.
pub(super) fn cut(response: &mut Response, range: ByteRange) {
    let (start, end) = (range.start as usize, range.end as usize);
    response.body = match std::mem::take(&mut response.body) {
        body @ (Body::Empty | Body::Tunnel(_)) => body,
        Body::Text => {
            response.text.truncate(end);
            response.text.drain(..start.min(response.text.len()));
            Body::Text
        }
        Body::Static(bytes) => Body::Static(bytes.get(start..end).unwrap_or_default()),
        Body::Shared(bytes) => {
            response.text.clear();
            let bytes = bytes.get(start..end).unwrap_or_default();
            response.text.extend_from_slice(bytes);
            Body::Text
        }
        Body::File(FileBody { file, parts }) => {
            let parts = match parts {
                Parts::One { offset, .. } => Parts::One {
                    offset: offset + range.start,
                    length: range.end - range.start,
                },
                many @ Parts::Many { .. } => many,
            };
            Body::File(FileBody { file, parts })
        }
        Body::Stream(inner) => Body::Stream(Box::new(CutStream {
            inner,
            skip: range.start,
            left: range.end - range.start,
            draining: false,
        })),
    };
}

/// Makes a body of several parts of another, and returns its length in bytes. A stream, which
/// comes only once and in order, has no such parts.
pub(super) fn cut_parts(
    response: &mut Response,
    ranges: &[ByteRange],
    heads: Vec<Vec<u8>>,
    end: Vec<u8>,
) -> u64 {
    let parts = heads.iter().zip(ranges);
    let length = parts.fold(end.len() as u64, |sum, (head, range)| {
        sum + head.len() as u64 + (range.end - range.start)
    });
    let text = std::mem::take(&mut response.text);
    let bytes: &[u8] = match &mut response.body {
        Body::File(FileBody { parts, .. }) => {
            let start = match parts {
                Parts::One { offset, .. } => *offset,
                Parts::Many { .. } => 0,
            };
            *parts = file_parts(start, ranges, heads, end);
            return length;
        }
        Body::Text => &text,
        Body::Static(bytes) => bytes,
        Body::Shared(bytes) => bytes,
        Body::Empty | Body::Stream(_) | Body::Tunnel(_) => return length,
    };
    let mut whole = Vec::with_capacity(length as usize);
    for (head, range) in heads.iter().zip(ranges) {
        whole.extend_from_slice(head);
        let slice = bytes.get(range.start as usize..range.end as usize);
        whole.extend_from_slice(slice.unwrap_or_default());
    }
    whole.extend_from_slice(&end);
    response.text = whole;
    response.body = Body::Text;
    length
}

fn file_parts(start: u64, ranges: &[ByteRange], heads: Vec<Vec<u8>>, end: Vec<u8>) -> Parts {
    let slice =
        |(head, range): (Vec<u8>, &ByteRange)| (head, start + range.start, range.end - range.start);
    Parts::Many {
        parts: heads.into_iter().zip(ranges).map(slice).collect(),
        end,
    }
}

/// A stream of which the beginning is thrown away and the end not waited for.
struct CutStream {
    inner: Box<dyn BodyStream>,
    skip: u64,
    left: u64,
    /// Whether the client has its part, and the rest is for others.
    draining: bool,
}

impl CutStream {
    /// Leaves of a piece what is in the range. `false`: nothing more of the body is.
    fn cut(&mut self, piece: &mut Vec<u8>) -> bool {
        let skipped = self.skip.min(piece.len() as u64);
        self.skip -= skipped;
        piece.drain(..skipped as usize);
        piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= piece.len() as u64;
        self.left > 0
    }
}

impl BodyStream for CutStream {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: &'a Stream,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        if self.draining {
            return self.inner.next(exchange, client, out);
        }
        Box::pin(async move {
            loop {
                let more = self.inner.next(exchange, client, out).await?;
                let more = self.cut(out) && more;
                if !more || !out.is_empty() {
                    return Ok(more);
                }
            }
        })
    }

    fn read_ahead<'a>(&'a mut self, exchange: &'a mut Exchange) -> LocalFuture<'a, ()> {
        self.inner.read_ahead(exchange)
    }

    fn outlives_client(&mut self) -> bool {
        self.draining = self.inner.outlives_client();
        self.draining
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        self.inner.ended(exchange);
    }
}
