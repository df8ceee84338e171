//! HTTP/1: heads, framing and bodies (RFC 9112), for client and server.
//!
//! Heads are parsed into spans of the caller's buffer and written directly to a `Vec<u8>`; there is
//! no header map. The parser refuses ambiguous messages and reports everything else as written; it
//! does not interpret requests.

mod body;
mod chunked;
mod error;
mod field;
mod request;
mod request_line;
mod response;
mod writer;

pub use body::{BodyDecoder, BodyEvent, BodyState};
pub use chunked::{ChunkError, ChunkedDecoder, EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX};
pub use error::HeadError;
pub use field::trailer_fields;
pub use request::{Framing, HeadStep, RequestHead, parse_request};
pub use response::{ResponseError, ResponseHead};
pub use response::{parse_cgi_response, parse_response, read_cgi_response, read_response};
pub use writer::{
    LAST_CHUNK, end, field, request_line, status_line, write_chunk_head, write_field,
};

pub use crate::message::{
    Connection, Field, HeadRules, InvalidFields, Known, Method, Strictness, TargetForm, Version,
    decimal, holds_control, reason_phrase, unfold,
};
