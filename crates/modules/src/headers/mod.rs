//! `add_header`, `add_trailer` and `expires`: fields that the configuration adds to responses.
//!
//! The family only adds to a response that is made; it must not decide what is answered.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod trailers;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use trailers::AddTrailers;

pub(crate) const FAMILY: Family = Family {
    name: "headers",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let added = plan::Added::read(view, builder)?;
    if !added.is_empty() {
        draft.add_filter(FilterPlace::Headers, Arc::new(added));
    }
    let trailers = plan::Trailers::read(view, builder)?;
    if !trailers.fields.is_empty() {
        let filter = AddTrailers(Arc::new(trailers));
        draft.add_filter(FilterPlace::Trailers, Arc::new(filter));
    }
    Ok(())
}
