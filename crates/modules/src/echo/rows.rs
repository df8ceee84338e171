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
        summary: "Answers with these strings, a space between them and a line feed behind them \
            unless `-n` is given, as in the module echo. All commands of the family in a location \
            are carried out in their order.",
        ..COMMAND
    },
    Row {
        name: "echo_duplicate",
        arguments: Arguments::exactly(2),
        variables: Some(0),
        syntax: "count string",
        summary: "Answers with so many copies of a string. Differs from the module echo: at most \
            100000000 bytes.",
        ..COMMAND
    },
    Row {
        name: "echo_flush",
        summary: "Sends what has been written so far before what follows is carried out.",
        ..COMMAND
    },
    Row {
        name: "echo_sleep",
        arguments: Arguments::exactly(1),
        variables: Some(0),
        syntax: "seconds",
        summary: "Waits before what follows, for at most an hour.",
        ..COMMAND
    },
    Row {
        name: "echo_location",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query]",
        summary: "Answers with what a path of this server answers. Such paths may name others down \
            to 50 levels, and a request has at most 1024 of them in all; beyond that an error is \
            logged and the answer is broken off.",
        ..COMMAND
    },
    Row {
        name: "echo_location_async",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query]",
        summary: "The same as `echo_location`: differs from the module echo, where such paths are \
            asked at the same time.",
        ..COMMAND
    },
    Row {
        name: "echo_read_request_body",
        summary: "Reads the request's body, so that `$request_body` and `$echo_request_body` have \
            it.",
        ..COMMAND
    },
    Row {
        name: "echo_request_body",
        summary: "Answers with the request's body, if it was read and is in memory.",
        ..COMMAND
    },
    Row {
        name: "echo_exec",
        arguments: Arguments::between(1, 2),
        variables: Some(0),
        syntax: "path [query] | @name",
        summary: "Has another location answer. Other commands of the location have no effect.",
        ..COMMAND
    },
    Row {
        name: "echo_status",
        contexts: &[Context::Location, Context::IfInLocation],
        value: Value::Number,
        syntax: "code",
        default: "200",
        summary: "The status of the answer that the commands make.",
        ..Row::PLAIN
    },
    Row {
        name: "echo_before_body",
        arguments: Arguments::at_least(0),
        variables: Some(0),
        syntax: "[-n] [--] string ...",
        summary: "Puts strings before the body of the response.",
        ..COMMAND
    },
    Row {
        name: "echo_after_body",
        arguments: Arguments::at_least(0),
        variables: Some(0),
        syntax: "[-n] [--] string ...",
        summary: "Puts strings behind the body of the response.",
        ..COMMAND
    },
];
