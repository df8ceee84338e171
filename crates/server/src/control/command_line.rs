//! The subcommands that speak to a running server: words become a request, the answer a table.
//!
//! The socket is found as `-s` finds the pid file: by the configuration that `-c` and `-p` name.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write as _};
use std::iter::Peekable;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::geteuid;
use serde_json::Value;
use turnpike_conf::{Errors, did_you_mean, nearest, text_of};
use turnpike_lane::sys::process::ProcessHandle;
use turnpike_plan::control::{Arguments, CommandRow};
use turnpike_usage::{OptionUsage, Usage};

use super::{Client, VERBS, family_verbs, show, top, warm};
use crate::checked::Checked;
use crate::cli::{self, Options};
use crate::paths::Paths;
use crate::standard_error::write_standard_error;
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
    /// `--wait`: until the server has ended.
    wait: bool,
    /// `--ready`: fail unless the server takes requests.
    ready: bool,
    words: Vec<String>,
}

/// The verbs and subjects that a first word can be, each with a line for the help: the server's
/// own verbs, then the subjects of the families that have some.
pub fn names() -> Vec<(&'static str, String)> {
    let own = VERBS.iter().map(|verb| {
        let sentence = verb.row.summary.split([';', '.', ':']).next();
        (verb.row.name, imperative(sentence.unwrap_or_default()))
    });
    let mut names: Vec<(&str, String)> = own.collect();
    names.push((TOP, "show what the server does, every second".to_owned()));
    for row in family_verbs() {
        let (subject, _) = subject_of(row);
        if names.iter().all(|(name, _)| *name != subject) {
            names.push((subject, verbs_of(subject).join(", ")));
        }
    }
    names
}

/// `Lists the lanes` as `list the lanes`, the form of the other lines of the help.
fn imperative(sentence: &str) -> String {
    let (verb, rest) = sentence.split_once(' ').unwrap_or((sentence, ""));
    let verb = verb.strip_suffix('s').unwrap_or(verb);
    format!("{} {rest}", verb.to_lowercase())
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
            options: options_of(&options_text(name)),
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
        write_standard_error(&help(word));
        return Some(ExitCode::SUCCESS);
    }
    let outcome = read(arguments).and_then(|line| carry_out(&line));
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            write_standard_error(&format!("turnpike: {message}\n"));
            ExitCode::FAILURE
        }
    })
}

fn carry_out(line: &Line) -> Result<(), String> {
    if line.words == [TOP] {
        let mut server = Running::find(line)?;
        return top::run(|verb, arguments| match arguments {
            Value::Object(arguments) => server.ask(verb, arguments),
            _ => server.ask(verb, Arguments::new()),
        });
    }
    let (verb, mut arguments) = request(&line.words)?;
    if line.wait && verb != DRAIN {
        return Err(format!("\"{verb}\" takes no --wait: only \"{DRAIN}\" does"));
    }
    if line.ready && verb != STATUS {
        return Err(format!(
            "\"{verb}\" takes no --ready: only \"{STATUS}\" does"
        ));
    }
    absolute(&mut arguments, "binary")?;
    let mut server = Running::find(line)?;
    if verb == warm::VERB {
        return warm::run(&arguments, line.json, |verb, arguments| {
            server.ask(verb, arguments)
        });
    }
    let master = if line.wait {
        Some(server.master()?)
    } else {
        None
    };
    // What was asked for as JSON is not drawn as a table.
    let is_json = line.json
        || arguments
            .get("format")
            .is_some_and(|format| format == "json");
    let answer = server.ask(&verb, arguments)?;
    let text = match (is_json, &answer["text"]) {
        (true, _) => format!("{answer}\n"),
        (false, Value::String(text)) => text.clone(),
        (false, _) if line.wait => String::new(),
        (false, _) => show::answer(&verb, &answer),
    };
    // Who closes the pipe early has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if line.ready && answer["phase"] != "running" {
        return Err("the server is not ready: it starts, drains or stops".to_owned());
    }
    master.map_or(Ok(()), |master| wait_for_end(&master))
}

/// A server that runs, and how to name its socket in messages.
struct Running {
    client: Client,
    path: PathBuf,
}

impl Running {
    /// The server that the command line means.
    fn find(line: &Line) -> Result<Running, String> {
        let (path, mistakes) = match &line.socket {
            Some(path) => (path.clone(), None),
            None => configured_socket(&line.options)?,
        };
        match Client::connect(&path) {
            Ok(client) => {
                if mistakes.is_some() {
                    write_standard_error(BROKEN_FILE);
                }
                Ok(Running { client, path })
            }
            Err(error) => {
                let text = trouble(&path, &turnpike_lane::log::Errno(&error));
                let mistakes = mistakes.map(|errors| format!("\n{errors}"));
                let mistakes = mistakes.unwrap_or_default();
                Err(match error.kind() {
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                        format!("{text}\n{NOT_HERE}{mistakes}")
                    }
                    _ => text + &mistakes,
                })
            }
        }
    }

    /// The server's master, so that its end can be waited for.
    fn master(&mut self) -> Result<ProcessHandle, String> {
        let number = self.ask("status", Arguments::new())?["pid"].as_i64();
        let number = number.and_then(|number| i32::try_from(number).ok());
        ProcessHandle::open(number.unwrap_or_default())
            .map_err(|error| format!("the server's process cannot be watched ({error})"))
    }

    fn ask(&mut self, verb: &str, arguments: Arguments) -> Result<Value, String> {
        self.client
            .ask(verb, arguments)
            .map_err(|error| match error {
                super::Trouble::Refused(failure) => failure.message,
                error @ super::Trouble::Connection(_) => trouble(&self.path, &error),
            })
    }
}

/// Waits until a process has ended.
fn wait_for_end(process: &ProcessHandle) -> Result<(), String> {
    let mut waited = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut waited, PollTimeout::NONE) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(format!("poll() failed ({error})")),
        }
    }
}

fn trouble(socket: &Path, error: &dyn std::fmt::Display) -> String {
    format!("control socket \"{}\": {error}", socket.display())
}

/// Shows a view of the server, and is no verb of its own.
const TOP: &str = "top";

/// What `top --help` says.
const TOP_HELP: &str = "\
Usage: turnpike top [OPTION...]

  top
      Shows what the server does, every second: lanes, requests, connections, latency, statuses,
      upstream servers, caches and errors.
      Keys: q quits, p pauses, s sorts, Tab shows one server (with \"metrics by=server;\").

";

/// The verb that can fail if the server is not ready.
const STATUS: &str = "status";

/// The verb that can be waited for.
const DRAIN: &str = "drain";

/// Printed when the file on disk is wrong and the server that it names is running.
const BROKEN_FILE: &str = "turnpike: the configuration file has errors (see turnpike -t); \
                           the running server answered:\n";

/// Said when nobody listens at the socket.
const NOT_HERE: &str = "no server with this configuration runs here; if \"pid\" or \"control\" \
                        was changed since the server started, name the old socket with --socket";

/// Said when there is neither a configuration file nor a server that was started without one.
const NO_FILE: &str = "there is no configuration file, and no server with the built-in \
                       configuration runs here: name the server with -p and -c, or with --socket";

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
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        match argument.as_bytes() {
            b"--json" => line.json = true,
            b"--wait" => line.wait = true,
            b"--ready" => line.ready = true,
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

/// `--binary PATH` is `binary=PATH`, and `--all` is `all=on`.
fn long_option<'a>(
    name: &[u8],
    rest: &mut Peekable<impl Iterator<Item = &'a OsString>>,
) -> Result<String, String> {
    let text = text_of(name);
    let (name, attached) = match text.split_once('=') {
        Some((name, _)) => (name, true),
        None => (text.as_str(), false),
    };
    let known = option_names();
    if !known.contains(&name) {
        let near = nearest(name, known.iter().copied());
        let near = near.map(|near| format!(", did you mean \"--{near}\"?"));
        let near = near.unwrap_or_else(|| ": --help lists them".to_owned());
        return Err(format!("unknown option \"--{name}\"{near}"));
    }
    if attached {
        return Ok(text);
    }
    if is_switch(name) {
        let value = rest.next_if(|word| *word == "on" || *word == "off");
        let value = value.map_or("on".into(), |word| word.to_string_lossy());
        return Ok(format!("{name}={value}"));
    }
    let value = rest.next();
    let value = value.ok_or_else(|| format!("option \"--{name}\" needs a value"))?;
    Ok(format!("{name}={}", text_of(OsStr::as_bytes(value))))
}

/// Whether a verb has an argument of this name that needs no value.
fn is_switch(name: &str) -> bool {
    let own = VERBS.iter().map(|verb| &verb.row);
    let mut words = own
        .chain(family_verbs())
        .flat_map(|row| row.arguments.split_whitespace());
    words.any(|word| word.trim_matches(['[', ']']) == format!("{name}=on"))
}

/// The names of all options with two dashes: the own ones, and the arguments of verbs.
fn option_names() -> Vec<&'static str> {
    let own = VERBS.iter().map(|verb| &verb.row);
    let rows = own.chain(family_verbs());
    let mut names: Vec<&str> = rows.flat_map(argument_names).collect();
    names.extend(["json", "ready", "socket", "wait"]);
    names
}

/// The names of a verb's arguments, in their order.
fn argument_names(row: &CommandRow) -> impl Iterator<Item = &'static str> + use<> {
    let words = row.arguments.split_whitespace();
    let words = words.map(|word| word.trim_matches(['[', ']']));
    words.map(|word| word.split_once('=').map_or(word, |(name, _)| name))
}

/// The request that the words ask for.
fn request(words: &[String]) -> Result<(String, Arguments), String> {
    // `--soft` may stand before the verb.
    let (mut words, named): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| !is_named(word));
    words.extend(named);
    let words: Vec<String> = words.into_iter().cloned().collect();
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
        None => Err(unknown_verb(first, second)),
    }
}

/// Whether a word is an argument with its name, and no value with an equals sign in it.
fn is_named(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| option_names().contains(&name))
}

/// What is wrong with the word behind a subject, then all that can stand there.
fn unknown_verb(subject: &str, word: &str) -> String {
    let rows = family_verbs().filter(|row| subject_of(row).0 == subject);
    let rows: Vec<&CommandRow> = rows.collect();
    let verbs = rows.iter().map(|row| subject_of(row).1);
    let wrong = match word {
        _ if rows.is_empty() => return format!("there is no subcommand \"{subject}\""),
        "" => format!("\"{subject}\" needs a verb"),
        word => {
            let near = did_you_mean(word, verbs).unwrap_or_default();
            format!("unknown verb \"{word}\"{near}")
        }
    };
    let known: String = rows.into_iter().map(usage).collect();
    format!("{wrong}\n\"{subject}\" can be followed by:{known}")
}

/// How a family's verb is written, and what it does.
fn usage(row: &CommandRow) -> String {
    let (subject, verb) = subject_of(row);
    let words = [subject, verb, row.arguments].join(" ");
    let summary = wrapped(row.summary);
    format!("\n  {}\n{summary}", words.trim_end())
}

/// A summary as indented lines.
fn wrapped(summary: &str) -> String {
    let mut lines = vec![String::new()];
    for word in summary.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && INDENT.len() + last + 1 + word.chars().count() > HELP_COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { INDENT } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// What `--help` says behind a verb or a subject.
fn help(word: &str) -> String {
    if word == TOP {
        return format!("{TOP_HELP}{}", options_text(TOP));
    }
    // A verb of the server's own hides those of families that end like it.
    let own = VERBS.iter().map(|verb| &verb.row);
    let own = own.filter(|row| row.name == word).map(usage).next();
    let usages = own.unwrap_or_else(|| {
        let meant = family_verbs().filter(|row| {
            let (subject, verb) = subject_of(row);
            subject == word || verb == word
        });
        meant.map(usage).collect()
    });
    let options = options_text(word);
    format!("Usage: turnpike SUBCOMMAND [ARGUMENT...] [OPTION...]\n{usages}\n\n{options}")
}

/// The options of a subcommand.
fn options_text(word: &str) -> String {
    let json = if word == TOP { "" } else { JSON_HELP };
    let own = match word {
        DRAIN => WAIT_HELP,
        STATUS => READY_HELP,
        _ => "",
    };
    format!("{OPTIONS_HELP}{json}{own}")
}

/// The options of all subcommands that ask a running server.
const OPTIONS_HELP: &str = "\
Options:
  -c FILE, -p FOLDER : the configuration and prefix of the running server
  --socket FILE      : the control socket of the server, instead of -c and -p
";

/// The option of all of them but the view.
const JSON_HELP: &str = "  --json             : print the answer as JSON, for programs\n";

/// The option of `status`.
const READY_HELP: &str =
    "  --ready            : fail unless the server takes requests; it does not while it drains\n";

/// The option of `drain`.
const WAIT_HELP: &str = "  --wait             : return when the server has ended\n";

/// Longest line of a help: terminals are rarely narrower.
const HELP_COLUMNS: usize = 98;

/// Begins each line of a summary.
const INDENT: &str = "      ";

/// The part of a family's verb before the dot, and the one behind it.
fn subject_of(row: &CommandRow) -> (&'static str, &'static str) {
    row.name.split_once('.').unwrap_or((row.name, ""))
}

/// `name=value` words, and values alone for the names that the row has, in its order. The last one
/// may be a list, which takes all that is left.
fn arguments(row: &CommandRow, words: &[String]) -> Result<Arguments, String> {
    let names: Vec<&str> = argument_names(row).collect();
    let list = names.last().filter(|_| row.arguments.ends_with(LIST));
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
                (*free.or(list).ok_or_else(unknown)?, word.as_str())
            }
        };
        let text = Value::String(value.to_owned());
        if list.is_none_or(|list| *list != name) {
            arguments.insert(name.to_owned(), text);
            continue;
        }
        let all = arguments
            .entry(name)
            .or_insert_with(|| Value::Array(Vec::new()));
        // `servers=` is a list of none.
        if let Value::Array(all) = all
            && !value.is_empty()
        {
            all.push(text);
        }
    }
    Ok(arguments)
}

/// Ends the arguments of a verb whose last one is a list.
const LIST: &str = "...";

/// Whether the current user owns the file: the built-in configuration's socket can be in a folder
/// that everybody may write to.
fn is_own(path: &Path) -> bool {
    let owner = std::fs::symlink_metadata(path).map(|metadata| metadata.uid());
    owner.is_ok_and(|owner| owner == geteuid().as_raw())
}

/// The socket of the configuration that the options name, and what is wrong with that file: a
/// server that runs has read another state of it, and can be asked all the same.
fn configured_socket(options: &Options) -> Result<(PathBuf, Option<Errors>), String> {
    let paths = Paths::of(options);
    let globals = options.globals.as_ref();
    let globals = globals.map(|text| text_of(text.as_encoded_bytes()));
    let (configuration, read) = Checked::read_in_part(&paths, globals.as_deref());
    match configuration.settings.control.path() {
        Some(path) if paths.embedded && !is_own(path) => Err(NO_FILE.to_owned()),
        Some(path) => Ok((path.to_path_buf(), read.err())),
        None => Err(format!("{} has no control socket", paths.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_argument_may_be_a_list() {
        let words = [
            "upstream",
            "set",
            "u",
            "10.0.0.1:80 weight=2",
            "10.0.0.2:80",
        ];
        let cases: &[(&[&str], &str)] = &[
            (
                &words,
                r#"{"servers":["10.0.0.1:80 weight=2","10.0.0.2:80"],"upstream":"u"}"#,
            ),
            (
                &["upstream", "set", "servers=", "u"],
                r#"{"servers":[],"upstream":"u"}"#,
            ),
            (&["upstream", "set", "u"], r#"{"upstream":"u"}"#),
        ];
        for (words, expected) in cases {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let asked = request(&words).map(|(_, arguments)| Value::Object(arguments).to_string());
            assert_eq!(asked.as_deref(), Ok(*expected), "{words:?}");
        }
    }

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
        let drain = help("drain");
        assert!(
            drain.contains("--wait") && !drain.contains("upstream drain"),
            "{drain}"
        );
        assert!(
            help("upstream").contains("\n  upstream drain ")
                && !help("upstream").contains("--wait")
        );
        assert!(help(TOP).contains("--socket") && !help(TOP).contains("--json"));
        let names = names();
        let helps = names.iter().map(|(name, _)| help(name));
        for line in helps.flat_map(|help| help.lines().map(str::to_owned).collect::<Vec<_>>()) {
            assert!(line.chars().count() <= HELP_COLUMNS, "{line}");
        }
        let known = ask(&["cache"]).err().unwrap_or_default();
        assert!(
            known.contains("\"cache\" can be followed by:\n  cache purge"),
            "{known}"
        );
    }

    #[test]
    fn what_is_misspelt_is_named_with_what_was_meant() {
        let line = |words: &[&str]| {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            read(&arguments)
        };
        let cases = [
            (
                &["status", "--jsno"][..],
                "unknown option \"--jsno\", did you mean \"--json\"?",
            ),
            (
                &["status", "--nothing-like-it"],
                "unknown option \"--nothing-like-it\": --help lists them",
            ),
            (
                &["upgrade", "--binary"],
                "option \"--binary\" needs a value",
            ),
        ];
        for (words, expected) in cases {
            assert_eq!(line(words), Err(expected.to_owned()), "{words:?}");
        }
        let words = ["upstream", "lsit"].map(str::to_owned);
        let error = request(&words).err().unwrap_or_default();
        let begin = "unknown verb \"lsit\", did you mean \"list\"?\n\"upstream\" can be";
        assert!(error.starts_with(begin), "{error}");
    }

    #[test]
    fn the_help_has_one_form_of_verbs() {
        let all = names();
        let summary = |word: &str| {
            let found = all.iter().find(|(name, _)| *name == word);
            found.map_or("", |(_, summary)| summary.as_str())
        };
        let metrics = "show all metrics, in Prometheus's text format, as OpenMetrics, or as JSON";
        assert_eq!(summary("metrics"), metrics);
        assert_eq!(summary("reopen"), "open the log files again");
        assert!(
            all.iter()
                .all(|(_, summary)| !summary.starts_with("shows "))
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

    #[test]
    fn a_switch_takes_no_option_for_its_value() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            (
                "cache purge --all -p /a",
                &["cache", "purge", "all=on"],
                Some("/a/"),
            ),
            (
                "cache purge -p /a --soft off --all",
                &["cache", "purge", "soft=off", "all=on"],
                Some("/a/"),
            ),
            (
                "-p /a cache --soft purge --tag t",
                &["cache", "soft=on", "purge", "tag=t"],
                Some("/a/"),
            ),
        ];
        for (text, words, prefix) in cases {
            let arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let line = read(&arguments).unwrap_or_default();
            assert_eq!(line.words, *words, "{text}");
            assert_eq!(line.options.prefix, prefix.map(OsString::from), "{text}");
        }
        assert!(request(&["cache".into(), "soft=on".into(), "purge".into()]).is_ok());
    }
}
