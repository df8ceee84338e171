//! Rows of the headers family.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

use super::plan;

const EVERYWHERE: &[Context] = &[
    Context::Http,
    Context::Server,
    Context::Location,
    Context::IfInLocation,
];

const PLAIN: Row = Row {
    contexts: EVERYWHERE,
    ..Row::PLAIN
};

/// The family's directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "expires",
        value: Value::Checked(plan::check_expires),
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "[modified] time | @time | epoch | max | off",
        default: "off",
        summary: "Adds Expires and Cache-Control to responses that are no errors.",
        ..PLAIN
    },
    Row {
        name: "add_header",
        value: Value::Checked(plan::check_field),
        variables: Some(1),
        arguments: Arguments::between(2, 3),
        repeat: Repeat::Many,
        syntax: "name value [always]",
        summary: "Adds a field to responses that are no errors, or (`always`) to all. Those of \
            outer levels hold only where none is given. Differs from nginx: a field whose value \
            holds a control character is left out, and the error log says so.",
        ..PLAIN
    },
    Row {
        name: "add_header_inherit",
        value: Value::OneOf(&["on", "off", "merge"]),
        syntax: "on | off | merge",
        default: "on",
        summary: "Whether fields of outer levels hold where none is given (`on`), never (`off`), \
            or beside those that are given (`merge`).",
        ..PLAIN
    },
    Row {
        name: "add_trailer",
        value: Value::Checked(plan::check_field),
        variables: Some(1),
        arguments: Arguments::between(2, 3),
        repeat: Repeat::Many,
        syntax: "name value [always]",
        summary: "Adds a field behind the body of responses that are no errors, or (`always`) of \
            all. HTTP/1.1 only, and the body is sent in chunks then. Those of outer levels hold \
            only where none is given.",
        ..PLAIN
    },
    Row {
        name: "add_trailer_inherit",
        value: Value::OneOf(&["on", "off", "merge"]),
        syntax: "on | off | merge",
        default: "on",
        summary: "Whether trailers of outer levels hold where none is given (`on`), never \
            (`off`), or beside those that are given (`merge`).",
        ..PLAIN
    },
];
