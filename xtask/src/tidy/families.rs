//! The rule that the name of a directive family stands only in its folder and in the one list. So a
//! family is added or taken out by its folder and a line, and no family comes to depend on another.
//!
//! The list is read, not repeated here: a name that leads to an entry of it is a family's. Other
//! crates cannot name one, since the list's file makes nothing else public.
//!
//! Where a family says what it has is always the same file, and where its integration tests are is
//! said in one.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::scanner::Source;

/// The crate of the families.
const CRATE: &str = "crates/modules/src";

/// The file with the lists.
const LIST_FILE: &str = "crates/modules/src/lib.rs";

/// The file that names the modules of integration tests, and the families in each.
const TESTS_FILE: &str = "crates/server/tests/it/main.rs";

/// The folder of code that more than one family needs, and the engine of those that ask servers.
const COMMON: &str = "common";
const ENGINE: &str = "pass";

/// The lists.
const LISTS: [&str; 2] = ["FAMILIES", "STREAM_FAMILIES"];

/// The files of a family's folder that say what it has: the second one for `stream`, where the
/// family is for both.
const FAMILY_FILES: [&str; 2] = ["mod.rs", "stream.rs"];

/// Families that offer others what only their directives say: family, and who may name it.
const OFFERS: [(&str, &[&str]); 2] = [
    // Whoever passes requests or sessions on chooses among the groups of servers, and whoever asks
    // servers on the web asks the resolver for their addresses.
    (
        "upstream",
        &[
            "acme",
            "own_request",
            "pass",
            "proxy",
            "ssl",
            "stream_pass",
            "stream_proxy",
        ],
    ),
    // Certificates for upstream servers are written as those for clients are.
    ("ssl", &["pass"]),
];

/// Checks all files; `read` returns the text of one below the root.
pub(super) fn check(files: &[PathBuf], read: &dyn Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let families = names(read);
    if families.is_empty() {
        let text = "no list of families: xtask/src/tidy/families.rs names its file";
        return vec![Finding::new(Path::new(LIST_FILE), 1, text)];
    }
    let list = Source::scan(&read(Path::new(LIST_FILE)).unwrap_or_default());
    let mut findings = exports(&list);
    findings.extend(strays(&list, &families));
    for file in files {
        let Some(owner) = owner(file) else {
            continue;
        };
        let source = Source::scan(&read(file).unwrap_or_default());
        findings.extend(check_file(file, &owner, &source, &families));
        findings.extend(misplaced(file, &source));
    }
    findings
}

/// The families that the file of the integration tests does not name; `read` returns the text of a
/// file below the root.
pub(super) fn untested(read: &dyn Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let tests = read(Path::new(TESTS_FILE)).unwrap_or_default();
    let words: Vec<&str> = tests
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .collect();
    let finding = |family: &String| {
        let text = format!(
            "the family {family} is not named: add `mod {family};`, or write `also {family}` \
             above the module that tests it"
        );
        Finding::new(Path::new(TESTS_FILE), 1, text)
    };
    let is_missing = |family: &&String| !words.contains(&family.as_str());
    names(read).iter().filter(is_missing).map(finding).collect()
}

/// The names of the families; `read` returns the text of a file below the root.
pub(super) fn names(read: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let list = read(Path::new(LIST_FILE)).unwrap_or_default();
    families(&Source::scan(&list))
}

/// What the list's file makes public besides the lists: by it another crate could name a family.
fn exports(list: &Source) -> Vec<Finding> {
    let is_public = |at: &usize| {
        let is_word = |word: &str| list.word(at + 1) == Some(word);
        list.word(*at) == Some("pub") && !list.is_mark(at + 1, '(') && !is_word("const")
    };
    let places = (0..list.tokens.len()).filter(is_public);
    let finding = |at: usize| {
        let text = "only the lists of families are public: nothing outside names a family";
        Finding::new(Path::new(LIST_FILE), list.tokens[at].line, text)
    };
    places.map(finding).collect()
}

/// The modules that the lists name, each at the start of an entry's path.
fn families(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for start in 0..source.tokens.len() {
        let is_list = source.word(start) == Some("const")
            && source
                .word(start + 1)
                .is_some_and(|name| LISTS.contains(&name));
        if !is_list {
            continue;
        }
        let mut at = start;
        while at < source.tokens.len() && !source.is_mark(at, '=') {
            at += 1;
        }
        while at < source.tokens.len() && !source.is_mark(at, ';') {
            let begins = source.is_mark(at, '[') || source.is_mark(at, ',');
            if begins && is_path(source, at + 1) {
                found.extend(source.word(at + 1).map(str::to_owned));
            }
            at += 1;
        }
    }
    found
}

/// The modules of the list's file that are neither families nor what they have in common.
fn strays(list: &Source, families: &[String]) -> Vec<Finding> {
    let declared = |at: usize| (list.word(at) == Some("mod")).then(|| list.word(at + 1))?;
    let is_stray = |at: &usize| {
        let is_known = |name| [COMMON, ENGINE, "tests"].contains(&name) || is_in(families, name);
        declared(*at).is_some_and(|name| !is_known(name))
    };
    let finding = |at: usize| {
        let name = declared(at).unwrap_or_default();
        let text = format!("{name} is no family: what several need is in {CRATE}/{COMMON}");
        Finding::new(Path::new(LIST_FILE), list.tokens[at].line, text)
    };
    let places = (0..list.tokens.len()).filter(is_stray);
    places.map(finding).collect()
}

/// The family that a file belongs to, or the module that several have in common; `None`: the file
/// may name all.
fn owner(file: &Path) -> Option<String> {
    if file == Path::new(LIST_FILE) || file.extension().is_none_or(|extension| extension != "rs") {
        return None;
    }
    let mut folders = file.strip_prefix(CRATE).ok()?.components();
    let top = folders.find(|folder| folder.as_os_str() != COMMON)?;
    let name = Path::new(top.as_os_str()).file_stem()?;
    Some(name.to_string_lossy().into_owned())
}

fn check_file(file: &Path, owner: &str, source: &Source, families: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for at in 0..source.tokens.len() {
        if source.word(at) != Some("crate") || !is_path(source, at) {
            continue;
        }
        for name in heads(source, at + 3) {
            let Some(family) = source.word(name).filter(|name| is_in(families, name)) else {
                continue;
            };
            if family != owner && !is_offered(family, owner) {
                let line = source.tokens[name].line;
                let text = format!(
                    "{owner} names the family {family}: what both need belongs in a module \
                     that is no family"
                );
                findings.push(Finding::new(file, line, text));
            }
        }
    }
    findings
}

/// The constant of a family that stands in another file of its folder.
fn misplaced(file: &Path, source: &Source) -> Option<Finding> {
    let is_one_file = file.parent() == Some(Path::new(CRATE));
    if is_one_file || FAMILY_FILES.iter().any(|name| file.ends_with(name)) {
        return None;
    }
    let words =
        |at: &usize| source.word(*at) == Some("const") && source.word(at + 1) == Some("FAMILY");
    let at = (0..source.tokens.len()).find(words)?;
    let text = "a family says what it has in mod.rs, and reads its directives in plan.rs";
    Some(Finding::new(file, source.tokens[at].line, text))
}

fn is_in(families: &[String], name: &str) -> bool {
    families.iter().any(|family| family == name)
}

fn is_offered(family: &str, owner: &str) -> bool {
    let mut rows = OFFERS.iter();
    rows.any(|(name, to)| *name == family && to.contains(&owner))
}

/// Whether the word at `index` goes on as a path.
fn is_path(source: &Source, index: usize) -> bool {
    source.word(index).is_some() && source.is_mark(index + 1, ':') && source.is_mark(index + 2, ':')
}

/// Where the first words of a path stand: one, or those in braces.
fn heads(source: &Source, index: usize) -> Vec<usize> {
    if !source.is_mark(index, '{') {
        return vec![index];
    }
    let mut depth = 0usize;
    let mut found = Vec::new();
    for at in index..source.tokens.len() {
        if source.is_mark(at, '{') {
            depth += 1;
        } else if source.is_mark(at, '}') {
            depth -= 1;
            if depth == 0 {
                break;
            }
        }
        let begins = source.is_mark(at, '{') || source.is_mark(at, ',');
        if depth == 1 && begins {
            found.push(at + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests;
