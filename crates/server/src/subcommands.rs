//! What the first argument can choose instead of nginx's command line: tools of this program, and
//! of the one beside it.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use turnpike_http::counters::{COUNTERS, OWN_ROWS};
use turnpike_plan::metrics::{Kind, reference_name};

use crate::check;
use crate::control::command_line;
use crate::manual;
use crate::reference;
use crate::simple;
use crate::tools;
use crate::variable_names;

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
        name: "serve",
        summary: "serve a folder, without a configuration file",
        run: simple::serve,
    },
    Subcommand {
        name: "proxy",
        summary: "serve an application behind this server, without a configuration file",
        run: simple::proxy,
    },
    Subcommand {
        name: "php",
        summary: "serve a PHP application by php-fpm, without a configuration file",
        run: simple::php,
    },
    Subcommand {
        name: "password",
        summary: "make a line for a file of auth_basic_user_file",
        run: simple::password,
    },
    Subcommand {
        name: "check",
        summary: "list which directives of an nginx.conf work",
        run: check::run,
    },
    Subcommand {
        name: "directives",
        summary: "print the reference of all directives, or of those named",
        run: reference::directives,
    },
    Subcommand {
        name: "lab",
        summary: "run published studies and compare servers",
        run: |arguments| tools::run("lab", arguments),
    },
    Subcommand {
        name: "metric-names",
        summary: "print the reference of all metrics",
        run: metric_names,
    },
    Subcommand {
        name: "variable-names",
        summary: "print the reference of all variables",
        run: variable_names::run,
    },
    Subcommand {
        name: "manual",
        summary: "print a manual page",
        run: manual::pages,
    },
    Subcommand {
        name: "completions",
        summary: "print completions for bash, zsh or fish",
        run: manual::shells,
    },
    Subcommand {
        name: "load",
        summary: "send load to a server and measure it",
        run: |arguments| tools::run("load", arguments),
    },
    Subcommand {
        name: "log",
        summary: "summarise an access log",
        run: |arguments| tools::run("log", arguments),
    },
    Subcommand {
        name: "tune",
        summary: "find and change what limits this machine's connections",
        run: |arguments| tools::run("tune", arguments),
    },
    Subcommand {
        name: "findings",
        summary: "print the reference of tune check's findings",
        run: |arguments| tools::run("findings", arguments),
    },
];

/// What `--help` says of the tools that only print, and have no reader of options.
const HELPS: &[(&str, &str)] = &[
    ("serve", simple::SERVE_HELP),
    ("proxy", simple::PROXY_HELP),
    ("php", simple::PHP_HELP),
    ("password", simple::PASSWORD_HELP),
    ("directives", reference::HELP),
    (
        "metric-names",
        "Usage: turnpike metric-names\n\nPrints the reference of all metrics, in Markdown.\n",
    ),
    (
        "variable-names",
        "Usage: turnpike variable-names\n\nPrints the reference of all variables, in Markdown.\n",
    ),
    (
        "findings",
        "Usage: turnpike findings\n\n\
         Prints the reference of turnpike tune check's findings, in Markdown.\n",
    ),
];

/// The usage text of a tool whose arguments ask for it, where the tool has no reader of options.
pub fn help_of(name: &str, arguments: &[OsString]) -> Option<&'static str> {
    let is_asked = arguments.iter().any(|one| one == "--help" || one == "-h");
    help_text(name).filter(|_| is_asked)
}

/// The usage text of a tool that has no reader of options.
pub(crate) fn help_text(name: &str) -> Option<&'static str> {
    let (_, text) = HELPS.iter().find(|(tool, _)| *tool == name)?;
    Some(text)
}

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| subcommand.name == name)
}

/// The lines of the help that list them.
pub fn help() -> String {
    let line = |name: &str, summary: &str| format!("  {name:<14}: {summary}\n");
    let tools = SUBCOMMANDS.iter();
    let mut text: String = tools.map(|tool| line(tool.name, tool.summary)).collect();
    text.push_str(
        "\nSubcommands for the running server that -c and -p name (see docs/control.md):\n",
    );
    for (name, summary) in command_line::names() {
        text.push_str(&line(name, &summary));
    }
    text
}

/// Words of other programs, and what is meant by them here.
const OTHERS: &[(&str, &str)] = &[
    (
        "start",
        "turnpike -c FILE starts a server, turnpike serve DIR needs no file",
    ),
    (
        "run",
        "turnpike -c FILE starts a server, turnpike serve DIR needs no file",
    ),
    (
        "restart",
        "turnpike reload activates a changed file, turnpike upgrade another binary",
    ),
    ("test", "turnpike -t -c FILE tests a configuration"),
    ("validate", "turnpike -t -c FILE tests a configuration"),
];

/// What to say of a first word that is no subcommand, or stands at the wrong place.
pub fn hint(word: &str) -> String {
    if find(word).is_some() {
        return format!("turnpike: \"{word}\" takes no server options before it\n");
    }
    if let Some((_, meant)) = OTHERS.iter().find(|(other, _)| *other == word) {
        return format!("turnpike: {meant}\n");
    }
    let own = command_line::names();
    let names = SUBCOMMANDS.iter().map(|tool| tool.name);
    let names = names.chain(own.iter().map(|(name, _)| *name));
    let begun = names
        .clone()
        .find(|name| !word.is_empty() && name.starts_with(word));
    let meant = match begun.or_else(|| turnpike_conf::nearest(word, names)) {
        Some(meant) => format!("did you mean \"{meant}\"? "),
        None => String::new(),
    };
    format!("turnpike: {meant}turnpike -h lists the subcommands\n")
}

pub(crate) fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn metric_names(_arguments: &[OsString]) -> ExitCode {
    let own = COUNTERS.iter().map(|entry| &entry.row).chain(OWN_ROWS);
    let families = turnpike_modules::FAMILIES.iter();
    let rows = own.chain(families.flat_map(|family| family.metrics));
    let mut text = METRICS_HEAD.to_owned();
    for row in rows {
        let kind = match row.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Ranking => "ranking",
        };
        let (name, labels) = (reference_name(row), row.labels.join(", "));
        let line = format!(
            "| `{name}` | {kind} | {} | {labels} | {} |\n",
            row.unit, row.help
        );
        text.push_str(&line);
    }
    print(&text)
}

/// What stands before the table of metrics.
const METRICS_HEAD: &str = "\
# Metrics

Written by `cargo xtask docs`; do not edit.

A location with `metrics;` answers with all metrics in Prometheus's text format, and with
OpenMetrics where the client's `Accept` names `application/openmetrics-text`. `turnpike metrics`
prints them, with `format=json` as JSON. Every lane has its own counters, and reading them stops no
lane. A new serving process starts at 0. Metrics of a directive family exist while the configuration
uses the family.

`metrics by=total;` sums the lanes up. `metrics by=server;` does too, and has every server's
requests (`turnpike_server_*`); they are counted only if a location has it. See
[monitoring.md](monitoring.md) for queries, a dashboard and alerts.

| name | kind | unit | labels | meaning |
|---|---|---|---|---|
";
