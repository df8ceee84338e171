//! Tests that measure: what a request costs in system calls, allocations and memory, and climbs on
//! a live server. They have a program of their own, so that no other test runs meanwhile.

#![allow(clippy::unwrap_used)]

mod allocations;
mod idle_memory;
mod stream_system_calls;
#[path = "../it/support/mod.rs"]
mod support;
mod system_calls;
mod tune_live;
