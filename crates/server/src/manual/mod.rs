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

use turnpike_usage::{OptionUsage, Usage};

use crate::control::command_line;
use crate::standard_error::write_standard_error;
use crate::subcommands::{self, SUBCOMMANDS, Subcommand};
use crate::usage_text::options_of;
use crate::{check, cli, tools};

/// Words and what they print, or why it cannot be had.
type Table = &'static [(&'static str, fn() -> Result<String, String>)];

const PAGES: Table = &[
    ("turnpike.8", || Ok(roff::server())),
    ("turnpike.conf.5", || Ok(roff::directives())),
    ("turnpike-load.1", || tool("load")),
    ("turnpike-lab.1", || tool("lab")),
    ("turnpike-tune.1", || tool("tune")),
    ("turnpike-view.1", || Ok(roff::view())),
];

const SHELLS: Table = &[
    ("bash", || Ok(completions::bash(&whole(&tools::usages()?)))),
    ("zsh", || Ok(completions::zsh(&whole(&tools::usages()?)))),
    ("fish", || Ok(completions::fish(&whole(&tools::usages()?)))),
];

/// The page of a tool of the other program.
fn tool(name: &str) -> Result<String, String> {
    let usages = tools::usages()?;
    let usage = usages.iter().find(|usage| is_of(usage, name));
    let usage = usage.ok_or_else(|| format!("there is no tool \"{name}\""))?;
    Ok(roff::tool(usage))
}

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
    let text = match text() {
        Ok(text) => text,
        Err(error) => {
            write_standard_error(&format!("turnpike {name}: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
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
/// `others`: the tools of the other program.
fn whole(others: &[Usage]) -> Usage {
    let of_tool = |tool| usage_of(tool, others);
    let mut subcommands: Vec<Usage> = SUBCOMMANDS.iter().map(of_tool).collect();
    subcommands.extend(command_line::usages());
    Usage {
        name: "turnpike".to_owned(),
        summary: "HTTP server, accelerator and load generator".to_owned(),
        options: server_options(),
        subcommands,
    }
}

fn usage_of(tool: &Subcommand, others: &[Usage]) -> Usage {
    let mut usage = match tool.name {
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
        name => {
            let other = others.iter().find(|usage| is_of(usage, name));
            other.cloned().unwrap_or_default()
        }
    };
    usage.name = tool.name.to_owned();
    usage.summary = tool.summary.to_owned();
    usage
}

/// Whether a usage is that of `turnpike NAME`.
fn is_of(usage: &Usage, name: &str) -> bool {
    usage.name.strip_prefix("turnpike ") == Some(name)
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
