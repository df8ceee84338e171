//! Access logs: `access_log`, `log_format`, `open_log_file_cache`.
//!
//! A format is compiled to a list of operations, and a line is made in a buffer that its lane
//! keeps, so that writing one allocates nothing. A line is in its file (or in a buffer that was
//! asked for) before the connection is closed. What cannot be written is counted. This family
//! must not know what any variable means.

mod escape;
mod files;
mod format;
mod handler;
mod lane;
mod logged;
mod plan;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "access_log",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    location: |view, builder, draft| plan::location(view, builder, draft),
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::predefined(view, builder)?;
    plan::formats(view, builder)
}
