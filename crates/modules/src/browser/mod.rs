//! `modern_browser`, `ancient_browser`: what a User-Agent says about a browser's age, in variables.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

pub(crate) const FAMILY: Family = Family {
    name: "browser",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || handler::VARIABLES,
    http: plan::variables,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    plan::location(view, builder, draft);
    Ok(())
}
