//! The lab by itself, without the server: for work on it and for its tests.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Its driver is the binary that it runs in, as in `turnpike` itself.
    match arguments.split_first() {
        Some((first, rest)) if first == "load" => turnpike_load::main(rest),
        _ => turnpike_lab::main(&arguments),
    }
}
