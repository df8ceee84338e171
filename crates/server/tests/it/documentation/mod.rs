//! Tests of the documentation: its configurations must load, and the tests that it names must
//! exist.

mod examples;
mod first_steps;
mod readme;
mod stock;

use std::fs;
use std::path::Path;

use crate::support::turnpike;

/// What the folder of a dated run holds, by the part of its name that says what ran.
const KEPT: &[(&str, &[&str])] = &[
    (
        "-climb-",
        &["README.md", "nginx/runs.json", "turnpike/runs.json"],
    ),
    ("-accelerate-", &["README.md", "raw.csv", "summary.json"]),
    ("-stall-", &["README.md"]),
    ("-torture-", &["README.md"]),
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

#[test]
fn a_directive_is_explained_on_the_terminal_as_on_its_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/directives/limit_req.md");
    let page = fs::read_to_string(page).unwrap();
    let output = turnpike(&["directives", "limit_req"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let (_, section) = page.split_once("\n## limit_req\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let is_text = |line: &&str| !line.starts_with("<!--") && !line.contains("](");
    for line in section.lines().filter(is_text) {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(shown.starts_with("## limit_req (limit_req)\n"), "{shown}");
    assert!(!shown.contains("<!--") && !shown.contains("]("), "{shown}");
    let cases: [(&[&str], &str); 2] = [
        (&["directives", "limit_rek"], "did you mean \"limit_req\"?"),
        (&["directives", "--page"], "\"--page\" cannot stand here"),
    ];
    for (words, message) in cases {
        let output = turnpike(words);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && stderr.contains(message),
            "{stderr}"
        );
    }
}
