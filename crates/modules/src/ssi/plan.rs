//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::lane::LaneSlot;
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::SsiFilter;
use super::patterns::Patterns;
use crate::common::content_types::Types;

/// What holds for the pages of a location.
pub(super) struct Settings {
    pub(super) silent_errors: bool,
    pub(super) value_bytes_max: usize,
    /// Where `ssi` stands, for what is logged of regular expressions.
    pub(super) place: String,
    pub(super) patterns: LaneSlot<Patterns>,
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if !view.flag("ssi") {
        return Ok(());
    }
    builder.variables.names_come_later();
    let place = view.nearest("ssi").map(|entry| view.place(entry.span));
    let settings = Settings {
        silent_errors: view.flag("ssi_silent_errors"),
        value_bytes_max: usize::try_from(view.number("ssi_value_length")).unwrap_or(0),
        place: place.unwrap_or_default(),
        patterns: Patterns::slot(builder),
    };
    let filter = SsiFilter {
        types: Types::read(view, "ssi_types", &["text/html"]),
        keeps_last_modified: view.flag("ssi_last_modified"),
        settings: Arc::new(settings),
    };
    draft.add_filter(FilterPlace::Include, Arc::new(filter));
    Ok(())
}
