//! One question to one peer, and its answer.

use std::io;
use std::sync::Arc;

use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::timeout::bounded;
use turnpike_wire::h1::{self, BodyState, HeadStep, ResponseFraming, ResponseHead};
use turnpike_wire::message::{HeadRules, Method, Strictness};

use super::Check;
use crate::address::Address;
use crate::connection::{ConnectOptions, Connection, Tls};
use crate::tls::TlsConnector;

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

/// TLS for a check.
#[derive(Clone, Debug)]
pub struct CheckTls {
    /// What begins the session.
    pub connector: Arc<TlsConnector>,
    /// The name that the peer must have.
    pub name: String,
}

/// An answer, to be judged.
pub struct Answer<'a> {
    /// Status code.
    pub status: u16,
    /// Names and values of its fields, in order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// The beginning of its body.
    pub body: &'a [u8],
}

/// Asks, on the connection that is idle or on another, and has the answer judged. The error is what
/// was being done. A connection that may ask again is left in `idle`.
pub(super) async fn ask(
    check: &Check,
    address: &Address,
    idle: &mut Option<Connection>,
) -> Result<(), &'static str> {
    let now_ms = monotonic_ns() / 1_000_000;
    let young = |one: &Connection| {
        now_ms.saturating_sub(one.opened_ms()) < check.keepalive_time_ms && one.looks_idle(true)
    };
    if let Some(connection) = idle.take().filter(young) {
        connection.used_again();
        let asked = ask_on(check, connection, idle).await;
        // What was closed just now says nothing of the peer.
        if !matches!(asked, Err((_, Heard::Nothing))) {
            return asked.map_err(|(action, _)| action);
        }
    }
    let options = ConnectOptions {
        timeout_ms: check.connect_timeout_ms,
        proxy_header: &check.proxy_header,
        tls: check.tls.as_ref().map(|tls| Tls {
            connector: &tls.connector,
            name: &tls.name,
            timeout_ms: check.connect_timeout_ms,
        }),
        ..ConnectOptions::default()
    };
    let connection = Connection::open_to(address, &options, now_ms).await;
    let connection = connection.map_err(|error| error.action())?;
    let asked = ask_on(check, connection, idle).await;
    asked.map_err(|(action, _)| action)
}

/// Whether a peer that failed had begun to answer.
enum Heard {
    Nothing,
    Something,
}

async fn ask_on(
    check: &Check,
    connection: Connection,
    idle: &mut Option<Connection>,
) -> Result<(), (&'static str, Heard)> {
    let mut head = ResponseHead::default();
    let mut input = Vec::new();
    let answered = answer(check, &connection, &mut input, &mut head).await;
    let (body, ended) = answered.map_err(|action| match connection.bytes_received() {
        0 => (action, Heard::Nothing),
        _ => (action, Heard::Something),
    })?;
    let fields = head.fields.iter();
    let fields = fields.map(|field| (field.name.of(&input), field.value.of(&input)));
    let judged = check.judge.judge(&Answer {
        status: head.status,
        fields: fields.collect(),
        body: &body,
    });
    if check.keepalive_time_ms > 0 && ended == Ended::Cleanly && head.keep_alive() {
        *idle = Some(connection);
    }
    judged.map_err(|action| (action, Heard::Something))
}

/// Sends the question and reads the answer: its body, and how that ended.
async fn answer(
    check: &Check,
    connection: &Connection,
    input: &mut Vec<u8>,
    head: &mut ResponseHead,
) -> Result<(Vec<u8>, Ended), &'static str> {
    let timeout_ms = check.read_timeout_ms;
    let sent = connection.write_all(&check.request, timeout_ms).await;
    sent.map_err(|_| "sending request to upstream")?;
    // All of a head, and all of a body, in that time: a peer that trickles is as bad as one that
    // is silent.
    let read = bounded(timeout_ms, read_head(connection, input, head));
    read.await.unwrap_or(Err(READING_HEAD))?;
    let rest = input.split_off(head.head_len);
    let read = bounded(timeout_ms, read_body(connection, rest, head));
    read.await.unwrap_or(Err(READING_BODY))
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
    head: &mut ResponseHead,
) -> Result<(), &'static str> {
    let rules = HeadRules {
        line_bytes_max: HEAD_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        // A check asks whether the server is well, not how well it writes.
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let (mut scanned, mut interim) = (0, 0);
    loop {
        match h1::parse_response(input, scanned, &rules, Method::Get, head) {
            Ok(HeadStep::Complete) if head.is_interim() && interim < INTERIM_MAX => {
                input.drain(..head.head_len);
                (scanned, interim) = (0, interim + 1);
                continue;
            }
            // A coding that nobody asked for: what is compared with would be compressed.
            Ok(HeadStep::Complete) if head.coding.is_some() => return Err(READING_HEAD),
            Ok(HeadStep::Complete) => return Ok(()),
            Ok(HeadStep::Incomplete { scanned: seen }) => scanned = seen,
            Err(_) => return Err(READING_HEAD),
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
    head: &ResponseHead,
) -> Result<(Vec<u8>, Ended), &'static str> {
    let until_close = matches!(head.framing, ResponseFraming::UntilClose);
    let mut decoder = head.framing.decoder().under(Strictness::Nginx);
    let mut body = Vec::new();
    loop {
        loop {
            let event = decoder.feed(&input).map_err(|_| READING_BODY)?;
            body.extend_from_slice(event.data.of(&input));
            input.drain(..event.consumed);
            if event.state == BodyState::Finished || body.len() >= BODY_BYTES_MAX {
                body.truncate(BODY_BYTES_MAX);
                let clean = event.state == BodyState::Finished && input.is_empty();
                let ended = if clean {
                    Ended::Cleanly
                } else {
                    Ended::Otherwise
                };
                return Ok((body, ended));
            }
            if event.consumed == 0 {
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
