//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, View};
use turnpike_http::plan::{Builder, LocationDraft};

use super::origin::{SCHEME, TunnelOrigin};
use crate::pass::plan::{FamilyParts, destination_without_path, evaluated, pass_in_force, pass_on};
use crate::pass::target::PassUrl;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
pub(super) const PREFIX: &str = "tunnel";

/// Where a tunnel goes unless the directive says otherwise: where the client wants it to go.
const TARGET: &[u8] = b"$host:$request_port";

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
    let destination = if entry.arguments.is_empty() {
        let template = builder.template(level, entry, TARGET)?;
        evaluated(level, builder, template)?
    } else {
        let parse = |text: &str| PassUrl::parse_address(SCHEME, text);
        destination_without_path(level, entry, builder, parse)?
    };
    let parts = FamilyParts {
        // A target of CONNECT is no path.
        auto_redirect: false,
        ..FamilyParts::new(pass, destination, Box::new(TunnelOrigin))
    };
    pass_on(pass, builder, draft, parts)?;
    draft.allows_connect = true;
    Ok(())
}
