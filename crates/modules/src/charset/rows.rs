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
        summary: "Says in the Content-Type of texts that they are in this character set; converts \
            them to it where `source_charset` is another.",
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
        summary: "How one character set is converted to another and back: lines of a byte of the \
            first and its counterpart in the second, both hexadecimal. `utf-8` can only be the \
            second, with one to three bytes. What is not in the map becomes a question mark, or \
            `&#N;` where it comes from utf-8.",
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
        summary: "Types that `charset` is for, besides text/html; `*` is any.",
        ..PLAIN
    },
    Row {
        name: "override_charset",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether a response whose Content-Type names a character set is converted from \
            that to `charset`; it is left alone otherwise.",
        ..PLAIN
    },
    Row {
        name: "source_charset",
        syntax: "charset",
        summary: "The character set that texts are in before they are converted.",
        ..PLAIN
    },
];
