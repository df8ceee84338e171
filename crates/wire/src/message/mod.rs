//! The message: one head for requests and responses of every protocol (RFC 9110 section 6).
//!
//! A head owns its bytes, and its parts are spans of them. HTTP/1 moves its receive buffer into the
//! head; other protocols and local senders append field by field. This module does not know the
//! wire format of a head.

mod delivery;
mod field;
mod head;
mod known;
mod method;
mod priority;
mod request;
mod request_target;
mod request_writer;
mod rules;
mod status;
mod strictness;
mod value;
mod version;

pub use delivery::{BodyEnd, Delivery, TransferCoding};
pub use field::{Entry, Field, Fields};
pub use head::{Connection, Head, TargetForm};
pub use known::Known;
pub use method::Method;
pub use priority::Priority;
pub use request::{BodyLength, RequestHead};
pub(crate) use request_target::{METHOD_BYTES_MAX, RequestTarget, TargetStop};
pub use request_writer::RequestWriter;
pub use rules::{HeadRules, InvalidFields};
pub use status::{StatusLine, reason_phrase};
pub use strictness::Strictness;
pub(crate) use strictness::{is_token_byte, is_white_space, trim};
pub use value::{Digits, decimal, holds_control, unfold};
pub(crate) use value::{byte_marks, control_marks, find_control, is_control};
pub use version::Version;
