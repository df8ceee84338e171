//! The tools that share the binary: the first argument chooses one, everything else is nginx's
//! command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::control::command_line;
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
    let line = |name: &str, summary: &str| format!("  {name:<14}: {summary}\n");
    let tools = SUBCOMMANDS.iter();
    let mut text: String = tools.map(|tool| line(tool.name, tool.summary)).collect();
    text.push_str(
        "\nSubcommands that ask the running server of -c and -p (see docs/control.md):\n",
    );
    for (name, summary) in command_line::names() {
        let sentence = summary.split([';', '.', ':']).next().unwrap_or_default();
        text.push_str(&line(name, &sentence.to_lowercase()));
    }
    text
}

fn directives(_arguments: &[OsString]) -> ExitCode {
    let text = turnpike_conf::reference(&families::registry());
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
