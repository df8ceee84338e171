//! `turnpike load` as a program of its own, for development.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    turnpike_load::main(&arguments)
}
