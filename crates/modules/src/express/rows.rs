//! Rows of the express lane.

use turnpike_conf::{Arguments, Context, Row, Value};

const PLAIN: Row = Row::PLAIN;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "express",
        value: Value::OneOf(&["on", "off", "auto"]),
        syntax: "on | off | auto",
        default: "off",
        summary: "Answers requests in the network driver, by an XDP program, if the answer is \
            small and the same for every client. `auto` does so for answers that are requested \
            more often than `express_min_rate`. It needs `express_interface`, root and Linux 6.9. \
            If it cannot be used, the log has the reason and the lanes answer. See \
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
                  which works with every interface (`generic`). `auto` uses the driver if \
                  possible, and never that of veth.",
        ..PLAIN
    },
    Row {
        name: "express_objects",
        contexts: &[Context::Http],
        value: Value::Number,
        syntax: "number",
        default: "1024",
        summary: "How many answers the express lane holds, of 2 KB each; rounded up to a power of \
                  two, and at most 4096. A change takes effect when the server is restarted.",
        ..PLAIN
    },
    Row {
        name: "express_memory",
        contexts: &[Context::Http],
        value: Value::Size,
        syntax: "size",
        summary: "The most memory that the answers of the express lane take: between 8k and 8m. \
            Each answer takes 2 KB. Without `express_objects` there are as many answers as fit, \
            else the configuration is refused if they need more. If the memory is full, the answer \
            that would expire first makes room. A change takes effect when the server is \
            restarted.",
        ..PLAIN
    },
    Row {
        name: "express_min_rate",
        syntax: "rate",
        default: "10r/s",
        summary: "The rate of requests above which `express auto` lets the driver send an answer: \
                  `Nr/s` or `Nr/m`.",
        ..PLAIN
    },
    Row {
        name: "express_close",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Also answers clients that want to keep their connection open. The connection is \
                  then closed. By default the driver answers only requests that end the \
                  connection.",
        ..PLAIN
    },
    Row {
        name: "express_log",
        syntax: "off | sample=1/number",
        default: "off",
        summary: "Writes a line of the location's access logs for one of so many requests that the \
            driver answers, chosen at random: 1 to 100000. At most 200 lines per second and CPU \
            are written. `$express_sample` has the number. With `off` these requests are only \
            counted.",
        ..PLAIN
    },
    Row {
        name: "express_syn",
        contexts: &[Context::Http],
        value: Value::OneOf(&["on", "auto"]),
        syntax: "on | auto",
        default: "on",
        summary: "Whether the driver answers connection attempts (SYN) at the ports of the express \
            lane. With `auto` it stops for ten seconds when fewer than half of the connections \
            that it began were answered there.",
        ..PLAIN
    },
    Row {
        name: "express_drop",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Drops, in the network driver, all packets of clients that were refused too often \
            in this location because of their address: by `deny`, or by `limit_req` or \
            `limit_conn` with `$binary_remote_addr` or `$remote_addr` as the key. Clients behind a \
            proxy that `set_real_ip_from` trusts are not dropped.",
        ..PLAIN
    },
    Row {
        name: "express_drop_after",
        value: Value::Number,
        syntax: "number",
        default: "100",
        summary: "The number of refusals within a second after which `express_drop` drops a \
            client: 1 to 65535.",
        ..PLAIN
    },
    Row {
        name: "express_drop_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "10s",
        summary: "How long a client is dropped. A reload ends all drops.",
        ..PLAIN
    },
    Row {
        name: "express_allow",
        contexts: &[Context::Http],
        arguments: Arguments::between(1, 64),
        syntax: "address | CIDR ...",
        summary: "Clients that `express_drop` never drops.",
        ..PLAIN
    },
];
