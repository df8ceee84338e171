//! The wire formats of HTTP/1, HTTP/2, HTTP/3, FastCGI and others, as bytes in and events out.
//!
//! The crate is sans-IO. It opens no socket, reads no clock, spawns nothing and never waits; once a
//! caller's vectors have grown to their working size, it does not allocate. It treats all input as
//! hostile: every function returns an error or a position, and none panics.
//!
//! Where RFC 9112 leaves a choice, or practice differs from it, the behaviour is nginx's: the same
//! inputs are refused, with the same status codes and the same log messages.

mod allowance;
pub mod certificate;
pub mod client_hello;
pub mod date;
mod der;
pub mod dns;
pub mod encrypted_key;
pub mod fastcgi;
pub mod field_section;
#[doc(hidden)]
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod hex;
pub mod host;
pub mod json;
pub mod memcached;
pub mod message;
pub mod mp4;
pub mod ocsp;
pub mod pem;
pub mod proxy_protocol;
pub mod qpack;
pub mod quic;
mod span;
pub mod ssi;
pub mod target;
pub mod varint;

pub use span::Span;
