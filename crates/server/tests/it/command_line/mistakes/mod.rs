//! Tests of what is said of mistakes that people make: nginx's sentence, then what was meant.
//!
//! Mistakes in files are read in this process, a millisecond each. Those on the command line run
//! the program. The tables are texts, so that each mistake stands there as it is typed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use turnpike_conf::Errors;
use turnpike_plan::product::Product;
use turnpike_server::checked::Checked;
use turnpike_server::paths::{Paths, Places};
use turnpike_testkit::{Folder, needs_root};

use crate::support::tls::keys;
use crate::support::{TURNPIKE, stderr, turnpike};

const IN_FILES: &str = include_str!("files.txt");
const WARNED: &str = include_str!("warned.txt");
const ON_THE_COMMAND_LINE: &str = include_str!("arguments.txt");

/// An entry of a table: what was typed, and the lines about it.
struct Entry {
    typed: String,
    said: Vec<&'static str>,
}

/// The entries of a table, which empty lines separate; `#` begins a remark.
fn entries(table: &'static str) -> Vec<Entry> {
    let paragraphs = table.split("\n\n").map(|text| text.trim_matches('\n'));
    let paragraphs = paragraphs.filter(|text| !text.is_empty() && !text.starts_with('#'));
    let entry = |text: &'static str| {
        let is_said = |line: &&str| line.starts_with(['>', '+']);
        let (said, typed): (Vec<&str>, Vec<&str>) = text.lines().partition(is_said);
        Entry {
            typed: typed.join("\n"),
            said,
        }
    };
    paragraphs.map(entry).collect()
}

/// Reads a configuration from a folder; files of nginx's language get an `events { }`.
fn read(folder: &Folder, text: &str) -> Result<Checked, Errors> {
    let begins = [
        "http ",
        "stream ",
        "server ",
        "upstream ",
        "listen ",
        "user ",
        "error_log ",
    ];
    let is_nginx = begins.iter().any(|begin| text.starts_with(begin));
    let events = if is_nginx { "events { } " } else { "" };
    let text = format!("{events}{text}\n").replace('@', folder.name());
    folder.write("nginx.conf", text).unwrap();
    let paths = Paths {
        prefix: PathBuf::from(folder.name()),
        configuration: folder.path().join("nginx.conf"),
        embedded: false,
        given: None,
        error_log: None,
        product: Product::Turnpike,
        cpu_count: 2,
        places: Places::Prefix,
        user: None,
    };
    Checked::read(&paths, None)
}

#[test]
fn mistakes_in_files_are_told_in_nginxs_words_and_then_in_ours() {
    let folder = keys();
    folder.write("empty", "").unwrap();
    for Entry { typed, said } in entries(IN_FILES) {
        let errors = read(&folder, &typed).expect_err(&typed);
        let first = &errors.0[0];
        let line = first.place.as_ref().map_or(0, |(_, line)| *line);
        let mut told = vec![format!(">{line} {}", first.message)];
        if !first.hint.is_empty() {
            told.push(format!("+{}", first.hint));
        }
        let told: Vec<String> = told
            .iter()
            .map(|line| line.replace(folder.name(), "@"))
            .collect();
        assert_eq!(told, said, "{typed}");
    }
}

#[test]
fn what_loads_and_will_hardly_do_what_was_meant_is_a_warning() {
    let folder = Folder::create().unwrap();
    for Entry { typed, said } in entries(WARNED) {
        let warnings = read(&folder, &typed).expect(&typed).needs.warnings;
        let place = format!(" in {}/nginx.conf:1", folder.name());
        let told = warnings
            .iter()
            .map(|text| format!(">1 {}", text.replace(&place, "")));
        let told: Vec<String> = told.map(|line| line.replace(folder.name(), "@")).collect();
        assert_eq!(told, said, "{typed}");
    }
}

#[test]
fn unknown_users_and_groups_are_told_in_words() {
    if needs_root("unknown_users_and_groups_are_told_in_words", "CAP_SETUID") {
        return;
    }
    let folder = Folder::create().unwrap();
    let cases = [
        (
            "user wwwdata;",
            "getpwnam(\"wwwdata\") failed",
            "; there is no user \"wwwdata\", did you mean \"www-data\"?",
        ),
        (
            "user root rooot;",
            "getgrnam(\"rooot\") failed",
            "; there is no group \"rooot\", did you mean \"root\"?",
        ),
    ];
    for (text, sentence, hint) in cases {
        let errors = read(&folder, text).expect_err(text);
        let first = &errors.0[0];
        assert_eq!(
            (first.message.as_str(), first.hint.as_str()),
            (sentence, hint)
        );
    }
}

#[test]
fn called_nginx_the_program_prints_nginxs_line_and_the_hint_after_it() {
    let folder = Folder::create().unwrap();
    let link = format!("{}/nginx", folder.name());
    std::os::unix::fs::symlink(TURNPIKE, &link).unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let (sentence, hint) = ("unknown directive \"gzpi\"", "did you mean \"gzip\"?");
    for (program, main, name) in [
        (TURNPIKE, "", "turnpike"),
        (TURNPIKE, "compatibility nginx;", "nginx"),
        (&link, "", "nginx"),
        (&link, "compatibility turnpike;", "turnpike"),
    ] {
        let text = format!("{main} events {{ }} http {{ gzpi on; }}");
        folder.write("nginx.conf", text).unwrap();
        let mut command = Command::new(program);
        let output = command.args(folder.arguments(&["-t"])).output().unwrap();
        let lines = match name {
            "nginx" => format!("nginx: [emerg] {sentence} in {path}:1\nnginx: [emerg] {hint}\n"),
            _ => format!("turnpike: [emerg] {sentence}, {hint} in {path}:1\n"),
        };
        let last = format!("{name}: configuration file {path} test failed\n");
        assert_eq!(stderr(&output), lines + &last, "{program} {main}");
    }
}

#[test]
fn mistakes_on_the_command_line_say_what_is_wrong_first() {
    let folder = Folder::create().unwrap();
    let good = "pid run.pid; error_log e.log; events { }";
    folder.write("ok.conf", good).unwrap();
    let check = |entry: &Entry| {
        let typed = entry.typed.strip_prefix("turnpike ").unwrap();
        let words = typed.split(' ').map(|word| word.replace('~', " "));
        let mut command = Command::new(TURNPIKE);
        let command = command.args(words).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let told = text.lines().take(entry.said.len());
        let told: Vec<String> = told.map(|line| format!("> {line}")).collect();
        assert_eq!(told, entry.said, "{typed}");
        assert_ne!(output.status.code(), Some(0), "{typed}: {text}");
    };
    // A process each: two at a time on the smallest machine.
    let all = entries(ON_THE_COMMAND_LINE);
    let (first, second) = all.split_at(all.len() / 2);
    thread::scope(|scope| {
        scope.spawn(|| first.iter().for_each(check));
        second.iter().for_each(check);
    });
}

#[test]
fn the_version_is_told_also_when_it_is_asked_for_in_gnus_way() {
    let output = turnpike(&["--version"]);
    assert_eq!(output.stdout, b"turnpike version: turnpike/0.1.0\n");
}
