//! A question of an active check in HTTP/1, and its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use turnpike_http::h1::origin::{BodyReader, HeadReader};
use turnpike_lane::timeout::bounded;
use turnpike_upstream::{Asked, Connection, Question};
use turnpike_wire::message::{BodyEnd, Delivery, Fields, Head, HeadRules, Method, Strictness};

use super::Conditions;

/// Bytes of a body that are looked at; nginx's.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a head that are read: an answer to a check needs no more.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Fields of a head.
const FIELDS_MAX: usize = 200;

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;

/// Interim responses before the answer.
const INTERIM_MAX: usize = 16;

/// What was being done, in the words of nginx's log.
const READING_HEAD: &str = "reading response header from upstream";
const READING_BODY: &str = "reading upstream";

/// An answer, to be judged.
pub(super) struct Answer<'a> {
    /// Status code.
    pub(super) status: u16,
    pub(super) fields: &'a Fields,
    /// The beginning of its body.
    pub(super) body: &'a [u8],
}

/// A request, and what its answer has to be.
pub(super) struct HttpQuestion {
    /// What is sent.
    pub(super) request: Vec<u8>,
    /// The conditions; `None`: a status of 2xx or 3xx.
    pub(super) conditions: Option<Arc<Conditions>>,
    /// How long head and body of the answer may take each, in milliseconds.
    pub(super) read_timeout_ms: u64,
}

impl Question for HttpQuestion {
    fn ask<'a>(&'a self, connection: &'a Connection) -> Pin<Box<dyn Future<Output = Asked> + 'a>> {
        Box::pin(async move {
            let (mut head, mut is_reusable) = (Head::default(), false);
            let answered = self.answer(connection, &mut head, &mut is_reusable).await;
            let found = answered.and_then(|body| {
                self.judge(&Answer {
                    status: head.status,
                    fields: &head.fields,
                    body: &body,
                })
            });
            Asked { found, is_reusable }
        })
    }
}

impl HttpQuestion {
    fn judge(&self, answer: &Answer<'_>) -> Result<(), &'static str> {
        match &self.conditions {
            Some(conditions) => conditions.judge(answer),
            None if (200..400).contains(&answer.status) => Ok(()),
            None => Err("checking status code"),
        }
    }

    /// Sends the request and reads the answer; returns its body. `is_reusable`: whether another
    /// request can follow.
    async fn answer(
        &self,
        connection: &Connection,
        head: &mut Head,
        is_reusable: &mut bool,
    ) -> Result<Vec<u8>, &'static str> {
        let timeout_ms = self.read_timeout_ms;
        let sent = connection.write_all(&self.request, timeout_ms).await;
        sent.map_err(|_| "sending request to upstream")?;
        // All of a head, and all of a body, in that time: a peer that trickles is as bad as one
        // that is silent.
        let mut input = Vec::new();
        let read = bounded(timeout_ms, read_head(connection, &mut input, head));
        let delivery = read.await.unwrap_or(Err(READING_HEAD))?;
        let read = bounded(timeout_ms, read_body(connection, input, delivery.end));
        let (body, ended) = read.await.unwrap_or(Err(READING_BODY))?;
        *is_reusable = ended == Ended::Cleanly && delivery.keeps_connection;
        Ok(body)
    }
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
    input: &mut Vec<u8>,
    head: &mut Head,
) -> Result<Delivery, &'static str> {
    let rules = HeadRules {
        line_bytes_max: HEAD_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        // A check asks whether the server is well, not how well it writes.
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let (mut lines, mut interim) = (HeadReader::default(), 0);
    loop {
        let is_whole = lines.read(input, &rules, Method::Get, head);
        if is_whole.map_err(|_| READING_HEAD)? {
            if head.is_interim() && interim < INTERIM_MAX {
                interim += 1;
                continue;
            }
            let delivery = lines.delivery();
            // A coding that nobody asked for: what is compared with would be compressed.
            return match delivery.coding {
                Some(_) => Err(READING_HEAD),
                None => Ok(delivery),
            };
        }
        let read = connection.read(input, READ_BYTES, 0).await;
        if read.map_err(|_| READING_HEAD)? == 0 {
            return Err(READING_HEAD);
        }
    }
}

/// Reads the body as far as it is looked at.
async fn read_body(
    connection: &Connection,
    mut input: Vec<u8>,
    end: BodyEnd,
) -> Result<(Vec<u8>, Ended), &'static str> {
    let until_close = end == BodyEnd::UntilClose;
    let mut reader = BodyReader::new(end, Strictness::Nginx);
    let mut body = Vec::new();
    loop {
        loop {
            let piece = reader.read(&input).map_err(|_| READING_BODY)?;
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
            Ok(0) | Err(_) => return Err(READING_BODY),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
