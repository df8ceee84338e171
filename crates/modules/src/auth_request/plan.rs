//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::{Template, VariableId};

use super::handler::{Asks, Question};

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let mut sets = Vec::new();
    for entry in view.nearest_all("auth_request_set") {
        let set = read_set(entry, builder);
        sets.push(set.map_err(|message| view.error(entry.span, message))?);
    }
    let path = view.text("auth_request");
    if path != "off" {
        let question = Question {
            path: path.as_bytes().to_vec(),
            sets,
        };
        draft.add_handler(
            HandlerPlace::RequestedAccess,
            Arc::new(Asks(Arc::new(question))),
        );
    }
    Ok(())
}

fn read_set(entry: &Entry, builder: &mut Builder<'_>) -> Result<(VariableId, Template), Complaint> {
    let written = entry.argument(0);
    let name = written.strip_prefix('$').filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(format!("invalid variable name \"{written}\"").into());
    };
    let id = builder.variables.define_stored(name)?;
    let value = entry.arguments.get(1).map(|word| word.bytes());
    let value = Template::compile(&value.unwrap_or_default(), &mut builder.variables)?;
    Ok((id, value))
}
