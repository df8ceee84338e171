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
        summary: "Adds Expires and Cache-Control to responses that are not errors.",
        ..PLAIN
    },
    Row {
        name: "add_header",
        value: Value::Checked(plan::check_field),
        variables: Some(1),
        arguments: Arguments::between(2, 3),
        repeat: Repeat::Many,
        syntax: "name value [always]",
        summary: "Adds a field to responses that are not errors, or with `always` to all \
            responses. Fields of outer levels apply only to levels without `add_header`. Differs \
            from nginx: a field whose value contains a control character is left out, and an error \
            is logged.",
        ..PLAIN
    },
    Row {
        name: "add_header_inherit",
        value: Value::OneOf(&["on", "off", "merge"]),
        syntax: "on | off | merge",
        default: "on",
        summary: "Whether fields of outer levels apply to levels without `add_header` (`on`), \
            never apply (`off`), or apply in addition to the level's own fields (`merge`).",
        ..PLAIN
    },
    Row {
        name: "add_trailer",
        value: Value::Checked(plan::check_field),
        variables: Some(1),
        arguments: Arguments::between(2, 3),
        repeat: Repeat::Many,
        syntax: "name value [always]",
        summary: "Adds a trailer field after the body of responses that are not errors, or with \
            `always` of all responses. It works only with HTTP/1.1, and the body is then sent in \
            chunks. Trailers of outer levels apply only to levels without `add_trailer`.",
        ..PLAIN
    },
    Row {
        name: "add_trailer_inherit",
        value: Value::OneOf(&["on", "off", "merge"]),
        syntax: "on | off | merge",
        default: "on",
        summary: "Whether trailers of outer levels apply to levels without `add_trailer` (`on`), \
            never apply (`off`), or apply in addition to the level's own trailers (`merge`).",
        ..PLAIN
    },
];
