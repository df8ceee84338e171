//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::FolderIndex;
use super::rows::ROWS;
use crate::common::files::Files;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let mut names = Vec::new();
    for entry in view.nearest_all("index") {
        for word in entry.arguments.iter() {
            if word.text.is_empty() {
                let message = "index \"\" in \"index\" directive is invalid";
                return Err(view.error(entry.span, message));
            }
            names.push(builder.template(view, entry, &word.bytes())?);
        }
    }
    if names.is_empty() {
        let default = ROWS[0].default.as_bytes();
        let template = turnpike_http::variables::Template::compile(default, &mut builder.variables);
        names.extend(template.ok());
    }
    let files = Files::of(view, builder)?;
    draft.add_handler(
        HandlerPlace::IndexFile,
        Arc::new(FolderIndex {
            files,
            names: names.into(),
        }),
    );
    Ok(())
}
