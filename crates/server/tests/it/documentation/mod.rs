//! Tests of the documentation: its configurations must load, and the tests that it names must
//! exist.

mod first_steps;
mod readme;
mod stock;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use crate::support::tls::{certificate, openssl};
use crate::support::{TURNPIKE, stderr, turnpike};
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Folder, Server};

/// The blocks of a page that are marked as nginx configuration, each with the text up to the next
/// block of any kind.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```nginx\n") {
        let (block, after) = after.split_once("\n```").unwrap();
        blocks.push((block, after.split("\n```").next().unwrap()));
        rest = after;
    }
    blocks
}

/// A comment between a block and the next one: `<!-- asks: GET PATH STATUS [BODY] -->`, or instead
/// of the body `with FIELD: VALUE`.
struct Question<'a> {
    path: &'a str,
    status: &'a str,
    expected: Option<Expected<'a>>,
}

enum Expected<'a> {
    Body(&'a str),
    Field(&'a str),
}

fn questions(text: &str) -> Vec<Question<'_>> {
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix("<!-- asks: GET ")?;
        line.strip_suffix(" -->")
    });
    let question = |line| {
        let mut words = str::splitn(line, 3, ' ');
        Question {
            path: words.next().unwrap(),
            status: words.next().unwrap(),
            expected: words.next().map(|rest| match rest.strip_prefix("with ") {
                Some(field) => Expected::Field(field),
                None => Expected::Body(rest),
            }),
        }
    };
    lines.map(question).collect()
}

/// The response to a GET for the first name of a block's servers, as text.
fn ask(block: &str, port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let name = block.split("server_name ").nth(1);
    let name = name.and_then(|rest| rest.split([' ', ';']).next());
    let host = name.unwrap_or("x");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// A block with the port of its server instead of 8080, and with ports that refuse instead of those
/// of its upstream servers, which are not here.
fn on_free_ports(block: &str, port: u16) -> (String, Vec<RefusedPort>) {
    let mut text = block.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    let mut refused = Vec::new();
    let ports = block.split("127.0.0.1:").skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        &rest[..end.unwrap_or(rest.len())]
    });
    for number in ports.filter(|number| *number != "8080") {
        let free = RefusedPort::new().unwrap();
        let other = format!("127.0.0.1:{}", free.number());
        text = text.replace(&format!("127.0.0.1:{number}"), &other);
        refused.push(free);
    }
    (text, refused)
}

#[test]
fn examples_answer_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for entry in fs::read_dir(folder.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for (block, after) in blocks(&page) {
            let questions = questions(after);
            if questions.is_empty() {
                continue;
            }
            count += questions.len();
            let port = turnpike_testkit::ports::reserve().unwrap();
            let (text, _refused) = on_free_ports(block, port);
            // The command line says what stands elsewhere for a test; the file is what is copied.
            let mut builder = Server::builder(TURNPIKE).own_name().configuration(&text);
            for (name, text) in INCLUDED {
                builder = builder.file(name, text);
            }
            let server = builder.file("logs/empty", "").start();
            for question in questions {
                judge(block, port, &question);
            }
            drop(server);
        }
    }
    assert!(count >= 20, "the documentation asks {count} questions");
}

fn judge(block: &str, port: u16, question: &Question<'_>) {
    let Question { path, status, .. } = question;
    let response = ask(block, port, path);
    let begin = format!("HTTP/1.1 {status} ");
    assert!(response.starts_with(&begin), "{block}\n{path}: {response}");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    match question.expected {
        None => {}
        Some(Expected::Body(text)) => assert_eq!(body.trim_end(), text, "{block}\n{path}"),
        Some(Expected::Field(field)) => {
            let field = field.replace("x:8080", &format!("x:{port}"));
            let found = head.lines().any(|line| line == field);
            assert!(found, "{block}\n{path}: {field}: {head}");
        }
    }
}

/// Files that examples include: packages install them beside `nginx.conf`.
const INCLUDED: &[(&str, &str)] = &[
    (
        "fastcgi.conf",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../contrib/etc/fastcgi.conf"
        )),
    ),
    (
        "fastcgi_params",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../contrib/etc/fastcgi_params"
        )),
    ),
    (
        "mime.types",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../conf/mime.types"
        )),
    ),
];

/// A block with the files that it names, nothing added to its text. The files and folders that a
/// reader has of his own are in the folder: keys, caches and states.
fn prepared(block: &str, folder: &Folder) -> String {
    for (name, text) in INCLUDED {
        folder.write(name, text).unwrap();
    }
    folder.write("logs/empty", "").unwrap();
    let cache = format!("{}/cache", folder.name());
    let mut block = block
        .replace("/var/cache/turnpike", &cache)
        .replace("/var/lib/turnpike", folder.name());
    if block.contains("/etc/ssl/") {
        keys(folder);
        block = block.replace("/etc/ssl/", "");
    }
    block
}

/// Certificates with keys, and a list of revoked ones, under the names that the pages use.
fn keys(folder: &Folder) {
    let at = folder.path();
    let kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for file in ["example.com", "chain", "clients-ca", "servers-ca"] {
        certificate(at, file, "example.com", &kind);
    }
    let list = "[ca]\ndefault_ca=c\n[c]\ndatabase=index\ncrlnumber=number\n\
                default_md=sha256\ndefault_crl_days=5\n";
    folder.write("ca.conf", list).unwrap();
    folder.write("index", "").unwrap();
    folder.write("number", "01").unwrap();
    let ca = ["ca", "-config", "ca.conf", "-keyfile", "clients-ca.key"];
    let more = [
        "-cert",
        "clients-ca.pem",
        "-gencrl",
        "-out",
        "clients-ca.crl",
    ];
    openssl(at, &[&ca[..], &more].concat());
}

/// The families whose page must show a configuration, with the least number of them.
const SHOWN: &[(&str, usize)] = &[
    ("tls.md", 6),
    ("http2.md", 2),
    ("upstreams.md", 4),
    ("stream.md", 2),
    ("monitoring.md", 4),
];

/// Lines that only a configuration has.
const CONFIGURED: &[&str] = &[
    "    server {",
    "    location ",
    "    upstream ",
    "    listen ",
];

#[test]
fn configurations_in_the_documentation_are_marked_as_such() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, least) in SHOWN {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(blocks(&page).len() >= *least, "{name}");
        let outside = page.split("\n```").step_by(2);
        for line in outside.flat_map(str::lines) {
            let is_one = CONFIGURED.iter().any(|start| line.starts_with(start));
            assert!(
                !is_one,
                "{name}: a configuration that no test reads: {line}"
            );
        }
    }
}

#[test]
fn configurations_in_the_documentation_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        pages.push(entry.unwrap().path());
    }
    let mut count = 0;
    for page in pages.iter().filter(|page| page.extension().is_some()) {
        let text = fs::read_to_string(page).unwrap();
        for (block, _) in blocks(&text) {
            count += 1;
            let folder = Folder::create().unwrap();
            let block = prepared(block, &folder);
            folder.write("nginx.conf", &block).unwrap();
            let output = turnpike(&folder.arguments(&["-t"]));
            let shown = stderr(&output);
            // An ordinary user may not have every port.
            let is_denied = |line: &str| {
                line.contains("] bind() to ") && line.ends_with("failed (13: Permission denied)")
            };
            let mut failures = shown.lines().filter(|line| line.contains("[emerg]"));
            assert!(
                shown.contains("syntax is ok") && failures.all(is_denied),
                "{}: {block}\n{shown}",
                page.display()
            );
        }
    }
    assert!(count > 0, "no page shows a configuration");
}

/// What the folder of a dated run holds, by the part of its name that says what ran.
const KEPT: &[(&str, &[&str])] = &[
    (
        "-climb-",
        &["README.md", "nginx/runs.json", "turnpike/runs.json"],
    ),
    ("-accelerate-", &["README.md", "raw.csv", "summary.json"]),
    ("-stall-", &["README.md"]),
    ("-torture-", &["README.md"]),
    (
        "-s",
        &["README.md", "raw.csv", "report.html", "summary.json"],
    ),
    ("", &["README.md", "raw.csv", "summary.json"]),
];

#[test]
fn dated_runs_hold_what_the_page_of_results_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(page.contains("Of *torture* and *stall* only the page"));
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        count += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let (_, expected) = KEPT.iter().find(|(part, _)| name.contains(part)).unwrap();
        for file in *expected {
            assert!(path.join(file).is_file(), "{name}: {file}");
        }
    }
    assert!(count > 5, "{count} runs");
}

/// Parts of earlier sentences that readers did not understand.
const NOT_UNDERSTOOD: &[&str] = &[
    "at the price of a static file",
    "plain refusals",
    "every mistake that it finds",
    "lost none outside the kills",
    "Drive it before",
    "signals do what",
    "it is found by the tools",
    "# how it is",
    "Tells how",
    "ends in its favour",
    "say by -p",
    "does not tell",
    "The time that a load balancer needs",
    "Connections of whose",
    "Connections that are no more",
    "fault of ours",
    "Requests whose head was read",
    "After which time of silence",
    "with an answer (return)",
    "that do not say so themselves",
    "who would have others",
    "now and then",
    "lacks a wall",
    "is done without",
    "gives other rates",
    "answer as ever",
    "find their lane",
    "what a step is undone to",
    "A step that pays",
    "What is no hello",
    "have no effect on their own",
    "all of them younger",
    "If what a 304 is about",
];

/// Words after which the program prints a text for people.
const PRINTED: &[&[&str]] = &[
    &["-h"],
    &["directives"],
    &["metric-names"],
    &["variable-names"],
    &["status", "--help"],
    &["drain", "--help"],
    &["upgrade", "--help"],
    &["upstream", "--help"],
    &["cache", "--help"],
    &["load", "--help"],
    &["lab", "--help"],
    &["tune", "--help"],
];

#[test]
fn sentences_that_readers_did_not_understand_do_not_come_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    let pages = fs::read_dir(root.join("docs")).unwrap();
    let pages = pages.map(|entry| entry.unwrap().path());
    let others = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "bench/README.md",
    ];
    for page in pages.chain(others.map(|name| root.join(name))) {
        if page.extension().is_some_and(|end| end == "md") {
            texts.push((
                page.display().to_string(),
                fs::read_to_string(&page).unwrap(),
            ));
        }
    }
    for words in PRINTED {
        let output = turnpike(words);
        let text = [output.stdout, output.stderr].concat();
        assert!(text.len() > 200, "{words:?}");
        texts.push((words.join(" "), String::from_utf8(text).unwrap()));
    }
    for (name, text) in texts {
        // A sentence may go over the end of a line.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in NOT_UNDERSTOOD {
            assert!(!text.contains(part.trim_end()), "{name}: {part}");
        }
    }
}

/// The number of rows of `docs/conformance.md` with SHOULD, and with MUST: one for each sentence of
/// the RFCs that binds servers, gateways or caches, so that no loss goes unnoticed.
const COUNTS: [usize; 2] = [139, 305];

/// A row of a table in `docs/conformance.md`.
struct Requirement<'a> {
    section: &'a str,
    level: &'a str,
    test: &'a str,
}

fn requirements(page: &str) -> Vec<Requirement<'_>> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [section, level, _, _, test] = cells[..] else {
            panic!("a row needs five cells: {line}");
        };
        let section = section.trim_start_matches("| ");
        let begins = section.starts_with(|first: char| first.is_ascii_digit());
        begins.then_some(Requirement {
            section,
            level,
            test,
        })
    })
    .collect()
}

/// Why a name in the last column leads to no test: `FILE::FUNCTION`, `FILE::TABLE "row"`, with the
/// file below `crates`.
fn missing(name: &str) -> Option<String> {
    let Some((file, rest)) = name.split_once("::") else {
        return Some("it has no file".to_owned());
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let Ok(text) = fs::read_to_string(path) else {
        return Some(format!("there is no file crates/{file}"));
    };
    let (item, row) = match rest.split_once(" \"") {
        Some((item, row)) => (item, row.strip_suffix('"')),
        None => (rest, None),
    };
    let Some(row) = row else {
        let begin = format!("fn {item}() {{");
        let before = text.split_once(&begin).map(|(before, _)| before.trim_end());
        let is_test = before.is_some_and(|before| before.ends_with("#[test]"));
        return (!is_test).then(|| format!("there is no test {item}"));
    };
    let Some((_, inside)) = text.split_once(&format!("const {item}: &[")) else {
        return Some(format!("there is no table {item}"));
    };
    let inside = inside.split("\n];").next().unwrap_or_default();
    let is_used = text.contains(&format!("{item})")) || text.contains(&format!(" in {item}"));
    let found = is_used && inside.contains(&format!("\"{row}\","));
    (!found).then(|| format!("{item} has no such row, or is not run"))
}

#[test]
fn every_requirement_of_the_rfcs_has_its_test_or_its_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = fs::read_to_string(path).unwrap();
    let (mut faults, mut counts) = (Vec::new(), [0, 0]);
    for Requirement {
        section,
        level,
        test,
    } in requirements(&page)
    {
        let must = level.contains("MUST");
        counts[usize::from(must)] += 1;
        let names: Vec<&str> = test.split('`').skip(1).step_by(2).collect();
        let tests = names.iter().filter(|name| name.contains(".rs::"));
        for name in tests.clone() {
            if let Some(why) = missing(name) {
                faults.push(format!("{section}: {name}: {why}"));
            }
        }
        let reason =
            test.starts_with("Does not apply: ") || (!must && test.starts_with("Not followed: "));
        if tests.count() == 0 && !reason {
            faults.push(format!(
                "{section} {level}: neither test nor reason: {test}"
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(counts, COUNTS, "rows with SHOULD, rows with MUST");
}
