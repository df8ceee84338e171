//! The family in `stream`.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_lane::log::Level;
use turnpike_stream::phase::{Handler, HandlerPlace, Status, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;

use super::handler::Rules;
use super::{plan, rows};
use turnpike_plan::cidr::warn_of_low_bits;

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream access",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    stream,
    server,
    ..Family::NONE
};

fn stream(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["allow", "deny"]);
    Ok(())
}

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["allow", "deny"]);
    if let Some(rules) = plan::rules(view)? {
        draft.add_handler(HandlerPlace::AddressAccess, Arc::new(rules));
    }
    Ok(())
}

impl Handler for Rules {
    fn handle(&self, session: &mut Session) -> Verdict {
        match self.denies(session.peer) {
            None | Some(false) => Verdict::Declined,
            Some(true) => {
                session.log(Level::Error, format_args!("access forbidden by rule"));
                Verdict::Status(Status::Forbidden)
            }
        }
    }
}
