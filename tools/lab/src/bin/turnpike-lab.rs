//! The lab without the server, for work on it and for its tests.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Its driver is this binary itself, as in `turnpike`.
    match arguments.split_first() {
        Some((first, rest)) if first == "load" => turnpike_load::main(rest),
        _ => turnpike_lab::main(&arguments),
    }
}
