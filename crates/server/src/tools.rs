//! The tools of another program, `turnpike-tools`, which is started by the same command lines: this
//! one, which often runs as root, links neither the load generator nor the lab nor the tuner.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use turnpike_usage::Usage;

use crate::standard_error::write_standard_error;

const PROGRAM: &str = "turnpike-tools";

/// Becomes the other program, with the word that chooses the tool and its arguments.
pub(crate) fn run(tool: &str, arguments: &[OsString]) -> ExitCode {
    let program = turnpike_host::program_beside(PROGRAM);
    let error = Command::new(program).arg(tool).args(arguments).exec();
    write_standard_error(&format!("turnpike {tool}: {}\n", missing(&error)));
    ExitCode::FAILURE
}

/// What the command lines of the tools take.
///
/// # Errors
/// A sentence: the program is missing, or of another version.
pub(crate) fn usages() -> Result<Vec<Usage>, String> {
    let program = turnpike_host::program_beside(PROGRAM);
    let output = Command::new(program).arg("usage").output();
    let output = output.map_err(|error| missing(&error))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{PROGRAM} does not describe its tools ({error})"))
}

fn missing(error: &io::Error) -> String {
    format!(
        "needs the program {PROGRAM} beside turnpike or in PATH ({error}); packages and \
         \"make build\" put it there"
    )
}
