//! Tests that count what a request costs: system calls, allocations, memory. They have a program of
//! their own, so that no other test runs while they count.

#![allow(clippy::unwrap_used)]

mod allocations;
mod idle_memory;
mod stream_system_calls;
#[path = "../it/support/mod.rs"]
mod support;
mod system_calls;
