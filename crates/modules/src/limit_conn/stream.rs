//! The family in `stream`: sessions are counted, from their first byte to their log line.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_stream::phase::{Handler, HandlerPlace, Status, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;
use turnpike_stream::variables::VariableRow;

use super::handler::{LimitOutcome, Limits};
use super::zone::CountZone;
use super::{plan, rows};
use crate::common::limits;

const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "limit_conn_status",
    get: |session, out| {
        let text = limits::decision::<CountZone>(session);
        out.extend_from_slice(text.as_bytes());
        !text.is_empty()
    },
    set: None,
    summary: "The result of the concurrency limit: PASSED, REJECTED or REJECTED_DRY_RUN.",
}];

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream limit_conn",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    variables: || VARIABLES,
    stream: |view, builder| plan::zones(view, builder, "stream limit_conn"),
    server,
};

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let status = Status::ServiceUnavailable.number();
    if let Some(limits) = plan::in_force(view, builder, status)? {
        draft.add_handler(HandlerPlace::Concurrency, Arc::new(limits));
    }
    Ok(())
}

impl Handler for Limits {
    fn handle(&self, session: &mut Session) -> Verdict {
        match self.ask(session) {
            LimitOutcome::Within => Verdict::Declined,
            LimitOutcome::Refused { .. } => Verdict::Status(Status::ServiceUnavailable),
            LimitOutcome::Undecided => Verdict::Status(Status::InternalServerError),
        }
    }
}
