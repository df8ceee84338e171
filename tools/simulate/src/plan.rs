//! Plans without a process: with the directives of the process's own families, and all others.

use std::path::Path;

use turnpike_conf::{MemoryLoader, Registry, View};
use turnpike_http::plan::{Environment, Plan};
use turnpike_http::process_rows::PROCESS_ROWS;
use turnpike_modules::FAMILIES;

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
/// All errors, in nginx's format.
pub(crate) fn build(
    registry: &Registry,
    text: &str,
    generation: u64,
    environment: &mut dyn Environment,
) -> Result<Plan, String> {
    let path = Path::new("/configuration").to_path_buf();
    let loader: MemoryLoader = [(path.clone(), text.as_bytes().to_vec())]
        .into_iter()
        .collect();
    let (_, scope) = registry
        .load(&loader, &path, None)
        .map_err(|errors| errors.to_string())?;
    Plan::build(View::root(&scope), generation, FAMILIES, environment)
        .map_err(|errors| errors.to_string())
}
