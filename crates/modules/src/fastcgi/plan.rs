//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, View, bytes_of};
use turnpike_http::plan::{Builder, LocationDraft};

use super::origin::{FastCgiOrigin, SCHEME};
use super::script;
use crate::common::buffer_sizes::BufferSizes;
use crate::pass::params::Params;
use crate::pass::plan::{FamilyParts, destination_without_path, pass_in_force, pass_on};
use crate::pass::target::PassUrl;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
pub(super) const PREFIX: &str = "fastcgi";

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    script::variables(view, builder)
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let pass = PassView::new(view, PREFIX);
    pass.declare_temporary_folder(builder.environment);
    script::location(view, builder, draft)?;
    let Some((level, entry)) = pass_in_force(pass) else {
        return BufferSizes::check(pass);
    };
    let parse = |text: &str| PassUrl::parse_address(SCHEME, text);
    let destination = destination_without_path(level, entry, builder, parse)?;
    let caught = pass.nearest_all("catch_stderr");
    let caught = caught.iter().map(|entry| bytes_of(entry.argument(0)));
    let origin = FastCgiOrigin {
        params: Params::read(pass, builder)?,
        keeps_connection: pass.flag("keep_conn"),
        caught: caught.collect(),
    };
    let parts = FamilyParts::of_application(pass, destination, origin);
    pass_on(pass, builder, draft, parts)?;
    Ok(())
}
