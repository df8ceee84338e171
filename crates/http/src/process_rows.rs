//! Rows of the process's own families, as far as a plan cannot do without them: for plans that are
//! built without a process around them, in tests and by the simulator.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

/// What the process's families have and a plan cannot do without.
pub const PROCESS_ROWS: &[Row] = &[
    row("events", &[Context::Main], Value::Block(Context::Events)),
    row("worker_connections", &[Context::Events], Value::Number),
    row("multi_accept", &[Context::Events], Value::Flag),
    row("accept_mutex", &[Context::Events], Value::Flag),
    row(
        "accept_mutex_delay",
        &[Context::Events],
        Value::Milliseconds,
    ),
    row("reuse_port", &[Context::Events], Value::Flag),
    Row {
        repeat: Repeat::Many,
        ..row("debug_connection", &[Context::Events], Value::Custom)
    },
    row("error_log", &[Context::Http], Value::Custom),
];

const fn row(name: &'static str, contexts: &'static [Context], value: Value) -> Row {
    Row {
        name,
        contexts,
        arguments: match value {
            Value::Block(_) => Arguments::none(),
            _ => Arguments::at_least(1),
        },
        value,
        default: match value {
            Value::Flag => "off",
            Value::Number => "512",
            Value::Milliseconds => "500ms",
            _ => "",
        },
        ..Row::PLAIN
    }
}
