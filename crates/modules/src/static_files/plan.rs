//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::StaticFile;
use crate::common::files::Files;
use crate::common::published_copies::Copies;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let files = Files::of(view, builder)?;
    let copies = Copies::of(builder);
    let handler = StaticFile { files, copies };
    draft.add_handler(HandlerPlace::File, Arc::new(handler));
    Ok(())
}
