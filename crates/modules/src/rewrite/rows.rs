//! Rows of the rewrite family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const SERVER: &[Context] = &[Context::Server];
const LOCATION: &[Context] = &[Context::Location];
const PROGRAM: &[Context] = &[
    Context::Server,
    Context::IfInServer,
    Context::Location,
    Context::IfInLocation,
];
const EVERYWHERE: &[Context] = &[
    Context::Http,
    Context::Server,
    Context::IfInServer,
    Context::Location,
    Context::IfInLocation,
];

/// A step of a program: written as often as wanted, and never inherited.
const STEP: Row = Row {
    contexts: PROGRAM,
    arguments: Arguments::none(),
    repeat: Repeat::Many,
    merge: Merge::Own,
    ..Row::PLAIN
};

/// A flag of the program's surroundings.
const FLAG: Row = Row {
    contexts: EVERYWHERE,
    arguments: Arguments::exactly(1),
    value: Value::Flag,
    repeat: Repeat::Once,
    merge: Merge::Nearest,
    syntax: "on | off",
    ..STEP
};

const IF: Row = Row {
    name: "if",
    arguments: Arguments::at_least(1),
    syntax: "(condition)",
    ..STEP
};

/// The family's directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "rewrite",
        variables: Some(1),
        arguments: Arguments::between(2, 3),
        syntax: "regex replacement [last | break | redirect | permanent]",
        summary: "Replaces a path that matches the regular expression. The query is kept unless \
            the replacement ends with a question mark. If the regular expression reaches its \
            limits without a result, the answer is 500.",
        ..STEP
    },
    Row {
        name: "return",
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "code [text] | code URL | URL",
        summary: "Stops rewriting and returns a response: a status, a text or a redirect. 444 \
            closes the connection without a response. Differs from nginx: control characters in a \
            redirect are percent-encoded.",
        ..STEP
    },
    Row {
        name: "break",
        summary: "Stops rewriting. A rewritten path stays in the current location.",
        ..STEP
    },
    Row {
        contexts: SERVER,
        value: Value::Block(Context::IfInServer),
        summary: "Runs the directives in the block if the condition is true.",
        ..IF
    },
    Row {
        contexts: LOCATION,
        value: Value::Block(Context::IfInLocation),
        summary: "Runs the rewrite directives in the block if the condition is true, and applies \
            its other directives.",
        ..IF
    },
    Row {
        name: "set",
        variables: Some(1),
        arguments: Arguments::exactly(2),
        syntax: "$variable value",
        summary: "Stores a value in a variable.",
        ..STEP
    },
    Row {
        name: "rewrite_log",
        default: "off",
        summary: "Logs each step of rewriting to the error log, at level notice.",
        ..FLAG
    },
    Row {
        name: "uninitialized_variable_warn",
        default: "on",
        summary: "Logs the use of uninitialized variables to the error log.",
        ..FLAG
    },
];
