//! Plans without a process around them: the directives that the process's own families have, and
//! all others.

use std::path::Path;

use turnpike_conf::{Arguments, Context, MemoryLoader, Registry, Row, Value, View};
use turnpike_http::plan::{Environment, Plan};
use turnpike_modules::FAMILIES;

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

/// What a plan cannot do without.
const PROCESS_ROWS: &[Row] = &[
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
    row("error_log", &[Context::Http], Value::Custom),
];

/// All directives.
pub(crate) fn registry() -> Registry {
    let own = [
        ("process", PROCESS_ROWS),
        ("http", turnpike_http::settings::ROWS),
    ];
    let families = FAMILIES.iter();
    let families = families.map(|family| (family.name(), family.rows()));
    let rows: Vec<_> = own.into_iter().chain(families).collect();
    Registry::new(&rows, &[])
}

/// The plan of a configuration.
///
/// # Errors
/// Every error as nginx words it.
pub(crate) fn build(
    registry: &Registry,
    text: &str,
    environment: &mut dyn Environment,
) -> Result<Plan, String> {
    let path = Path::new("/configuration").to_path_buf();
    let loader: MemoryLoader = [(path.clone(), text.as_bytes().to_vec())]
        .into_iter()
        .collect();
    let (_, scope) = registry
        .load(&loader, &path, None)
        .map_err(|errors| errors.to_string())?;
    Plan::build(View::root(&scope), 1, FAMILIES, environment).map_err(|errors| errors.to_string())
}
