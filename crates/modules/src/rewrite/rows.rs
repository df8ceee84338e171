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

/// A directive of the module set_misc, with at least and at most so many arguments. At the http
/// level the module takes it and never runs it.
const fn function(
    name: &'static str,
    least: u16,
    most: u16,
    syntax: &'static str,
    summary: &'static str,
) -> Row {
    Row {
        name,
        arguments: Arguments::between(least, most),
        contexts: EVERYWHERE,
        variables: Some(1),
        syntax,
        summary,
        ..STEP
    }
}

/// One whose text is the variable's own value, if none is given.
const fn of_text(name: &'static str, summary: &'static str) -> Row {
    function(name, 1, 2, "$variable [text]", summary)
}

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
            and 499 close the connection without a response. Differs from nginx: control \
            characters in a redirect are percent-encoded.",
        ..STEP
    },
    Row {
        name: "goto",
        arguments: Arguments::exactly(1),
        syntax: "@name",
        summary: "Stops rewriting, and continues in a named location of the server, with the same \
            path and query. As in Angie.",
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
    function(
        "set_if_empty",
        2,
        2,
        "$variable value",
        "Stores a value in a variable that is empty, as in the module set_misc.",
    ),
    of_text(
        "set_escape_uri",
        "Stores a text escaped as a component of a URI (as in set_misc).",
    ),
    of_text(
        "set_unescape_uri",
        "Stores the text after decoding its URI escapes (as in set_misc).",
    ),
    of_text(
        "set_quote_json_str",
        "Stores a text as a JSON string, an empty text as `null` (as in set_misc).",
    ),
    of_text(
        "set_quote_sql_str",
        "Stores a text as a MySQL string (as in set_misc).",
    ),
    of_text(
        "set_quote_pgsql_str",
        "Stores a text as a PostgreSQL string (as in set_misc).",
    ),
    of_text(
        "set_encode_base32",
        "Stores a text in base32 (as in set_misc).",
    ),
    of_text(
        "set_decode_base32",
        "Stores the bytes of a base32 text, or nothing if it is not valid (as in set_misc).",
    ),
    Row {
        name: "set_base32_alphabet",
        value: Value::Text,
        repeat: Repeat::Once,
        syntax: "alphabet",
        default: "0123456789abcdefghijklmnopqrstuv",
        summary: "The 32 digits of `set_encode_base32` and `set_decode_base32` (as in set_misc).",
        ..FLAG
    },
    Row {
        name: "set_base32_padding",
        default: "on",
        summary: "Whether `set_encode_base32` pads with `=` (as in set_misc).",
        ..FLAG
    },
    Row {
        name: "set_misc_base32_padding",
        default: "on",
        summary: "The older name of `set_base32_padding` (as in set_misc).",
        ..FLAG
    },
    function(
        "set_rotate",
        3,
        3,
        "$variable from to",
        "Stores the next number of a range, both ends included, counted for all lanes (as in \
         set_misc).",
    ),
    function(
        "set_hashed_upstream",
        3,
        3,
        "$variable list text",
        "Stores a name of an `upstream_list`, always the same for one text, ignoring case (as in \
         set_misc).",
    ),
    Row {
        name: "upstream_list",
        contexts: &[Context::Http, Context::Server],
        arguments: Arguments::at_least(2),
        syntax: "list [weight:]name ...",
        summary: "Names upstream servers for `set_hashed_upstream`; a weight is the number of \
            times that a name is in the list (as in the module ngx_devel_kit).",
        ..STEP
    },
    function(
        "set_local_today",
        1,
        1,
        "$variable",
        "Stores the local day as `2026-01-31` (as in set_misc).",
    ),
    function(
        "set_formatted_gmt_time",
        2,
        2,
        "$variable format",
        "Stores the time in GMT, in a format of strftime(3) (as in set_misc).",
    ),
    function(
        "set_formatted_local_time",
        2,
        2,
        "$variable format",
        "Stores the local time, in a format of strftime(3) (as in set_misc).",
    ),
    of_text(
        "set_encode_base64",
        "Stores a text in base64 (as in set_misc).",
    ),
    of_text(
        "set_decode_base64",
        "Stores the bytes of a base64 text, or nothing if it is not valid (as in set_misc).",
    ),
    of_text(
        "set_encode_base64url",
        "Stores a text in base64 for URIs, without padding (as in set_misc).",
    ),
    of_text(
        "set_decode_base64url",
        "Stores the bytes of a base64 text for URIs (as in set_misc).",
    ),
    of_text(
        "set_encode_hex",
        "Stores a text in hexadecimal (as in set_misc).",
    ),
    of_text(
        "set_decode_hex",
        "Stores the bytes of a hexadecimal text, or nothing if it is not valid (as in set_misc).",
    ),
    of_text(
        "set_md5",
        "Stores the MD5 hash of a text in hexadecimal (as in set_misc).",
    ),
    of_text(
        "set_sha1",
        "Stores the SHA-1 hash of a text in hexadecimal (as in set_misc).",
    ),
    function(
        "set_hmac_sha1",
        3,
        3,
        "$variable secret text",
        "Stores the bytes of an HMAC with SHA-1 (as in set_misc).",
    ),
    function(
        "set_hmac_sha256",
        3,
        3,
        "$variable secret text",
        "Stores the bytes of an HMAC with SHA-256 (as in set_misc).",
    ),
    function(
        "set_random",
        3,
        3,
        "$variable from to",
        "Stores a random number of a range, both ends included (as in set_misc).",
    ),
    function(
        "set_secure_random_alphanum",
        2,
        2,
        "$variable length",
        "Stores random letters and digits, at most 64, that nobody can guess (as in set_misc).",
    ),
    function(
        "set_secure_random_lcalpha",
        2,
        2,
        "$variable length",
        "Stores random lower-case letters, at most 64, that nobody can guess (as in set_misc).",
    ),
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
