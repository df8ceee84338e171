//! Tests of the reference's format, and of errors in a table.

use super::{NONE, ONE, own, registry, row};
use crate::reference::{FamilyReference, Reference, ReferenceText, plain};
use crate::registry::{Context, Registry, Row, Value};

/// A family in `http`, with its counterpart in `stream`.
const LIMIT: &[Row] = &[
    Row {
        syntax: "zone=name [burst=number]",
        ..row(
            "limit",
            &[Context::Http, Context::Server],
            ONE,
            Value::Custom,
            "",
        )
    },
    row(
        "limit_delay",
        &[Context::Http],
        ONE,
        Value::Milliseconds,
        "1s",
    ),
];
const LIMIT_IN_STREAM: &[Row] = &[Row {
    contexts: &[Context::Stream],
    ..LIMIT[0]
}];
const PASS: &[Row] = &[row("a_buffers", &[Context::Http], ONE, Value::Custom, "")];

const TEXT: &str = "Limits.\n\n## limit\n\n- `zone=`: where. `burst=`: [more](x.md#y).\n\n\
                    ```nginx\n## no heading\n```\n<!-- asks: GET / 200 -->\n";
const SHARED: &str = "## P_buffers\n\nP, see [P_x](#P_x).\n";

const fn family(
    name: &'static str,
    rows: &'static [Row],
    texts: &'static [ReferenceText],
) -> FamilyReference {
    FamilyReference { name, rows, texts }
}

fn reference(families: &[FamilyReference]) -> Reference {
    Reference::new(families, |family, _| Some(format!("of {family}")))
}

#[test]
fn pages_are_made_of_rows_and_texts() {
    const OF_LIMIT: &[ReferenceText] = &[ReferenceText::new(TEXT)];
    const OF_PASS: &[ReferenceText] = &[ReferenceText::shared(SHARED, &[("P", "a")])];
    let reference = reference(&[
        family("limit", LIMIT, OF_LIMIT),
        family("variables only", &[], &[]),
        family("stream limit", LIMIT_IN_STREAM, OF_LIMIT),
        family("a pass", PASS, OF_PASS),
    ]);
    assert_eq!(reference.problems(), &[] as &[String]);
    let pages: Vec<(String, String)> = reference.pages().collect();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["limit.md", "a-pass.md"]);
    let expected = [
        (0, "# limit\n\nWritten by"),
        (
            0,
            "\n\nLimits.\n\n## limit\n\n- Syntax: `limit zone=name [burst=number];`\n\
             - Default: none\n- Context: http, server, stream\n\
             - Origin: of limit; in stream: of stream limit\n\nDoes it.\n\n- `zone=`: where.",
        ),
        (
            0,
            "\n## limit_delay\n\n- Syntax: `limit_delay it;`\n- Default: `limit_delay 1s;`\n\
             - Context: http\n- Value: a time such as",
        ),
        (1, "\n## a_buffers\n"),
        (1, "\n\na, see [a_x](#a_x).\n"),
    ];
    for (page, part) in expected {
        assert!(pages[page].1.contains(part), "{part}\n{}", pages[page].1);
    }
    assert_eq!(
        reference.index("d/").lines().next(),
        Some(
            "| [limit](d/limit.md) | [`limit`](d/limit.md#limit), \
              [`limit_delay`](d/limit.md#limit_delay) |"
        )
    );
    let bare: Vec<&str> = reference.unexplained().map(|(_, row)| row.name).collect();
    assert_eq!(bare, ["limit_delay"]);
    let shown = plain(&reference.of("limit").unwrap());
    assert!(shown.starts_with("\n## limit (limit)\n"), "{shown}");
    assert!(shown.contains("`burst=`: more.\n"), "{shown}");
    assert!(shown.ends_with("```nginx\n## no heading\n```\n"), "{shown}");
    assert_eq!(reference.of("limits"), None);
}

#[test]
fn texts_without_row_parameter_or_example_are_errors() {
    let cases: &[(&'static [ReferenceText], &[&str])] = &[
        (
            const { &[ReferenceText::new("## gone\n\n[x](#y)\n")] },
            &["limit: gone: has a text, but no row"],
        ),
        (
            const { &[ReferenceText::new("## limit\n\n`zone=`\n")] },
            &[
                "limit: limit: has a text that does not explain \"burst=\"",
                "limit: limit: has a text without an example, or a link to a section with one",
            ],
        ),
        (
            const {
                &[ReferenceText::new(
                    "## limit_delay\n[x](#y)\n## limit_delay\n",
                )]
            },
            &["limit: limit_delay: has two texts"],
        ),
        (
            const {
                &[ReferenceText::shared(
                    "## P_gone\n\n[x](#y)\n",
                    &[("P", "limit")],
                )]
            },
            &["shared: P_gone: has a text, but no row in any family"],
        ),
    ];
    for (texts, problems) in cases {
        let found = reference(&[family("limit", LIMIT, texts)]);
        assert_eq!(found.problems(), *problems);
    }
}

#[test]
fn errors_in_a_table_are_reported() {
    const BAD: &[Row] = &[
        row(
            "twice",
            &[Context::Main, Context::Http],
            ONE,
            Value::Text,
            "",
        ),
        row("twice", &[Context::Http], ONE, Value::Text, ""),
        row("nowhere", &[], ONE, Value::Text, ""),
        row("size", &[Context::Main], ONE, Value::Size, "1x"),
        row("empty", &[Context::Main], NONE, Value::Flag, ""),
        row("mail", &[Context::Main], ONE, Value::Text, ""),
        Row {
            summary: "",
            ..own(row("mute", &[Context::Main], NONE, Value::Custom, ""))
        },
        Row {
            syntax: "",
            ..row("bare", &[Context::Main], ONE, Value::Custom, "")
        },
        row("block", &[Context::Main], NONE, Value::Entries, "x"),
        Row {
            syntax: "{ ... }",
            ..row("braces", &[Context::Main], NONE, Value::Entries, "")
        },
    ];
    let expected = [
        "bad: twice: has two rows in context http",
        "bad: nowhere: has no context in which it could be written",
        "bad: size: its default does not parse: \"size\" directive invalid value",
        "bad: empty: needs 1 arguments for its type, but may be written with fewer",
        "bad: mail: has a row, but is listed as not supported yet",
        "bad: mute: has no summary that ends with a full stop",
        "bad: bare: takes arguments, but has no syntax",
        "bad: block: is a block, which has no default",
        "bad: braces: shows braces, which a block has anyway",
    ];
    assert_eq!(
        Registry::new(&[("bad", BAD)], &["mail"]).problems(),
        expected
    );
    assert_eq!(registry().problems(), Vec::<String>::new());
}
