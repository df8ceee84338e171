//! Tests of the reference's format, and of errors in a table.

use super::{NONE, ONE, own, registry, row};
use crate::reference::reference;
use crate::registry::{Context, Registry, Row, Value};

#[test]
fn the_reference_shows_every_row() {
    let text = reference(&registry());
    let expected = [
        "# Directives\n\n",
        "\n## core\n\n### worker_processes\n\n- Syntax: `worker_processes it;`\n\
         - Default: `worker_processes 1;`\n- Context: main\n\nDoes it.\n",
        "\n### server (upstream)\n\n- Syntax: `server it;`\n- Default: none\n- Context: upstream\n",
        "\n### location\n\n- Syntax: `location it { ... }`\n- Default: none\n\
         - Context: server, location\n",
    ];
    for part in expected {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        registry()
            .rows()
            .all(|(_, row)| text.contains(&format!("### {}", row.name)))
    );
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
