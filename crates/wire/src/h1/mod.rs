//! HTTP/1: heads, framing and bodies (RFC 9112), both roles.
//!
//! Heads are parsed into spans of the caller's buffer and written straight onto a `Vec<u8>`; there
//! is no header map. Deciding what a request means is not done here: the parser refuses what may
//! not be understood in two ways, and reports the rest as it was written.

mod body;
mod chunked;
mod error;
mod field;
mod request;
pub(crate) mod request_line;
mod response;
mod writer;

pub use body::{BodyDecoder, BodyEvent, BodyState};
pub use chunked::{ChunkError, ChunkedDecoder, EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX};
pub use error::HeadError;
pub use field::trailer_fields;
pub use request::{Framing, HeadStep, RequestHead, parse_request};
pub use response::{ResponseError, ResponseHead};
pub use response::{
    StatusLine, parse_cgi_response, parse_response, read_cgi_response, read_response,
};
pub use writer::{
    LAST_CHUNK, end, field, number_field, request_line, status_line, write_chunk_head, write_field,
};

pub use crate::message::{
    Connection, Field, HeadRules, InvalidFields, Known, Method, Strictness, TargetForm, Version,
    decimal, holds_control, reason_phrase, unfold,
};
