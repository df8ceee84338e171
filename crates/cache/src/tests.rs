//! Tests of the whole crate, by what they judge.

#![allow(clippy::unwrap_used)]

mod extensions;
mod partial;
mod rfc9111;
mod zones;
