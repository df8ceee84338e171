//! Plans without a process: with the directives of the process's own families, and all others.

use std::path::Path;
use std::sync::Arc;

use turnpike_conf::{MemoryLoader, Registry, View};
use turnpike_http::process_rows::PROCESS_ROWS;
use turnpike_modules::{FAMILIES, STREAM_FAMILIES};
use turnpike_plan::environment::Environment;
use turnpike_protocols::Plans;

/// All directives.
pub(crate) fn registry() -> Registry {
    let own = [
        ("process", PROCESS_ROWS),
        ("http", turnpike_http::settings::ROWS),
    ];
    let families = FAMILIES.iter();
    let families = families.map(|family| (family.name, family.rows));
    let of_stream = STREAM_FAMILIES.iter();
    let of_stream = of_stream.map(|family| (family.name, family.rows));
    let core = [("stream", turnpike_stream::rows::ROWS)];
    let rows: Vec<_> = own
        .into_iter()
        .chain(families)
        .chain(core)
        .chain(of_stream)
        .collect();
    Registry::new(&rows, &[])
}

/// The plans of a configuration.
///
/// # Errors
/// All errors, in nginx's format.
pub(crate) fn build(
    registry: &Registry,
    text: &str,
    generation: u64,
    environment: &mut dyn Environment,
) -> Result<Plans, String> {
    let path = Path::new("/configuration").to_path_buf();
    let loader: MemoryLoader = [(path.clone(), text.as_bytes().to_vec())]
        .into_iter()
        .collect();
    let (_, scope) = registry
        .load(&loader, &path, None)
        .map_err(|errors| errors.to_string())?;
    let root = View::root(&scope);
    let http = turnpike_http::plan::Plan::build(root, generation, FAMILIES, environment);
    let http = http.map_err(|errors| errors.to_string())?;
    let accept = turnpike_stream::plan::Accept::default();
    let families = STREAM_FAMILIES;
    let stream =
        turnpike_stream::plan::Plan::build(root, generation, families, environment, accept);
    let stream = stream.map_err(|errors| errors.to_string())?;
    Ok(Plans {
        generation,
        http: Arc::new(http),
        stream: Arc::new(stream),
    })
}
