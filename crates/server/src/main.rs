//! The binary: everything is in the library, so that tests and tools can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    turnpike_server::main()
}
