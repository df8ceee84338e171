//! WebDAV's methods for files (RFC 4918): PUT, DELETE, MKCOL, COPY and MOVE, and as in the module
//! dav_ext PROPFIND, OPTIONS, LOCK and UNLOCK.
//!
//! ```text
//!  request ─► checked on the lane ─► job ─► thread for blocking work ─► 201, 204 or an error
//! ```

mod conditions;
mod extended;
mod failure;
mod handler;
mod if_field;
mod job;
mod listing;
mod locks;
mod place;
mod plan;
mod properties;
mod request_xml;
mod rows;
#[cfg(test)]
mod tests;
mod tree;
mod turns;
mod uri;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `dav_methods`.
pub(crate) struct Dav;

impl Family for Dav {
    fn name(&self) -> &'static str {
        "dav"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::http(view, builder)
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
