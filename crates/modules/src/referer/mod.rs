//! `valid_referers`: whether the page that led to a request is a welcome one.
//!
//! The family only defines `$invalid_referer`; what follows from it is the configuration's.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use plan::{ByLocation, Referers};

pub(crate) const FAMILY: Family = Family {
    name: "referer",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let evaluate = Arc::new(builder.store::<ByLocation>().clone());
    builder
        .variables
        .define_computed("invalid_referer", evaluate)
        .map_err(|message| view.error(view.span(), message))?;
    Ok(())
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some(referers) = Referers::read(view, &mut builder.variables.programs)? {
        builder.store::<ByLocation>().insert(draft.index, referers);
    }
    Ok(())
}
