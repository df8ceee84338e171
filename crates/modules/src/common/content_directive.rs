//! Directives by which a location answers its requests itself: `stub_status`, `mp4` and their like.

use turnpike_conf::{Context, Entry, View};

/// The directive of this name that answers in a block, and whether it stands there: an `if` of a
/// location goes on to answer as the location does, and nested locations do not.
pub(crate) fn in_force<'a>(view: View<'a>, name: &str) -> Option<(&'a Entry, bool)> {
    let (_, entry) = view.own_through(name, &[Context::IfInLocation])?;
    Some((entry, view.own(name).is_some()))
}
