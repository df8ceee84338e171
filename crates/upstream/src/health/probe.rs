//! One question to one peer, and its answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use turnpike_wire::h1::{
    self, BodyState, HeadRules, HeadStep, Method, ResponseFraming, ResponseHead,
};

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

/// Asks, and has the answer judged. The error is what was being done.
pub(super) async fn ask(check: &Check, address: &Address) -> Result<(), &'static str> {
    let options = ConnectOptions {
        timeout_ms: check.connect_timeout_ms,
        tls: check.tls.as_ref().map(|tls| Tls {
            connector: &tls.connector,
            name: &tls.name,
            timeout_ms: check.connect_timeout_ms,
        }),
        ..ConnectOptions::default()
    };
    let connection = Connection::open_to(address, &options, 0).await;
    let connection = connection.map_err(|error| error.action())?;
    let timeout_ms = check.read_timeout_ms;
    let sent = connection.write_all(&check.request, timeout_ms).await;
    sent.map_err(|_| "sending request to upstream")?;
    let mut input = Vec::new();
    let mut head = ResponseHead::default();
    read_head(&connection, &mut input, &mut head, timeout_ms).await?;
    let wait = Duration::from_millis(timeout_ms);
    let body = read_body(
        &connection,
        input.split_off(head.head_len),
        &head,
        timeout_ms,
    );
    let body = match timeout_ms {
        0 => body.await,
        // A peer that trickles is as bad as one that is silent.
        _ => tokio::time::timeout(wait, body)
            .await
            .unwrap_or(Err("reading upstream")),
    }?;
    let fields = head.fields.iter();
    let fields = fields.map(|field| (field.name.of(&input), field.value.of(&input)));
    check.judge.judge(&Answer {
        status: head.status,
        fields: fields.collect(),
        body: &body,
    })
}

async fn read_head(
    connection: &Connection,
    input: &mut Vec<u8>,
    head: &mut ResponseHead,
    timeout_ms: u64,
) -> Result<(), &'static str> {
    const READING: &str = "reading response header from upstream";
    let rules = HeadRules {
        line_bytes_max: HEAD_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
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
            Ok(HeadStep::Complete) => return Ok(()),
            Ok(HeadStep::Incomplete { scanned: seen }) => scanned = seen,
            Err(_) => return Err(READING),
        }
        let read = connection.read(input, READ_BYTES, timeout_ms).await;
        if read.map_err(|_| READING)? == 0 {
            return Err(READING);
        }
    }
}

/// Reads the body as far as it is looked at.
async fn read_body(
    connection: &Connection,
    mut input: Vec<u8>,
    head: &ResponseHead,
    timeout_ms: u64,
) -> Result<Vec<u8>, &'static str> {
    const READING: &str = "reading upstream";
    let until_close = matches!(head.framing, ResponseFraming::UntilClose);
    let mut decoder = head.framing.decoder();
    let mut body = Vec::new();
    loop {
        loop {
            let event = decoder.feed(&input).map_err(|_| READING)?;
            body.extend_from_slice(event.data.of(&input));
            input.drain(..event.consumed);
            if event.state == BodyState::Finished || body.len() >= BODY_BYTES_MAX {
                body.truncate(BODY_BYTES_MAX);
                return Ok(body);
            }
            if event.consumed == 0 {
                break;
            }
        }
        match connection.read(&mut input, READ_BYTES, timeout_ms).await {
            Ok(0) if until_close => return Ok(body),
            Err(error) if until_close && error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(body);
            }
            Ok(0) | Err(_) => return Err(READING),
            Ok(_) => {}
        }
    }
}
