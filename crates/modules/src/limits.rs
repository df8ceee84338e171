//! What `limit_req` and `limit_conn` have in common: the key of a request, the status of a
//! refusal, and the messages about zones. How they count is each family's own business.

use std::fmt::Display;

use turnpike_conf::{ConfError, View};
use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

/// The key of a request; `None` where it is not to be counted: it is empty, or longer than
/// `key_bytes_max`, which is logged.
pub(crate) fn key(
    exchange: &Exchange,
    template: &Template,
    key_bytes_max: usize,
) -> Option<Vec<u8>> {
    let key = template.value(exchange);
    if key.len() > key_bytes_max {
        let (name, key) = (Quoted(template.text()), Quoted(&key));
        exchange.log(
            Level::Error,
            format_args!(
                "the value of the \"{name}\" key is more than {key_bytes_max} bytes: \"{key}\""
            ),
        );
        return None;
    }
    (!key.is_empty()).then_some(key)
}

/// The status of refusals, as `directive` sets it.
///
/// # Errors
/// Where it is not one of an error.
pub(crate) fn status(view: View<'_>, directive: &str) -> Result<u16, ConfError> {
    match u16::try_from(view.number(directive)) {
        Ok(status @ 400..=599) => Ok(status),
        _ => {
            let entry = view.nearest(directive);
            let span = entry.map_or(view.span(), |entry| entry.span);
            Err(view.error(span, "value must be between 400 and 599"))
        }
    }
}

/// nginx's message about a zone that is declared twice.
pub(crate) fn already_bound(directive: &str, name: &str, key: &Template) -> String {
    let key = String::from_utf8_lossy(key.text());
    format!("{directive} \"{name}\" is already bound to key \"{key}\"")
}

/// nginx's message about a zone that nobody declared.
pub(crate) fn undeclared(name: impl Display) -> String {
    format!("zero size shared memory zone \"{name}\"")
}
