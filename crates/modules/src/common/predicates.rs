//! Conditions that are lists of strings, as nginx's `proxy_no_cache` and `early_hints` have them: a
//! condition holds if one of its strings is neither empty nor "0".

use turnpike_conf::{ConfError, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;

/// Reads the strings of the directive in force.
///
/// # Errors
/// What is wrong with a variable in them.
pub(crate) fn read(
    view: View<'_>,
    name: &str,
    builder: &mut Builder<'_>,
) -> Result<Vec<Template>, ConfError> {
    let mut templates = Vec::new();
    for entry in view.nearest_all(name) {
        for word in entry.arguments.iter() {
            templates.push(builder.template(view, entry, &word.bytes())?);
        }
    }
    Ok(templates)
}

/// Whether one of the values is neither empty nor "0".
pub(crate) fn any_holds(exchange: &Exchange, templates: &[Template]) -> bool {
    templates.iter().any(|template| {
        let value = template.value(exchange);
        !value.is_empty() && value != b"0"
    })
}
