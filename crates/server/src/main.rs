//! The binary: everything is in the library, so that tests and tools can reach it.

use std::process::ExitCode;

#[cfg(debug_assertions)]
#[global_allocator]
static ALLOCATOR: turnpike_lane::sys::allocations::Counting =
    turnpike_lane::sys::allocations::Counting;

fn main() -> ExitCode {
    turnpike_server::main()
}
