//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, View};
use turnpike_http::plan::{Builder, LocationDraft};

use crate::pass::http_origin::{Fields, HttpOrigin};
use crate::pass::plan::{FamilyParts, destination_without_path, pass_in_force, pass_on};
use crate::pass::settings::Destination;
use crate::pass::target::PassUrl;
use crate::pass::tls::Tls;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
pub(super) const PREFIX: &str = "grpc";

/// Fields of a response that are kept from the client unless `grpc_pass_header` says otherwise.
const HIDDEN: &[&[u8]] = &[
    b"Date",
    b"Server",
    b"X-Accel-Expires",
    b"X-Accel-Redirect",
    b"X-Accel-Limit-Rate",
    b"X-Accel-Buffering",
    b"X-Accel-Charset",
];

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let pass = PassView::new(view, PREFIX);
    let Some((level, entry)) = pass_in_force(pass) else {
        return Ok(());
    };
    let destination = destination_without_path(level, entry, builder, PassUrl::parse_grpc)?;
    let tls = match &destination {
        Destination::Fixed { url, .. } if !url.secure => None,
        _ => Some(Tls::read(pass, builder, &[b"h2"])?),
    };
    let origin = HttpOrigin::of_grpc(Fields::read(pass, builder)?);
    let parts = FamilyParts {
        hidden: HIDDEN,
        tls,
        passes_all: true,
        ..FamilyParts::new(pass, destination, Box::new(origin))
    };
    pass_on(pass, builder, draft, parts)?;
    Ok(())
}
