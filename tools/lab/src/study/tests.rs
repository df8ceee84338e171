#![allow(clippy::unwrap_used)]

use super::*;
use crate::matrix::{self, Choice};

/// A study that is right, with a place for one mistake.
const RIGHT: &str = r#"name = "t"
title = "t"
source = "s"
about = "a"

[run]
seconds = 1.0

[placement]
server = "all"
driver = "all"

[drive]
program = "load"
arguments = ["-c", "{connections}"]

[set]
connections = "10"

[[configuration]]
name = "main"
text = """
listen {port};
root {folder};
"""

[[contender]]
name = "nginx"
program = "nginx"
configuration = "main"

[[factor]]
name = "mode"
title = "mode"
names = ["on", "off"]

[[claim]]
text = "on is faster"
metric = "requests_per_s"
of = { mode = "on" }
against = { mode = "off" }
expect = "above"

[[plot]]
kind = "bars"
title = "rates"
metric = "requests_per_s"
"#;

/// A replacement in the text, and the resulting error.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "seconds = 1.0",
        "second = 1.0",
        "unknown field `second`, expected one of `repetitions`, `seconds`, `warmup_s`, `seed`, \
         `topology`, `driver_may_limit`, `quick` in t.toml:7",
    ),
    (
        "seconds = 1.0",
        "seconds = 0.0",
        "seconds must be from 0.1 to 86400 in t.toml:1",
    ),
    (
        "seconds = 1.0",
        "seconds = \"1\"",
        "invalid type: string \"1\", expected f64 in t.toml:7",
    ),
    (
        "[set]",
        "[files]\n\"../a\" = 1\n[set]",
        "a file's path must be relative, without \"..\" in t.toml:18",
    ),
    (
        "[set]",
        "[files]\na = { lines = 1000001, text = \"x\" }\n[set]",
        "a file has at most 1000000 lines in t.toml:18",
    ),
    (
        "[set]",
        "[files]\na = 1073741825\n[set]",
        "a file has at most 1073741824 bytes in t.toml:18",
    ),
    (
        "[set]",
        "[files]\na = { lines = 1, text = \"{nothing}\" }\n[set]",
        "no value for {nothing} in t.toml:18",
    ),
    (
        "[set]",
        "[files]\na = \"text\"\n[set]",
        "a file is a number of bytes, { words_bytes = N }, { lines = N, text = \"...\" }, or \
         { command = [...] } in t.toml:18",
    ),
    (
        "seconds = 1.0",
        "topology = \"wire\"",
        "unknown topology \"wire\", there are loopback, netns in t.toml:7",
    ),
    (
        "seconds = 1.0",
        "repetitions = 0",
        "repetitions must be at least 1 in t.toml:1",
    ),
    (
        "seconds = 1.0",
        "seconds = ",
        "string values must be quoted, expected literal string in t.toml:7",
    ),
    (
        "program = \"load\"",
        "program = \"siege\"",
        "unknown driver \"siege\", there are load, wrk, ab, command in t.toml:14",
    ),
    (
        "program = \"load\"",
        "program = \"command\"",
        "program = \"command\" and a command belong together in t.toml:14",
    ),
    (
        "{connections}\"",
        "{connection}\"",
        "no value for {connection} in t.toml:14",
    ),
    (
        "listen {port};",
        "listen {prot};",
        "no value for {prot} in t.toml:23",
    ),
    (
        "root {folder};",
        "root {floder};",
        "no value for {floder} in t.toml:24",
    ),
    (
        "program = \"nginx\"",
        "program = \"apache\"",
        "unknown program \"apache\", there are haproxy, nginx, turnpike, varnish in t.toml:29",
    ),
    (
        "configuration = \"main\"",
        "configuration = \"mian\"",
        "no [[configuration]] is called \"mian\" in t.toml:30",
    ),
    (
        "names = [\"on\", \"off\"]",
        "names = [\"on\", \"on\"]",
        "duplicate level \"on\" in t.toml:35",
    ),
    (
        "names = [\"on\", \"off\"]",
        "names = []",
        "a factor needs levels or a scale in t.toml:33",
    ),
    (
        "names = [\"on\", \"off\"]",
        "scale = \"discs\"",
        "unknown scale \"discs\", there are cpus in t.toml:35",
    ),
    (
        "names = [\"on\", \"off\"]",
        "names = [\"on\", \"off\"]\nquick = [\"of\"]",
        "unknown level \"of\", there are on, off in t.toml:36",
    ),
    (
        "name = \"mode\"",
        "name = \"contender\"",
        "\"contender\" is a dimension already in t.toml:33",
    ),
    (
        "metric = \"requests_per_s\"\nof",
        "metric = \"speed\"\nof",
        "unknown metric \"speed\" in t.toml:39",
    ),
    (
        "of = { mode = \"on\" }",
        "of = { mode = \"no\" }",
        "unknown level of mode \"no\", there are on, off in t.toml:40",
    ),
    (
        "of = { mode = \"on\" }",
        "of = { node = \"on\" }",
        "unknown dimension \"node\", there are contender, mode in t.toml:40",
    ),
    (
        "expect = \"above\"",
        "expect = \"up\"",
        "unknown variant `up`, expected one of `above`, `below`, `same`, `open` in t.toml:42",
    ),
    (
        "title = \"rates\"\nmetric = \"requests_per_s\"",
        "title = \"rates\"",
        "the plot \"rates\" needs a metric in t.toml:1",
    ),
    (
        "[placement]\nserver = \"all\"\ndriver = \"all\"\n",
        "",
        "a study with contenders needs a [placement] in t.toml:1",
    ),
];

#[test]
fn every_mistake_is_reported_with_its_line() {
    assert!(parse("t.toml", RIGHT).is_ok());
    for (right, wrong, expected) in MISTAKES {
        let text = RIGHT.replacen(right, wrong, 1);
        assert_ne!(text, RIGHT, "{right}");
        assert_eq!(parse("t.toml", &text).unwrap_err().to_string(), *expected);
    }
}

#[test]
fn a_study_without_contenders_is_refused() {
    let text = "name = \"t\"\ntitle = \"t\"\nsource = \"s\"\nabout = \"a\"\n";
    let error = parse("t.toml", text).unwrap_err().to_string();
    assert_eq!(error, "a study needs a [[contender]] in t.toml:1");
}

#[test]
fn a_climb_belongs_to_a_ladder_and_has_a_command() {
    let begin = "name = \"t\"\ntitle = \"t\"\nsource = \"s\"\nabout = \"a\"\n";
    let ladder = "[[ladder]]\ntext = \"x\"\nconnections_per_s = 1\n";
    let command = "[climb]\ncommand = [\"{turnpike}\", \"{folder}\"]\n";
    let belongs =
        "a [climb] has a command, and belongs to a [[ladder]] without contenders in t.toml";
    let cases = [
        (format!("{begin}{command}{ladder}"), String::new()),
        (format!("{begin}{command}"), format!("{belongs}:5")),
        (
            format!("{begin}[climb]\ncommand = []\n{ladder}"),
            format!("{belongs}:5"),
        ),
        (format!("{RIGHT}{command}{ladder}"), format!("{belongs}:48")),
        (
            format!("{begin}[climb]\ncommand = [\"{{port}}\"]\n{ladder}"),
            "no value for {port} in t.toml:5".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        let said = parse("t.toml", &text).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(said, expected, "{text}");
    }
}

#[test]
fn every_study_that_ships_holds_together() {
    for name in NAMES {
        let study = load(name).unwrap().study;
        assert_eq!(study.name.get_ref(), name);
        for cpus in [1, 2, 3, 8, 64] {
            let dimensions = matrix::dimensions(&study, cpus);
            let all = matrix::cases(&study, &dimensions, &Choice::default());
            let quick = Choice {
                quick: true,
                ..Choice::default()
            };
            let quick = matrix::cases(&study, &dimensions, &quick);
            assert!(quick.len() <= all.len());
            assert_eq!(all.is_empty(), study.contender.is_empty(), "{name}");
        }
        let is_own = study.source.starts_with("this project");
        let has_figures = !study.published.is_empty() || !study.ladder.is_empty();
        assert!(has_figures != is_own, "{name} has no published figures");
        assert!(!study.about.trim().is_empty() && !study.caveats.is_empty());
    }
}

#[test]
fn every_built_in_program_is_found() {
    for name in ["nginx", "turnpike", "haproxy", "varnish"] {
        assert!(
            program(name).is_some_and(|program| !program.version.is_empty()),
            "{name}"
        );
    }
}

#[test]
fn a_wrong_name_is_answered_with_a_near_one() {
    let message = |name: &str| load(name).unwrap_err().to_string();
    assert_eq!(
        message("s5"),
        "there is no study \"s5\"; did you mean \"s5-accept-modes\"?"
    );
    assert!(message("nonsense").contains("there are s1a-polling, s1b-"));
    assert!(message("./nowhere.toml").starts_with("./nowhere.toml: No such file"));
}
