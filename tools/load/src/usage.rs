//! What a command line takes, as data, and what is said of one that is refused.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use turnpike_usage::{OptionUsage, Usage};

/// The usage of a command and of those below it, without what is hidden.
pub fn usage_of(command: &Command) -> Usage {
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let about = command.get_about().map(ToString::to_string);
    Usage {
        name: command.get_name().to_owned(),
        summary: about.unwrap_or_default(),
        options: command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .map(option)
            .collect(),
        subcommands: subcommands.map(usage_of).collect(),
    }
}

/// Prints what is wrong with the command line of `program`: an unknown word with the one that was
/// likely meant, anything else in the words of the library that reads options. `--help` too is such
/// an error, and goes to standard output.
pub fn print_refusal(program: &str, error: &clap::Error) {
    match unknown_word(error) {
        Some(text) => {
            eprintln!("{program}: {text}\n{program} --help lists them");
        }
        None => {
            // A reader that went away is no reason to break off.
            let _ = error.print();
        }
    }
}

/// The sentence about a word that is neither an option nor a command.
fn unknown_word(error: &clap::Error) -> Option<String> {
    let (what, word, suggested) = match error.kind() {
        ErrorKind::UnknownArgument => {
            ("option", ContextKind::InvalidArg, ContextKind::SuggestedArg)
        }
        ErrorKind::InvalidSubcommand => (
            "command",
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        _ => return None,
    };
    let first = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.as_str()),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    };
    let word = first(word)?;
    let what = match word.starts_with('-') {
        true => what,
        false if what == "option" => "argument",
        false => what,
    };
    let meant = first(suggested).map(|meant| format!(", did you mean \"{meant}\"?"));
    Some(format!(
        "unknown {what} \"{word}\"{}",
        meant.unwrap_or_default()
    ))
}

fn option(argument: &Arg) -> OptionUsage {
    let takes_value = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let value = if names.is_empty() {
        argument.get_id().to_string().to_uppercase()
    } else {
        names.join(" ")
    };
    let choices = if takes_value {
        argument.get_possible_values()
    } else {
        Vec::new()
    };
    let help = argument.get_help().map(ToString::to_string);
    OptionUsage {
        short: argument.get_short(),
        long: argument.get_long().map(str::to_owned),
        value: takes_value.then_some(value),
        choices: choices
            .iter()
            .map(|choice| choice.get_name().to_owned())
            .collect(),
        help: help.unwrap_or_default(),
    }
}
