//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, View, bytes_of};
use turnpike_http::plan::{Builder, LocationDraft};

use super::origin::{self, UwsgiOrigin};
use crate::common::buffer_sizes::BufferSizes;
use crate::pass::params::Params;
use crate::pass::plan::{FamilyParts, destination_without_path, pass_in_force, pass_on};
use crate::pass::settings::Destination;
use crate::pass::tls::Tls;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
pub(super) const PREFIX: &str = "uwsgi";

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let pass = PassView::new(view, PREFIX);
    pass.declare_temporary_folder(builder.environment);
    let Some((level, entry)) = pass_in_force(pass) else {
        return BufferSizes::check(pass);
    };
    let destination = destination_without_path(level, entry, builder, origin::parse_url)?;
    let secure = match &destination {
        Destination::Fixed { url, .. } => url.secure,
        Destination::Evaluated { .. } => true,
    };
    let tls = if secure {
        Some(Tls::read(pass, builder, &[])?)
    } else {
        None
    };
    let string = pass.nearest("string");
    let origin = UwsgiOrigin {
        params: Params::read(pass, builder)?,
        modifiers: [modifier(pass, "modifier1"), modifier(pass, "modifier2")],
        string: string.map_or(Vec::new(), |entry| bytes_of(entry.argument(0))),
    };
    let parts = FamilyParts {
        tls,
        auto_redirect: !destination.is_evaluated(),
        ..FamilyParts::of_application(pass, destination, origin)
    };
    pass_on(pass, builder, draft, parts)?;
    Ok(())
}

/// A number that its row keeps within a byte.
fn modifier(pass: PassView<'_>, end: &str) -> u8 {
    u8::try_from(pass.number(end)).unwrap_or_default()
}
