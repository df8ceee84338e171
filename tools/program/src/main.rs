//! `turnpike-tools`: the load generator, the lab, the summary of logs and the tuner, apart from the
//! server, which often runs as root. `turnpike load`, `lab`, `log`, `tune` and `findings` start it
//! with their own words.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

/// What is said where no tool is named.
const USAGE: &str = "turnpike-tools has the tools of \"turnpike load\", \"turnpike lab\", \
                     \"turnpike log\", \"turnpike tune\" and \"turnpike findings\", which start it";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    match arguments.first().and_then(|word| word.to_str()) {
        Some("load") => turnpike_load::main(rest),
        Some("lab") => turnpike_lab::main(rest),
        Some("log") if asks_for_help(rest) => print(turnpike_log::HELP),
        Some("log") => turnpike_log::main(rest),
        Some("tune") => turnpike_tune::main(rest),
        Some("findings") => print(&turnpike_tune::reference()),
        Some("usage") => usage(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a tool without a reader of options is to show its help.
fn asks_for_help(arguments: &[OsString]) -> bool {
    arguments.iter().any(|one| one == "--help" || one == "-h")
}

/// Prints what the tools' command lines take, for manual pages and completions.
fn usage() -> ExitCode {
    let usages = [
        turnpike_load::usage(),
        turnpike_lab::usage(),
        turnpike_tune::usage(),
    ];
    match serde_json::to_string(&usages) {
        Ok(text) => print(&text),
        Err(error) => {
            eprintln!("turnpike-tools: the usage cannot be written ({error})");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
