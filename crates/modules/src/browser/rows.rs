//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

use super::plan::check_modern;

const VALUE: Row = Row {
    value: Value::Text,
    syntax: "string",
    default: "1",
    ..Row::PLAIN
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "ancient_browser",
        arguments: Arguments::at_least(1),
        value: Value::Text,
        repeat: Repeat::Many,
        syntax: "string ...",
        summary: "Browsers whose User-Agent has one of these texts are ancient; `netscape4` stands \
            for `Mozilla/` with a version from 1 to 4.",
        ..Row::PLAIN
    },
    Row {
        name: "ancient_browser_value",
        summary: "What `$ancient_browser` says of ancient browsers.",
        ..VALUE
    },
    Row {
        name: "modern_browser",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(check_modern),
        repeat: Repeat::Many,
        syntax: "browser version | unlisted",
        summary: "From which version on a browser is modern: `msie`, `gecko`, `opera`, `safari` or \
            `konqueror`. `unlisted`: so is one that no directive names.",
        ..Row::PLAIN
    },
    Row {
        name: "modern_browser_value",
        summary: "What `$modern_browser` says of modern browsers.",
        ..VALUE
    },
];
