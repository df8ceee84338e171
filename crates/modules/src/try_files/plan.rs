//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::{Candidate, Resort, Trial};
use crate::common::files::Files;

/// Largest status that `=code` may name; nginx's.
const CODE_MAX: u16 = 999;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("try_files") else {
        return Ok(());
    };
    let Some((last, words)) = entry.arguments.split_last() else {
        return Ok(());
    };
    let mut candidates = Vec::new();
    for word in words {
        let text = word.bytes();
        let (name, folder) = match text.strip_suffix(b"/") {
            Some(name) => (name, true),
            None => (text.as_slice(), false),
        };
        let name = builder.template(view, entry, name)?;
        candidates.push(Candidate { name, folder });
    }
    let resort = match last.text.strip_prefix('=') {
        None => Resort::Path(builder.template(view, entry, &last.bytes())?),
        Some(code) => {
            let status = code.parse().ok().filter(|code| *code <= CODE_MAX);
            let error = || view.error(entry.span, format!("invalid code \"{}\"", last.text));
            Resort::Status(status.ok_or_else(error)?)
        }
    };
    let files = Files::of(view, builder)?;
    let trial = Trial {
        files,
        candidates,
        resort,
    };
    draft.add_handler(HandlerPlace::FirstFile, Arc::new(trial));
    Ok(())
}
