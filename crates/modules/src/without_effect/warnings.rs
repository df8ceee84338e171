//! Warnings about directives without effect: those that nginx warns of too, and those that ask for
//! what is not supported. The size of a table needs no warning.

use turnpike_conf::View;
use turnpike_http::plan::Builder;

/// Why a directive has no effect.
#[derive(Clone, Copy)]
enum Reason {
    /// nginx has removed it in favour of this one.
    Replaced(&'static str),
    /// nginx has removed it.
    Removed,
}

/// A directive that gives a warning.
pub(super) struct Warning(&'static str, Reason);

pub(super) const HTTP2: &[Warning] = &[
    Warning("http2_idle_timeout", Reason::Replaced("keepalive_timeout")),
    Warning("http2_max_concurrent_pushes", Reason::Removed),
    Warning(
        "http2_max_field_size",
        Reason::Replaced("large_client_header_buffers"),
    ),
    Warning(
        "http2_max_header_size",
        Reason::Replaced("large_client_header_buffers"),
    ),
    Warning("http2_max_requests", Reason::Replaced("keepalive_requests")),
    Warning("http2_push", Reason::Removed),
    Warning("http2_push_preload", Reason::Removed),
    Warning(
        "http2_recv_timeout",
        Reason::Replaced("client_header_timeout"),
    ),
];

/// Warns of each of these directives in the block and in the blocks within it.
pub(super) fn warn(view: View<'_>, builder: &mut Builder<'_>, warnings: &[Warning]) {
    for entry in view.entries() {
        let found = warnings.iter().find(|warning| warning.0 == entry.row.name);
        if let Some(warning) = found {
            builder.warn(view, entry, message(warning));
        }
        if let Some(inner) = view.child(entry) {
            warn(inner, builder, warnings);
        }
    }
}

/// The text of a warning, in nginx's words where it has some.
fn message(warning: &Warning) -> String {
    let Warning(name, reason) = warning;
    let obsolete = format!("the \"{name}\" directive is obsolete");
    match reason {
        Reason::Replaced(new) => format!("{obsolete}, use the \"{new}\" directive instead"),
        Reason::Removed => format!("{obsolete}, ignored"),
    }
}
