//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "mp4",
        contexts: &[Context::Location],
        arguments: Arguments::none(),
        repeat: Repeat::Many,
        merge: Merge::Own,
        summary: "Sends a part of an MP4 file with its own index. The part is given by the query \
                  arguments `start` and `end`, in seconds. Without them the whole file is sent.",
        ..Row::PLAIN
    },
    Row {
        name: "mp4_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "512k",
        summary: "Checked, but without effect: the index of a file is always read as a whole.",
        ..Row::PLAIN
    },
    Row {
        name: "mp4_max_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "10m",
        summary: "The largest index that an MP4 file may have, in bytes. A request for a part of a \
            file with a larger index gets 500.",
        ..Row::PLAIN
    },
    Row {
        name: "mp4_start_key_frame",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Makes a part begin with the last key frame before its start. The frames before \
                  the start are marked, so that players do not show them.",
        ..Row::PLAIN
    },
];
