//! The tools that share the binary: the first argument chooses one, everything else is nginx's
//! command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::families;

/// One tool.
#[derive(Clone, Copy, Debug)]
pub struct Subcommand {
    /// The first argument that chooses it.
    pub name: &'static str,
    /// What it does, for the help.
    pub summary: &'static str,
    /// Runs it with the arguments after its name.
    pub run: fn(&[OsString]) -> ExitCode,
}

/// All of them. A new tool is one line here.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "directives",
        summary: "print the reference of all directives",
        run: directives,
    },
    Subcommand {
        name: "load",
        summary: "drive a server with load and measure it",
        run: turnpike_load::main,
    },
];

/// The tool of this name.
pub fn find(name: &OsString) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| name == subcommand.name)
}

/// The lines of the help that list them.
pub fn help() -> String {
    let line = |tool: &Subcommand| format!("  {:<14}: {}\n", tool.name, tool.summary);
    SUBCOMMANDS.iter().map(line).collect()
}

fn directives(_arguments: &[OsString]) -> ExitCode {
    let text = turnpike_conf::reference(&families::registry());
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
