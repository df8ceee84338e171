//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

/// A command of a location: it may stand there many times.
const COMMAND: Row = Row {
    contexts: &[Context::Location, Context::IfInLocation],
    arguments: Arguments::none(),
    repeat: Repeat::Many,
    merge: Merge::Own,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "echo",
        arguments: Arguments::at_least(0),
        variables: Some(0),
        syntax: "[-n] [--] string ...",
        summary: "Sends these strings with spaces between them, as in the module echo. A line feed \
            follows unless `-n` is given. The echo commands of a location run in the order in \
            which they are written.",
        ..COMMAND
    },
    Row {
        name: "echo_duplicate",
        arguments: Arguments::exactly(2),
        variables: Some(0),
        syntax: "count string",
        summary: "Sends a string the given number of times. Differs from the module echo: at most \
            100000000 bytes.",
        ..COMMAND
    },
    Row {
        name: "echo_flush",
        summary: "Sends the output so far before the next command runs.",
        ..COMMAND
    },
    Row {
        name: "echo_sleep",
        arguments: Arguments::exactly(1),
        variables: Some(0),
        syntax: "seconds",
        summary: "Waits before the next command runs, for at most an hour.",
        ..COMMAND
    },
    Row {
        name: "echo_location",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query]",
        summary: "Inserts the response of another path on this server. Such responses may insert \
            others, up to 50 levels deep, and a request may have at most 1024 of them. Beyond \
            that, or if the path contains `..` or does not begin with a slash, an error is logged \
            and the response is cut off.",
        ..COMMAND
    },
    Row {
        name: "echo_location_async",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query]",
        summary: "The same as `echo_location`. Differs from the module echo: the paths are \
            requested one after another, not at the same time.",
        ..COMMAND
    },
    Row {
        name: "echo_read_request_body",
        summary: "Reads the request body, so that `$request_body` and `$echo_request_body` contain \
            it.",
        ..COMMAND
    },
    Row {
        name: "echo_request_body",
        summary: "Sends the request body, if it was read and is in memory.",
        ..COMMAND
    },
    Row {
        name: "echo_exec",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query] | @name",
        summary: "Continues the request in another location. The other commands of this location \
            have no effect. The response is 500 if the path contains `..` or does not begin with \
            a slash.",
        ..COMMAND
    },
    Row {
        name: "echo_status",
        contexts: &[Context::Location, Context::IfInLocation],
        value: Value::Number,
        syntax: "code",
        default: "200",
        summary: "The status of the response that the commands create.",
        ..Row::PLAIN
    },
    Row {
        name: "echo_before_body",
        arguments: Arguments::at_least(0),
        variables: Some(0),
        syntax: "[-n] [--] string ...",
        summary: "Adds strings before the body of the response.",
        ..COMMAND
    },
    Row {
        name: "echo_after_body",
        arguments: Arguments::at_least(0),
        variables: Some(0),
        syntax: "[-n] [--] string ...",
        summary: "Adds strings after the body of the response.",
        ..COMMAND
    },
];
