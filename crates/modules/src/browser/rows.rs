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
        summary: "Treats browsers as ancient if their User-Agent contains one of these texts. \
            `netscape4` stands for `Mozilla/` with a version from 1 to 4.",
        ..Row::PLAIN
    },
    Row {
        name: "ancient_browser_value",
        summary: "The value of `$ancient_browser` for ancient browsers.",
        ..VALUE
    },
    Row {
        name: "modern_browser",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(check_modern),
        repeat: Repeat::Many,
        syntax: "browser version | unlisted",
        summary: "The first version of a browser that is modern. The browser is `msie`, `gecko`, \
            `opera`, `safari` or `konqueror`. With `unlisted`, browsers that no directive names \
            are modern too.",
        ..Row::PLAIN
    },
    Row {
        name: "modern_browser_value",
        summary: "The value of `$modern_browser` for modern browsers.",
        ..VALUE
    },
];
