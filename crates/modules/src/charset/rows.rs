//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const PLAIN: Row = Row {
    name: "",
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::IfInLocation,
    ],
    arguments: Arguments::exactly(1),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Nearest,
    variables: None,
    syntax: "",
    default: "",
    summary: "",
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "charset",
        syntax: "charset | off",
        default: "off",
        summary: "Adds this character set to the Content-Type of text responses. The text is \
            converted to it if `source_charset` names another one.",
        ..PLAIN
    },
    Row {
        name: "charset_map",
        contexts: &[Context::Http],
        arguments: Arguments::exactly(2),
        value: Value::Entries,
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "charset1 charset2",
        summary: "The conversion from one character set to another and back. Each line has a byte \
            of the first set and its counterpart in the second set, both in hexadecimal. `utf-8` \
            can only be the second set, with one to three bytes. A character that is not in the \
            map becomes a question mark, or `&#N;` when the source is utf-8.",
        ..PLAIN
    },
    Row {
        name: "charset_types",
        contexts: &[Context::Http, Context::Server, Context::Location],
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html text/xml text/plain text/vnd.wap.wml application/javascript \
            application/rss+xml",
        summary: "The content types to which `charset` applies, besides text/html. `*` means any \
            type.",
        ..PLAIN
    },
    Row {
        name: "override_charset",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether a response is converted to `charset` if its Content-Type already names a \
            character set. With `off`, such a response is not changed.",
        ..PLAIN
    },
    Row {
        name: "source_charset",
        syntax: "charset",
        summary: "The character set of the original text.",
        ..PLAIN
    },
];
