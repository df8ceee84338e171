//! `proxy_buffer_size`, and the two older names that nginx has for it.

use turnpike_conf::{ConfError, View};
use turnpike_stream::plan::Builder;

const NAME: &str = "proxy_buffer_size";

const OLDER_NAMES: [&str; 2] = ["proxy_downstream_buffer", "proxy_upstream_buffer"];

const NAMES: [&str; 3] = [NAME, OLDER_NAMES[0], OLDER_NAMES[1]];

/// The size in force in a server block, in bytes, at least 1.
pub(super) fn in_force(view: View<'_>) -> usize {
    let mut level = Some(view);
    while let Some(one) = level {
        if let Some(name) = NAMES.into_iter().find(|name| one.own(name).is_some()) {
            return bytes(one.size(name));
        }
        level = one.parent();
    }
    bytes(view.size(NAME))
}

fn bytes(size: u64) -> usize {
    usize::try_from(size.max(1)).unwrap_or(usize::MAX)
}

/// Looks at the names in `stream` and its servers, and warns of the older ones, as nginx does.
///
/// # Errors
/// nginx's words where a block has two of the names.
pub(super) fn check(stream: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let servers = stream.children("server");
    for view in std::iter::once(stream).chain(servers) {
        let entries = view.own_of(&NAMES);
        if let [_, second, ..] = entries.as_slice() {
            let message = format!("\"{}\" directive is duplicate", second.row.name);
            return Err(view.error(second.span, message));
        }
        for entry in entries {
            let name = entry.row.name;
            if OLDER_NAMES.contains(&name) {
                let message = format!(
                    "the \"{name}\" directive is deprecated, use the \"{NAME}\" directive instead"
                );
                builder.warn(view, entry, message);
            }
        }
    }
    Ok(())
}
