//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, View};
use turnpike_http::plan::{Builder, LocationDraft};

use super::origin::{MemcachedOrigin, SCHEME};
use crate::pass::plan::{FamilyParts, destination_without_path, pass_in_force, pass_on};
use crate::pass::target::PassUrl;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
pub(super) const PREFIX: &str = "memcached";

/// The variable that holds the key.
const KEY: &[u8] = b"$memcached_key";

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
    let parse = |text: &str| PassUrl::parse_address(SCHEME, text);
    let destination = destination_without_path(level, entry, builder, parse)?;
    let origin = MemcachedOrigin {
        key: builder.template(level, entry, KEY)?,
        gzip_flag: u32::try_from(pass.number("gzip_flag")).unwrap_or_default(),
    };
    let parts = FamilyParts {
        forces_ranges: true,
        ..FamilyParts::new(pass, destination, Box::new(origin))
    };
    pass_on(pass, builder, draft, parts)?;
    Ok(())
}
