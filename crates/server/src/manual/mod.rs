//! `turnpike manual PAGE` and `turnpike completions SHELL`: manual pages and shell completions,
//! written from the rows, the verbs and the tools' own command lines, so that no list of options
//! exists twice. Packages run them once, when they are built.

mod completions;
mod roff;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use turnpike_load::{OptionUsage, Usage};

use crate::control::command_line;
use crate::standard_error::write_standard_error;
use crate::subcommands::{self, SUBCOMMANDS};
use crate::usage_text::options_of;
use crate::{check, cli};

/// Words and what they print.
type Table = &'static [(&'static str, fn() -> String)];

const PAGES: Table = &[
    ("turnpike.8", roff::server),
    ("turnpike.conf.5", roff::directives),
    ("turnpike-load.1", || roff::tool(&turnpike_load::usage())),
    ("turnpike-lab.1", || roff::tool(&turnpike_lab::usage())),
    ("turnpike-tune.1", || roff::tool(&turnpike_tune::usage())),
    ("turnpike-view.1", roff::view),
];

const SHELLS: Table = &[
    ("bash", || completions::bash(&whole())),
    ("zsh", || completions::zsh(&whole())),
    ("fish", || completions::fish(&whole())),
];

/// `turnpike manual PAGE`.
pub(crate) fn pages(arguments: &[OsString]) -> ExitCode {
    print("manual", PAGES, arguments)
}

/// `turnpike completions SHELL`.
pub(crate) fn shells(arguments: &[OsString]) -> ExitCode {
    print("completions", SHELLS, arguments)
}

fn print(name: &str, table: Table, arguments: &[OsString]) -> ExitCode {
    let asked = arguments.first().and_then(|word| word.to_str());
    let Some((_, text)) = table.iter().find(|(word, _)| Some(*word) == asked) else {
        let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
        write_standard_error(&format!("Usage: turnpike {name} {}\n", words.join("|")));
        return ExitCode::FAILURE;
    };
    match std::io::stdout().write_all(text().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// nginx's options.
fn server_options() -> Vec<OptionUsage> {
    let parts = cli::HELP.split_once("Options:\n");
    let (options, _) = parts
        .and_then(|(_, rest)| rest.split_once("\n\n"))
        .unwrap_or_default();
    options_of(options)
}

/// The whole command line: nginx's options, the tools, and the verbs for a running server.
fn whole() -> Usage {
    let mut subcommands: Vec<Usage> = SUBCOMMANDS.iter().map(tool_of).collect();
    subcommands.extend(command_line::usages());
    Usage {
        name: "turnpike".to_owned(),
        summary: "HTTP server, accelerator and load generator".to_owned(),
        options: server_options(),
        subcommands,
    }
}

fn tool_of(tool: &crate::subcommands::Subcommand) -> Usage {
    let mut usage = match tool.name {
        "load" => turnpike_load::usage(),
        "lab" => turnpike_lab::usage(),
        "tune" => turnpike_tune::usage(),
        "serve" | "proxy" | "php" | "password" => Usage {
            options: subcommands::help_text(tool.name).map_or_else(Vec::new, options_of),
            ..Usage::default()
        },
        "check" => Usage {
            options: options_of(check::HELP),
            ..Usage::default()
        },
        "manual" => words_of(PAGES),
        "completions" => words_of(SHELLS),
        _ => Usage::default(),
    };
    usage.name = tool.name.to_owned();
    usage.summary = tool.summary.to_owned();
    usage
}

fn words_of(table: Table) -> Usage {
    let words = table.iter().map(|(word, _)| (*word).to_owned());
    Usage {
        options: vec![OptionUsage {
            value: Some("NAME".to_owned()),
            choices: words.collect(),
            ..OptionUsage::default()
        }],
        ..Usage::default()
    }
}
