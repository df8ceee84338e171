//! Compression: `gzip` compresses what is sent, `gzip_static` sends files that were compressed
//! before, `gunzip` expands what the client cannot read.
//!
//! All three ask the same question (may this client have gzip?) and say in `Vary` that they did.
//! They change how a representation is coded, never which one is sent.

mod accept;
mod compress;
mod expand;
mod handler;
mod kept;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Gzip;
