//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use crate::common::file_access;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "create_full_put_path",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Creates the missing parent folders of a file that PUT creates.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_access",
        arguments: Arguments::between(1, 3),
        value: Value::Checked(file_access::check_access),
        syntax: "users:permissions ...",
        default: "user:rw",
        summary: "Who may read (`r`) or read and write (`rw`) the files and folders that PUT and \
            MKCOL create: `user`, `group`, `all`.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_ext_lock",
        arguments: Arguments::exactly(1),
        value: Value::Custom,
        syntax: "zone=name",
        summary: "The zone that holds the locks of LOCK, as in the module dav_ext. Requests that \
            change files respect these locks. Locks are exclusive write locks.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_ext_lock_zone",
        contexts: &[Context::Http],
        arguments: Arguments::between(1, 2),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "zone=name:size [timeout=time]",
        summary: "Declares a zone for locks, and the time after which a lock expires unless it is \
            refreshed: a minute by default. When the zone is full, LOCK is answered with 507. \
            One client (an IPv4 address, or an IPv6 network of 64 bits) may fill a quarter of it. \
            Use realip where clients come through a proxy.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_ext_methods",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["off", "propfind", "options", "lock", "unlock"]),
        syntax: "off | method ...",
        default: "off",
        summary: "Allows PROPFIND, OPTIONS, LOCK and UNLOCK, as in the module dav_ext. Differs \
            from it: PROPFIND with `Depth: infinity` is answered with 403, a folder with more than \
            20000 entries or an answer of more than 32 MB with 507, and a body has at most 16 KB.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_methods",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["off", "put", "delete", "mkcol", "copy", "move"]),
        syntax: "off | method ...",
        default: "off",
        summary: "Allows PUT, DELETE, MKCOL, COPY and MOVE of files. File operations run outside \
            the lanes. Differs from nginx: symbolic links in a folder are copied and removed as \
            links, a folder cannot be copied into itself, and a tree has at most 100000 entries. \
            If-Match, If-None-Match and If-Unmodified-Since hold for these methods as for GET \
            (RFC 9110 section 13), and so does If (RFC 4918 section 10.4): where a condition is \
            false, the answer is 412 and nothing is changed. nginx ignores them. \
            Only regular files are copied and moved: others give 403. `disable_symlinks` holds for \
            all methods. Together with PUT, all request bodies are written to files first.",
        ..Row::PLAIN
    },
    Row {
        name: "min_delete_depth",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "Allows DELETE only of paths with at least this many elements.",
        ..Row::PLAIN
    },
];
