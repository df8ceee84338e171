//! The wire: what servers and clients of HTTP/1, HTTP/2 and FastCGI write to each other, as bytes
//! in and events out.
//!
//! Everything here is sans-IO. Nothing in this crate opens a socket, reads a clock, spawns or
//! waits, and once a caller's vectors have grown to their working size nothing allocates. Input is
//! hostile by assumption: every function returns an error or a position, and none panics.
//!
//! Where RFC 9112 leaves room, or where the field has settled on another reading, the behaviour is
//! nginx's: the same inputs are refused, with the same status codes and the same words for the log.

pub mod certificate;
pub mod client_hello;
pub mod date;
mod der;
pub mod dns;
pub mod encrypted_key;
pub mod fastcgi;
#[doc(hidden)]
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod h1;
pub mod h2;
pub mod hex;
pub mod host;
pub mod message;
pub mod proxy_protocol;
mod span;
pub mod ssi;
pub mod target;

pub use span::Span;
