//! `turnpike tune` as a program of its own: for machines that another server serves.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    turnpike_tune::main(&arguments)
}
