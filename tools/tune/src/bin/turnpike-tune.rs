//! `turnpike tune` as a program of its own: for machines that another server serves.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // The load generator and the watchdog are the binary that climb runs in, as in `turnpike`.
    match arguments.split_first() {
        Some((first, rest)) if first == "load" => turnpike_load::main(rest),
        Some((first, rest)) if first == "tune" => turnpike_tune::main(rest),
        _ => turnpike_tune::main(&arguments),
    }
}
