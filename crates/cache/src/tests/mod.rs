//! Tests of the whole crate, by subject.

#![allow(clippy::unwrap_used)]

mod closing;
mod extensions;
mod partial;
mod purges;
mod rfc9111;
mod zones;
