//! The subcommands that speak to a running server: words become a request, the answer a table.
//!
//! The socket is found as `-s` finds the pid file: by the configuration that `-c` and `-p` name.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use turnpike_conf::text_of;
use turnpike_load::{OptionUsage, Usage};
use turnpike_plan::control::{Arguments, CommandRow};

use super::{Client, VERBS, family_verbs, show};
use crate::cli::{self, Options};
use crate::configuration::Configuration;
use crate::paths::Paths;
use crate::say::say;
use crate::usage_text::options_of;

/// What stands on the command line.
#[derive(Default, PartialEq, Debug)]
struct Line {
    /// nginx's own options: which configuration.
    options: Options,
    /// `--socket`: instead of asking a configuration.
    socket: Option<PathBuf>,
    /// `--json`: the answer as it came.
    json: bool,
    words: Vec<String>,
}

/// The verbs and subjects that a first word can be, each with a line for the help: the server's
/// own verbs, then the subjects of the families that have some.
pub fn names() -> Vec<(&'static str, String)> {
    let own = VERBS.iter().map(|verb| {
        let sentence = verb.row.summary.split([';', '.', ':']).next();
        (verb.row.name, sentence.unwrap_or_default().to_lowercase())
    });
    let mut names: Vec<(&str, String)> = own.collect();
    for row in family_verbs() {
        let (subject, _) = subject_of(row);
        if names.iter().all(|(name, _)| *name != subject) {
            names.push((subject, verbs_of(subject).join(", ")));
        }
    }
    names
}

/// The usage of each of [`names`], for manual pages and completions.
pub(crate) fn usages() -> Vec<Usage> {
    let usage = |(name, summary): (&str, String)| {
        let own = family_verbs().filter(|row| subject_of(row).0 == name);
        let verbs = own.map(|row| Usage {
            name: subject_of(row).1.to_owned(),
            summary: row.summary.to_owned(),
            options: row.arguments.split_whitespace().map(argument).collect(),
            ..Usage::default()
        });
        Usage {
            name: name.to_owned(),
            summary,
            options: options_of(OPTIONS_HELP),
            subcommands: verbs.collect(),
        }
    };
    names().into_iter().map(usage).collect()
}

/// `[name=VALUE]` as an argument without a dash.
fn argument(word: &str) -> OptionUsage {
    let name = word.trim_matches(['[', ']']).split('=').next();
    OptionUsage {
        value: Some(word.to_owned()),
        choices: name.map(|name| format!("{name}=")).into_iter().collect(),
        ..OptionUsage::default()
    }
}

/// What can follow a subject.
fn verbs_of(subject: &str) -> Vec<&'static str> {
    family_verbs()
        .filter(|row| subject_of(row).0 == subject)
        .map(|row| subject_of(row).1)
        .collect()
}

/// Whether a first word is for a running server.
fn is_known(word: &str) -> bool {
    names().iter().any(|(name, _)| *name == word) || alone(word).is_some()
}

/// The only family's verb of that name: it needs no subject before it.
fn alone(verb: &str) -> Option<&'static CommandRow> {
    let mut rows = family_verbs().filter(|row| subject_of(row).1 == verb);
    rows.next().filter(|_| rows.next().is_none())
}

/// Runs the subcommand that the first word names, before or behind options that say which server
/// is meant. `None`: it names none.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let word = cli::first_word(arguments)?.to_str()?;
    if !is_known(word) {
        return None;
    }
    if arguments.iter().any(|one| one == "--help" || one == "-h") {
        say(&help(word));
        return Some(ExitCode::SUCCESS);
    }
    let outcome = read(arguments).and_then(|line| carry_out(&line));
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("turnpike: {message}\n"));
            ExitCode::FAILURE
        }
    })
}

fn carry_out(line: &Line) -> Result<(), String> {
    let (verb, mut arguments) = request(&line.words)?;
    absolute(&mut arguments, "binary")?;
    let path = match &line.socket {
        Some(path) => path.clone(),
        None => configured_socket(&line.options)?,
    };
    let shown = path.display();
    let trouble = |error: &dyn std::fmt::Display| format!("control socket \"{shown}\": {error}");
    let mut client = Client::connect(&path).map_err(|error| {
        let text = trouble(&turnpike_lane::log::Errno(&error));
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                format!("{text}\nno server with this configuration runs here")
            }
            _ => text,
        }
    })?;
    let answer = match client.ask(&verb, arguments) {
        Ok(answer) => answer,
        Err(super::Trouble::Refused(failure)) => return Err(failure.message),
        Err(error) => return Err(trouble(&error)),
    };
    let text = match (line.json, &answer["text"]) {
        (true, _) => format!("{answer}\n"),
        (false, Value::String(text)) => text.clone(),
        (false, _) => show::table(&answer),
    };
    // Who closes the pipe early has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// A file that the server is to open: it has another current folder than we.
fn absolute(arguments: &mut Arguments, name: &str) -> Result<(), String> {
    if let Some(Value::String(path)) = arguments.get_mut(name) {
        let whole = std::path::absolute(&*path)
            .map_err(|error| format!("\"{path}\": {}", turnpike_lane::log::Errno(&error)))?;
        *path = whole.to_string_lossy().into_owned();
    }
    Ok(())
}

/// Sorts the command line: our two options, nginx's, and words.
fn read(arguments: &[OsString]) -> Result<Line, String> {
    let mut line = Line::default();
    let mut nginx: Vec<OsString> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_bytes() {
            b"--json" => line.json = true,
            b"--socket" => {
                let path = rest.next().ok_or("option \"--socket\" requires a path")?;
                line.socket = Some(PathBuf::from(path));
            }
            [b'-', b'-', name @ ..] if !name.is_empty() => {
                line.words.push(long_option(name, &mut rest)?);
            }
            [b'-', flags @ ..] if !flags.is_empty() => {
                nginx.push(argument.clone());
                if cli::wants_next(flags) {
                    nginx.extend(rest.next().cloned());
                }
            }
            word => line.words.push(text_of(word)),
        }
    }
    line.options = cli::parse(&nginx)?;
    Ok(line)
}

/// `--binary PATH` is `binary=PATH`.
fn long_option<'a>(
    name: &[u8],
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Result<String, String> {
    let name = text_of(name);
    if name.contains('=') {
        return Ok(name);
    }
    let value = rest.next().ok_or_else(|| {
        format!("no option \"--{name}\", or one that lacks its value: try --help")
    })?;
    Ok(format!("{name}={}", text_of(OsStr::as_bytes(value))))
}

/// The request that the words ask for.
fn request(words: &[String]) -> Result<(String, Arguments), String> {
    let first = words.first().map_or("", String::as_str);
    if let Some(verb) = VERBS.iter().find(|verb| verb.row.name == first) {
        return Ok((first.to_owned(), arguments(&verb.row, &words[1..])?));
    }
    let of_subject = |row: &&CommandRow| subject_of(row).0 == first;
    let second = words.get(1).map_or("", String::as_str);
    let found = family_verbs()
        .filter(of_subject)
        .find(|row| subject_of(row).1 == second);
    let is_subject = family_verbs().any(|row| of_subject(&row));
    match found {
        Some(row) => Ok((row.name.to_owned(), arguments(row, &words[2..])?)),
        None if !is_subject && let Some(row) = alone(first) => {
            Ok((row.name.to_owned(), arguments(row, &words[1..])?))
        }
        None => {
            let known: String = family_verbs().filter(of_subject).map(usage).collect();
            Err(format!("\"{first}\" can be followed by:{known}"))
        }
    }
}

/// How a family's verb is written, and what it does.
fn usage(row: &CommandRow) -> String {
    let (subject, verb) = subject_of(row);
    let words = [subject, verb, row.arguments].join(" ");
    format!("\n  {}\n      {}", words.trim_end(), row.summary)
}

/// What `--help` says behind a verb or a subject.
fn help(word: &str) -> String {
    let own = VERBS.iter().map(|verb| &verb.row);
    let all = own.chain(family_verbs());
    let meant = all.filter(|row| {
        let (subject, verb) = subject_of(row);
        subject == word || verb == word
    });
    let usages: String = meant.map(usage).collect();
    format!("Usage: turnpike SUBCOMMAND [ARGUMENT...] [OPTION...]\n{usages}\n\n{OPTIONS_HELP}")
}

/// The options of all subcommands that ask a running server.
const OPTIONS_HELP: &str = "\
Options:
  -c FILE, -p FOLDER : the configuration and prefix of the running server
  --socket FILE      : the control socket of the server, instead of -c and -p
  --json             : print the answer as JSON, for programs
";

/// The part of a family's verb before the dot, and the one behind it.
fn subject_of(row: &CommandRow) -> (&'static str, &'static str) {
    row.name.split_once('.').unwrap_or((row.name, ""))
}

/// `name=value` words, and values alone for the names that the row has, in its order.
fn arguments(row: &CommandRow, words: &[String]) -> Result<Arguments, String> {
    let names: Vec<&str> = row
        .arguments
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']))
        .map(|word| word.split_once('=').map_or(word, |(name, _)| name))
        .collect();
    let mut arguments = Arguments::new();
    for word in words {
        let named = word
            .split_once('=')
            .filter(|(name, _)| names.contains(name));
        let (name, value) = match named {
            Some((name, value)) => (name, value),
            None => {
                let free = names.iter().find(|name| !arguments.contains_key(**name));
                let unknown = || format!("\"{}\" takes no \"{word}\"", row.name);
                (*free.ok_or_else(unknown)?, word.as_str())
            }
        };
        arguments.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    Ok(arguments)
}

/// The socket of the configuration that the options name.
fn configured_socket(options: &Options) -> Result<PathBuf, String> {
    let paths = Paths::of(options);
    let globals = options.globals.as_ref();
    let globals = globals.map(|text| text_of(text.as_encoded_bytes()));
    let configuration = Configuration::read(&paths, globals.as_deref())
        .map_err(|errors| format!("{errors}\nname the socket with --socket"))?;
    match configuration.settings.control.path() {
        Some(path) => Ok(path.to_path_buf()),
        None if paths.embedded => Err(
            "the built-in configuration has no control socket: name the server with -p and \
             -c, or with --socket"
                .to_owned(),
        ),
        None => Err(format!("{} has no control socket", paths.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: CommandRow = CommandRow {
        name: "peer.weight",
        arguments: "upstream=NAME peer=ADDRESS [weight=NUMBER]",
        summary: "-.",
    };

    #[test]
    fn words_become_arguments() {
        let cases: &[(&[&str], Result<&str, &str>)] = &[
            (&[], Ok("{}")),
            (&["a", "b=c"], Ok(r#"{"peer":"b=c","upstream":"a"}"#)),
            (
                &["weight=3", "a", "b"],
                Ok(r#"{"peer":"b","upstream":"a","weight":"3"}"#),
            ),
            (&["a", "b", "3", "4"], Err("\"peer.weight\" takes no \"4\"")),
        ];
        for (words, expected) in cases {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let got = arguments(&ROW, &words).map(|members| Value::Object(members).to_string());
            let got = got.as_deref().map_err(String::as_str);
            assert_eq!(got, *expected, "{words:?}");
        }
    }

    #[test]
    fn verbs_of_families_are_found_with_their_subject_or_alone() {
        let ask = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let asked = request(&words);
            asked.map(|(verb, members)| format!("{verb} {}", Value::Object(members)))
        };
        let whole = ask(&["cache", "purge", "key=/a"]);
        assert_eq!(whole.as_deref(), Ok("cache.purge {\"key\":\"/a\"}"));
        assert_eq!(ask(&["purge", "key=/a"]), whole);
        assert_eq!(ask(&["status"]).as_deref(), Ok("status {}"));
        assert!(help("purge").contains("\n  cache purge [zone=NAME]"));
        assert!(help("reload").contains("\n  reload\n      Reads"));
        let known = ask(&["cache"]).err().unwrap_or_default();
        assert!(
            known.contains("\"cache\" can be followed by:\n  cache purge"),
            "{known}"
        );
    }

    #[test]
    fn options_are_sorted_from_words() {
        let words = [
            "status", "--json", "-p", "/srv", "--socket", "/s", "-cx", "--binary", "/b",
        ];
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let line = read(&arguments).unwrap_or_default();
        assert!(line.json);
        assert_eq!(line.socket, Some(PathBuf::from("/s")));
        assert_eq!(line.words, ["status", "binary=/b"]);
        assert_eq!(line.options.prefix, Some("/srv/".into()));
        assert_eq!(line.options.configuration, Some("x".into()));
    }
}
