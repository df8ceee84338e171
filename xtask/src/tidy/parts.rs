//! The limit on the size of an exchange, and of what all exchanges of a lane share. Every handler
//! gets both, so every family may come to depend on their fields. The exchange's own fields, the
//! parts, are public, so that two of them can be borrowed at once; the fields of a part are
//! private, so that only its owner changes them. No field has the name of a family, whose state is
//! in a room of its own. The request, which subrequests share, is changed only where it is read:
//! its field is private, so that none can be put in its place.

use std::path::{Path, PathBuf};

use super::families;
use super::finding::Finding;
use super::scanner::{Source, Token};

/// The file that defines the exchange.
const EXCHANGE_FILE: &str = "crates/http/src/exchange.rs";

/// The field's type.
const EXCHANGE: &str = "Exchange";

/// Fields of an exchange at most.
const EXCHANGE_FIELDS_MAX: usize = 12;

/// Fields of one of its parts at most.
const PART_FIELDS_MAX: usize = 15;

/// Folders in which the parts are defined.
const PART_FOLDERS: [&str; 2] = ["crates/http/src", "crates/plan/src"];

/// The references of an exchange to objects that its lane shares; they are no parts of it.
const SHARED: [&str; 2] = ["LaneShared", "LanePlan"];

/// The file that defines the request, which is immutable once it was read.
const REQUEST_FILE: &str = "crates/http/src/request.rs";

/// The type of it, and the method of an exchange that changes it while it is read.
const REQUEST: &str = "Request";
const READS_REQUEST: &str = "read_request";

/// The method that gives an exchange the request of another.
const SHARES_REQUEST: &str = "share_request";

/// Files that make exchanges for requests that were read already.
const SHARERS: [&str; 2] = [EXCHANGE_FILE, "crates/http/src/subrequest.rs"];

/// Files and folders that read requests.
const READERS: [&str; 4] = [
    EXCHANGE_FILE,
    "crates/http/src/h1",
    "crates/http/src/streams/serving.rs",
    "crates/http/src/routing.rs",
];

/// Functions that give a shared object to be changed.
const SHARED_CHANGES: [&str; 3] = ["get_mut", "make_mut", "get_mut_unchecked"];

/// The parts that have the name of a family, but not its state.
const NAMESAKES: [&str; 1] = [
    // The servers that were asked: of all families that pass requests on.
    "upstream",
];

/// Folders whose functions are given exchanges.
const BORROWERS: [&str; 2] = ["crates/http/src", "crates/modules/src"];

/// Functions that are lent a whole exchange to change it, at most. Where one part does, that part
/// is lent. The number only goes down.
const BORROWS_MAX: usize = 368;

/// The type that all exchanges of a lane share.
const LANE: &str = "LaneShared";

/// The file that defines it; its parts are in the folder of the same name.
const LANE_FILE: &str = "crates/http/src/lane/mod.rs";
const LANE_FOLDER: &str = "crates/http/src/lane";

/// A struct with named fields, as it is written.
#[derive(Debug)]
struct Struct {
    file: PathBuf,
    line: usize,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    line: usize,
    is_public: bool,
    /// The last name of its type: `Request` in `Rc<Request>`.
    kind: String,
}

/// The number of parameters and fields of a file that lend a whole exchange to be changed.
pub(super) fn count_borrows(file: &Path, source: &Source) -> usize {
    if !BORROWERS.iter().any(|folder| file.starts_with(folder)) {
        return 0;
    }
    let is_borrow = |at: &usize| {
        let at = *at;
        let is_lent =
            |back: usize| source.is_mark(at - back, '&') && source.is_mark(at - back - 1, ':');
        let is_exchange = at > 4 && source.word(at) == Some(EXCHANGE);
        // `: &mut Exchange`, or with the name of a lifetime.
        is_exchange && source.word(at - 1) == Some("mut") && (is_lent(2) || is_lent(3))
    };
    (0..source.tokens.len()).filter(is_borrow).count()
}

/// Finds out whether more exchanges are lent than the number that was reached.
pub(super) fn borrows(count: usize) -> Option<Finding> {
    let file = Path::new("xtask/src/tidy/parts.rs");
    let text = format!(
        "{count} functions are lent a whole exchange to change it, at most {BORROWS_MAX}: lend \
         the part that is changed"
    );
    (count > BORROWS_MAX).then(|| Finding::new(file, 1, text))
}

/// Checks the exchange and its parts; `read` returns the text of a file below the root.
pub(super) fn check(files: &[PathBuf], read: &dyn Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let exchange = Path::new(EXCHANGE_FILE);
    let text = read(exchange).unwrap_or_default();
    let Some(found) = find_struct(exchange, &Source::scan(&text), EXCHANGE) else {
        let text = format!("no struct {EXCHANGE}: xtask/src/tidy/parts.rs names its file");
        return vec![Finding::new(exchange, 1, text)];
    };
    let mut findings = too_many(EXCHANGE, &found, EXCHANGE_FIELDS_MAX);
    let sources: Vec<(&Path, String)> = files
        .iter()
        .filter(|file| PART_FOLDERS.iter().any(|folder| file.starts_with(folder)))
        .filter(|file| file.extension().is_some_and(|end| end == "rs"))
        .filter_map(|file| Some((file.as_path(), read(file)?)))
        .collect();
    findings.extend(check_request_field(&found));
    for field in &found.fields {
        if !SHARED.contains(&field.kind.as_str()) {
            findings.extend(check_part(field, &sources));
        }
    }
    findings.extend(check_lane(&sources));
    findings.extend(check_request(
        &read(Path::new(REQUEST_FILE)).unwrap_or_default(),
    ));
    for (file, text) in &sources {
        findings.extend(check_readers(file, text));
    }
    let families = families::names(read);
    let is_of_family = |field: &&Field| {
        families.contains(&field.name) && !NAMESAKES.contains(&field.name.as_str())
    };
    for field in found.fields.iter().filter(is_of_family) {
        let text = format!(
            "field {} of {EXCHANGE} has the name of a family: its state belongs in a room",
            field.name
        );
        findings.push(Finding::new(exchange, field.line, text));
    }
    findings
}

/// Checks that the request of an exchange is in a private field.
fn check_request_field(exchange: &Struct) -> Option<Finding> {
    let is_open = |field: &&Field| field.kind == REQUEST && field.is_public;
    let field = exchange.fields.iter().find(is_open)?;
    let text = format!(
        "field {} of {EXCHANGE} is not private: another request could be put in its place",
        field.name
    );
    Some(Finding::new(&exchange.file, field.line, text))
}

/// Checks that only its own crate can change a request, and that it has no copies: a shared object
/// without copies cannot be changed.
fn check_request(text: &str) -> Vec<Finding> {
    let source = Source::scan(text);
    let changes = |at: usize| {
        source.word(at) == Some("pub")
            && source.word(at + 1) == Some("fn")
            && source.is_mark(at + 3, '(')
            && source.is_mark(at + 4, '&')
            && source.word(at + 5) == Some("mut")
    };
    let mut findings = Vec::new();
    let mut finding = |at: usize, text: String| {
        findings.push(Finding::new(
            Path::new(REQUEST_FILE),
            source.tokens[at].line,
            text,
        ));
    };
    let mut copied = None;
    for at in 0..source.tokens.len() {
        match source.word(at) {
            Some("Clone") => copied = Some(at),
            // The derived traits of another type.
            Some("struct" | "enum" | "impl") if source.word(at + 1) != Some(REQUEST) => {
                copied = None;
            }
            Some("struct") if copied.is_some() => {
                finding(at, format!("{REQUEST} has copies, which can be changed"));
            }
            Some("for") if copied == at.checked_sub(1) && source.word(at + 1) == Some(REQUEST) => {
                finding(at, format!("{REQUEST} has copies, which can be changed"));
            }
            _ => {}
        }
        if changes(at) {
            let name = source.word(at + 2).unwrap_or_default();
            let text = format!("{name} changes a request, which is immutable once it was read");
            finding(at, text);
        }
    }
    findings
}

/// Checks that a file changes a request only while it is read: it names the method for that only
/// if it is one of [`READERS`], and gives the method to no other crate.
fn check_readers(file: &Path, text: &str) -> Vec<Finding> {
    let is_named = [READS_REQUEST, SHARES_REQUEST, "_mut"];
    if !is_named.iter().any(|name| text.contains(name)) {
        return Vec::new();
    }
    let source = Source::scan(text);
    let is_reader = READERS.iter().any(|reader| file.starts_with(reader));
    let is_sharer = SHARERS.iter().any(|sharer| file == Path::new(sharer));
    let mut findings = Vec::new();
    let mut is_public = false;
    for (at, placed) in source.tokens.iter().enumerate() {
        if source.word(at) == Some("fn") {
            is_public = (1..=3).any(|back| at >= back && source.word(at - back) == Some("pub"));
        }
        let changes = source.word(at) == Some(READS_REQUEST) || changes_shared_request(&source, at);
        let shares = source.word(at) == Some(SHARES_REQUEST);
        let may_not = (changes && !is_reader) || (shares && !is_sharer);
        if may_not || (is_public && (changes || shares)) {
            let text = "changes a request, which is immutable once it was read".to_owned();
            findings.push(Finding::new(file, placed.line, text));
        }
    }
    findings
}

/// Whether the word at `at` is a call such as `Rc::get_mut(&mut self.request)`.
fn changes_shared_request(source: &Source, at: usize) -> bool {
    let is_call = source
        .word(at)
        .is_some_and(|word| SHARED_CHANGES.contains(&word))
        && source.is_mark(at + 1, '(');
    let end = (at + 2..source.tokens.len()).find(|end| source.is_mark(*end, ')'));
    is_call && end.is_some_and(|end| source.word(end - 1) == Some("request"))
}

/// Checks what exchanges of a lane share: as many fields as an exchange at most, and parts of the
/// same kind. Most of its fields are of types that other crates own.
fn check_lane(sources: &[(&Path, String)]) -> Vec<Finding> {
    let is_here = |(file, _): &&(&Path, String)| file.starts_with(LANE_FOLDER);
    let here: Vec<_> = sources.iter().filter(is_here).collect();
    let find = |name: &str| {
        let mut found = here.iter();
        found.find_map(|(file, text)| find_struct(file, &Source::scan(text), name))
    };
    let Some(lane) = find(LANE) else {
        let text = format!("no struct {LANE}: xtask/src/tidy/parts.rs names its file");
        return vec![Finding::new(Path::new(LANE_FILE), 1, text)];
    };
    let mut findings = too_many(LANE, &lane, EXCHANGE_FIELDS_MAX);
    for field in &lane.fields {
        if let Some(part) = find(&field.kind) {
            findings.extend(size_and_privacy(LANE, &field.kind, &part));
        }
    }
    findings
}

/// Checks the part in a field of the exchange.
fn check_part(field: &Field, sources: &[(&Path, String)]) -> Vec<Finding> {
    let named = format!("struct {}", field.kind);
    let mut parts = sources.iter().filter(|(_, text)| text.contains(&named));
    let part = parts.find_map(|(file, text)| find_struct(file, &Source::scan(text), &field.kind));
    let Some(part) = part else {
        let text = format!(
            "field {} of {EXCHANGE} is no part of its own: put it into the part that changes it",
            field.name
        );
        return vec![Finding::new(Path::new(EXCHANGE_FILE), field.line, text)];
    };
    size_and_privacy(EXCHANGE, &field.kind, &part)
}

/// Checks how many fields a part has, and that they are private.
fn size_and_privacy(whole: &str, name: &str, part: &Struct) -> Vec<Finding> {
    let mut findings = too_many(name, part, PART_FIELDS_MAX);
    for open in part.fields.iter().filter(|field| field.is_public) {
        let text = format!(
            "field {} of {name}, a part of {whole}, is not private: give its owner a method",
            open.name
        );
        findings.push(Finding::new(&part.file, open.line, text));
    }
    findings
}

fn too_many(name: &str, found: &Struct, most: usize) -> Vec<Finding> {
    let count = found.fields.len();
    if count <= most {
        return Vec::new();
    }
    let text = format!("{name} has {count} fields, at most {most}: find the part that owns each");
    vec![Finding::new(&found.file, found.line, text)]
}

/// The struct of that name that a file defines.
fn find_struct(file: &Path, source: &Source, name: &str) -> Option<Struct> {
    let is_it = |at: &usize| {
        source.word(*at) == Some("struct")
            && source.word(at + 1) == Some(name)
            && !source.is_mark(at + 2, ';')
    };
    let at = (0..source.tokens.len()).find(is_it)?;
    let begin = (at + 2..source.tokens.len()).find(|at| source.is_mark(*at, '{'))?;
    Some(Struct {
        file: file.to_path_buf(),
        line: source.tokens[at].line,
        fields: fields(source, begin + 1),
    })
}

/// The fields from `begin` to the brace that closes the struct.
fn fields(source: &Source, begin: usize) -> Vec<Field> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut is_public = false;
    let mut at = begin;
    while at < source.tokens.len() {
        match &source.tokens[at].token {
            Token::Mark('}') if depth == 0 => break,
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Mark(',') if depth == 0 => is_public = false,
            Token::Word(word) if depth == 0 && word == "pub" => is_public = true,
            Token::Word(word) if depth == 0 && source.is_mark(at + 1, ':') => {
                let end = type_end(source, at + 2);
                let kind = (at + 2..end).rev().find_map(|at| source.word(at));
                found.push(Field {
                    name: word.clone(),
                    line: source.tokens[at].line,
                    is_public,
                    kind: kind.unwrap_or_default().to_owned(),
                });
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Where a field's type ends: its comma, or the brace that closes the struct.
fn type_end(source: &Source, begin: usize) -> usize {
    let mut depth = 0usize;
    for (at, placed) in source.tokens.iter().enumerate().skip(begin) {
        match placed.token {
            Token::Mark('(' | '[' | '<') => depth += 1,
            // The end of an arrow closes nothing.
            Token::Mark('>') if source.is_mark(at - 1, '-') => {}
            Token::Mark(')' | ']' | '>') => depth = depth.saturating_sub(1),
            Token::Mark(',' | '}') if depth == 0 => return at,
            _ => {}
        }
    }
    source.tokens.len()
}

#[cfg(test)]
mod tests;
