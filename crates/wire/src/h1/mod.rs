//! HTTP/1: heads, framing and bodies (RFC 9112), both roles.
//!
//! Heads are parsed into spans of the caller's buffer and written straight onto a `Vec<u8>`; there
//! is no header map. Deciding what a request means is not done here: the parser refuses what may
//! not be understood in two ways, and reports the rest as it was written.

mod body;
mod chunked;
mod error;
mod field;
mod known;
mod method;
mod request;
mod request_line;
mod response;
mod strictness;
mod writer;

pub use body::{BodyDecoder, BodyEvent, BodyState};
pub use chunked::{ChunkError, ChunkedDecoder, EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX};
pub use error::HeadError;
pub use field::{Field, trailer_fields};
pub use known::Known;
pub use method::Method;
pub use request::{
    Connection, Framing, HeadRules, HeadStep, InvalidFields, RequestHead, decimal, parse_request,
};
pub use request_line::{TargetForm, Version};
pub use response::{ResponseError, ResponseFraming, ResponseHead, TransferCoding};
pub use response::{parse_cgi_response, parse_response};
pub use strictness::Strictness;
pub use writer::{
    LAST_CHUNK, count_controls, end, field, holds_control, number_field, reason_phrase,
    request_line, status_line, unfold, write_chunk_head,
};
