//! The house rules that a compiler does not check: imports between crates, sizes of import cycles,
//! exports of sockets, input and output in sans-IO crates, families that name each other, sizes of
//! functions and files, `unsafe`, and unused files. Each finding is one line, `FILE:LINE: text`.
//!
//! The check reads source text with its own small scanner and must never need a build of the
//! crates.

mod closure;
mod cycles;
mod docs;
mod errors;
mod exports;
mod families;
mod finding;
mod imports;
mod layout;
mod limits;
mod parts;
mod paths;
mod reach;
mod sans_io;
mod scanner;
mod words;

use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::options::Options;
use crate::outcome::Outcome;
use crate::{deny, workspace};
use scanner::Source;

/// Checks every rule over every file; with `--cycles`, prints the import cycles instead.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--crate"], &["--cycles"])?;
    let root = workspace::root();
    let files = workspace::files()?;
    let read = |file: &Path| std::fs::read_to_string(root.join(file)).ok();
    let cycles = cycles::find(&files, &read);
    if options.has("--cycles") {
        return print_cycles(&cycles, options.text("--crate"));
    }
    let mut findings = imports::check(&workspace::metadata(&["--no-deps", "--offline"])?);
    let resolved = workspace::metadata(&["--offline", "--filter-platform", deny::PLATFORM])?;
    findings.extend(closure::check(&resolved));
    let (mut sources, mut clauses, mut borrows, mut texts) = (0, 0, 0, 0);
    for file in &files {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else {
            continue; // not text: a fuzz corpus, a picture
        };
        if words::applies(file) {
            findings.extend(words::check(file, &text));
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            let source = Source::scan(&text);
            findings.extend(limits::check(file, &text, &source));
            findings.extend(paths::check(file, &source));
            findings.extend(docs::subjects(file, &text));
            findings.extend(docs::halves(file, &text));
            clauses += docs::count_clauses(&text);
            if file.starts_with("crates") && !is_test(file) {
                findings.extend(docs::described(file, &text));
                findings.extend(exports::check(file, &source));
                findings.extend(sans_io::check(file, &source));
                borrows += parts::count_borrows(file, &source);
                texts += errors::count(&source);
            }
            sources += 1;
        } else if file.extension().is_some_and(|extension| extension == "md")
            && !file.starts_with("bench")
        {
            findings.extend(limits::page(file, &text));
        }
    }
    findings.extend(reach::check(&root, &files));
    findings.extend(layout::check(&files));
    findings.extend(imports::unused(&files, &read));
    findings.extend(imports::page(
        &read(Path::new(imports::PAGE)).unwrap_or_default(),
    ));
    findings.extend(docs::clauses(clauses));
    findings.extend(parts::borrows(borrows));
    findings.extend(errors::check(texts));
    findings.extend(cycles::check(&cycles));
    findings.extend(parts::check(&files, &read));
    findings.extend(families::check(&files, &read));
    findings.extend(families::untested(&read));
    for sentence in cycles::slack(&cycles) {
        println!("{sentence}");
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {sources} source files, nothing to say");
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

/// Prints cycles; a reader that has seen enough, as `head` has, is no error.
fn print_cycles(cycles: &[cycles::Cycles], only: Option<&str>) -> Outcome {
    let mut out = std::io::stdout().lock();
    match cycles::write(cycles, only, &mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the cycles: {error}"))
        }
        _ => Ok(()),
    }
}

/// Whether a file contains only tests.
fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests")
        || file.file_name().is_some_and(|name| name == "tests.rs")
}
