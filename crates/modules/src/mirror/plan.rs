//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::Copies;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let entries = view.nearest_all("mirror");
    let off = entries.iter().any(|entry| entry.argument(0) == "off");
    if let (true, Some(second)) = (off, entries.get(1)) {
        return Err(view.error(second.span, "\"mirror\" directive is duplicate"));
    }
    if off || entries.is_empty() {
        return Ok(());
    }
    let path = |text: &str| text.as_bytes().to_vec();
    let copies = Copies {
        paths: entries
            .iter()
            .map(|entry| path(entry.argument(0)))
            .collect(),
        with_body: view.flag("mirror_request_body"),
    };
    draft.add_handler(HandlerPlace::Copies, Arc::new(copies));
    Ok(())
}
