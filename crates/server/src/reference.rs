//! `turnpike directives`: the reference on the terminal, and as the pages of the documentation.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use turnpike_conf::{Reference, plain};

use crate::check::{has_effect, support};
use crate::families;
use crate::standard_error::write_standard_error;
use crate::subcommands::print;

/// The usage text.
pub(crate) const HELP: &str = "\
Usage: turnpike directives [--support] [NAME...]
       turnpike directives --write FOLDER

Prints the reference of all directives, or of those named: what each does, its parameters, its
default, where it may stand, and examples. With --support it prints which directives of nginx work.
With --write it writes the reference as pages: directives.md, and directives/ with a page for each
family.
";

/// What stands before the list of the pages.
const INTRODUCTION: &str = include_str!("families/introduction.md");

/// The folder of the pages, beside the list of them.
const FOLDER: &str = "directives/";

/// Runs the subcommand with the arguments after its name.
pub(crate) fn directives(arguments: &[OsString]) -> ExitCode {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words[..] {
        [] => print(&plain(&whole())),
        ["--support"] => print(&support::matrix()),
        ["--write", folder] => write(Path::new(folder)),
        ref names => match names.iter().find(|name| name.starts_with('-')) {
            Some(option) => failed(&format!(
                "\"{option}\" cannot stand here (turnpike directives -h)"
            )),
            None => of(names),
        },
    }
}

/// The list of the pages.
fn index(reference: &Reference) -> String {
    let pages = reference.index(FOLDER);
    format!("{INTRODUCTION}\n| page | directives |\n|---|---|\n{pages}")
}

/// Everything as one text.
fn whole() -> String {
    let reference = families::reference();
    let pages = reference.pages().map(|(_, text)| text);
    let pages: Vec<String> = std::iter::once(index(&reference)).chain(pages).collect();
    pages.join("\n")
}

fn of(names: &[&str]) -> ExitCode {
    let reference = families::reference();
    let mut texts = Vec::new();
    for name in names {
        let Some(text) = reference.of(name) else {
            let registry = families::registry();
            let known = registry.rows().map(|(_, row)| row.name);
            let near = turnpike_conf::did_you_mean(name, known).unwrap_or_default();
            return failed(&format!("there is no directive \"{name}\"{near}"));
        };
        texts.push(text);
    }
    print(plain(&texts.join("\n")).trim_start())
}

/// Writes the pages, and says how many directives still wait for a text.
fn write(folder: &Path) -> ExitCode {
    let reference = families::reference();
    if !reference.problems().is_empty() {
        return failed(&reference.problems().join("\n"));
    }
    let pages = reference.pages();
    let pages = pages.map(|(name, text)| (format!("{FOLDER}{name}"), text));
    for (name, text) in pages.chain([("directives.md".to_owned(), index(&reference))]) {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        if let Err(error) = written {
            return failed(&format!("{}: {error}", path.display()));
        }
    }
    let bare = reference.unexplained().filter(|(_, row)| has_effect(row));
    let (bare, all) = (bare.count(), families::registry().rows().count());
    print(&format!("{bare} of {all} directives have only a summary\n"))
}

fn failed(message: &str) -> ExitCode {
    write_standard_error(&format!("turnpike: {message}\n"));
    ExitCode::FAILURE
}
