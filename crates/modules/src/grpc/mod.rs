//! `grpc_pass`: requests are passed to gRPC servers, over HTTP/2.
//!
//! The family reads its directives. Requests are written and answers read by the origin of HTTP,
//! with the ways of gRPC: nothing is buffered, and trailers are always passed on.

mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use plan::Grpc;
