//! Rows of the express lane.

use turnpike_conf::{Arguments, Context, Row, Value};

const PLAIN: Row = Row::PLAIN;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "express",
        value: Value::OneOf(&["on", "off", "auto"]),
        syntax: "on | off | auto",
        default: "off",
        summary: "Answers requests in the network driver, by an XDP program, where an answer is \
            small and the same for every client. `auto` does so for answers that are asked for \
            more often than `express_min_rate`. It needs `express_interface`, root and Linux 6.9; \
            where it cannot work, the log says why, and the lanes answer as ever. See \
            docs/express.md.",
        ..PLAIN
    },
    Row {
        name: "express_interface",
        contexts: &[Context::Http],
        arguments: Arguments::between(1, 16),
        syntax: "name ...",
        summary: "The network interfaces whose requests the express lane answers.",
        ..PLAIN
    },
    Row {
        name: "express_mode",
        contexts: &[Context::Http],
        value: Value::OneOf(&["auto", "native", "generic"]),
        syntax: "auto | native | generic",
        default: "auto",
        summary: "Where the express lane's program runs: in the driver (`native`), or behind it, \
            which every interface can (`generic`). `auto` takes the driver where it can.",
        ..PLAIN
    },
    Row {
        name: "express_objects",
        contexts: &[Context::Http],
        value: Value::Number,
        syntax: "number",
        default: "1024",
        summary: "How many answers the express lane holds, of 2 KB each; rounded up to a power of \
            two, and at most 4096. A change takes effect when the server is started anew.",
        ..PLAIN
    },
    Row {
        name: "express_min_rate",
        syntax: "rate",
        default: "10r/s",
        summary: "The rate of requests from which on `express auto` has an answer sent by the \
            driver: `Nr/s` or `Nr/m`.",
        ..PLAIN
    },
    Row {
        name: "express_close",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Answers clients too that would keep their connection, and closes it. Else only \
            requests are answered in the driver that end the connection.",
        ..PLAIN
    },
];
