//! Reads how links are signed.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::{Expires, Link, Signature};
use crate::common::by_location::ByLocation;

/// What the variables look up by location; filled while the plan is built.
#[derive(Default)]
struct Store(ByLocation<Signature>);

/// Defines the variables.
pub(super) fn variables(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let place = |message| view.error(view.span(), message);
    let signatures = builder.store::<Store>().0.clone();
    let link = Arc::new(Link(signatures.clone()));
    let expires = Arc::new(Expires(signatures));
    let table = &mut builder.variables;
    table.define_volatile("secure_link", link).map_err(place)?;
    table
        .define_volatile("secure_link_expires", expires)
        .map_err(place)?;
    Ok(())
}

/// Remembers how the links of a location are signed.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let own = view.own("secure_link_secret");
    let mixed = view.own("secure_link").or(view.own("secure_link_md5"));
    if let (Some(secret), Some(_)) = (own, mixed) {
        return Err(view.error(
            secret.span,
            "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \
             \"secure_link_md5\"",
        ));
    }
    // A secret of the block's own goes before expressions of an outer one, those before its secret.
    let expressions = match own {
        Some(_) => (None, None),
        None => (view.nearest("secure_link"), view.nearest("secure_link_md5")),
    };
    let signature = match (
        view.nearest("secure_link_secret"),
        expressions.0,
        expressions.1,
    ) {
        (Some(secret), None, None) => {
            let word = secret.arguments.first();
            Signature::Secret(word.map(turnpike_conf::Word::bytes).unwrap_or_default())
        }
        (_, Some(place), Some(signed)) => {
            let mut template = |entry: &turnpike_conf::Entry| {
                let word = entry.arguments.first();
                let text = word.map(turnpike_conf::Word::bytes).unwrap_or_default();
                builder.template(view, entry, &text)
            };
            Signature::Expressions {
                place: template(place)?,
                signed: template(signed)?,
            }
        }
        _ => return Ok(()),
    };
    builder
        .store::<Store>()
        .0
        .insert(draft.index, Arc::new(signature));
    Ok(())
}
