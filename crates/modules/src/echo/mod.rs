//! `echo` and others of the module of that name: answers that are written in the configuration, for
//! tests and for looking at what a request is.

mod body;
mod copies;
mod handler;
mod plan;
mod rows;
mod variables;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

/// The family of `echo`.
pub(crate) const FAMILY: Family = Family {
    name: "echo",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    variables: || variables::VARIABLES,
    http,
    location: plan::location,
    ..Family::NONE
};

fn http(_: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    builder.variables.add_unsettled(variables::CONTENT);
    Ok(())
}
