//! `return`, `set`, `rewrite`, `break` and `if`: a small program for each server and location, run
//! in the order it is written.
//!
//! The family changes the path, the query and variables, answers by itself, or puts the location
//! of an `if` block in force. It must not look for locations: the engine does, after the phase.

mod functions;
mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod upstream_lists;

use std::sync::Arc;

use turnpike_conf::{ConfError, Context, ReferenceText, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use plan::Program;

pub(crate) const FAMILY: Family = Family {
    name: "rewrite",
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
    if !view.flag("uninitialized_variable_warn") {
        builder.store::<plan::Unset>().add_quiet(draft.index);
    }
    let place = match view.context() {
        Context::Server => HandlerPlace::ServerRewrite,
        Context::Location => HandlerPlace::Rewrite,
        Context::Http => return plan::define_only(view, builder),
        // What stands in an `if` belongs to the program around it.
        _ => return Ok(()),
    };
    let program = Program::compile(view, builder)?;
    if !program.is_empty() {
        draft.add_handler(place, Arc::new(program));
    }
    Ok(())
}
