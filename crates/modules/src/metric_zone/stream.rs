//! The family in `stream`: metrics of sessions.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_stream::phase::{Handler, HandlerPlace, Logger, Status, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;

use super::handler::{Stages, Updates};
use super::{plan, reader, rows};

/// When `metric` updates a metric of a session.
const STAGES: Stages = Stages(["connect", "preread", "end"]);

/// The family for `stream`.
pub(crate) const FAMILY: Family = Family {
    name: "stream metric_zone",
    rows: rows::STREAM,
    reference: super::FAMILY.reference,
    stream: |view, builder| plan::zones(view, builder, "stream metric_zone", reader::STREAM_ROWS),
    server,
    ..Family::NONE
};

/// Updates of one stage.
struct At(Arc<Updates>, usize);

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let Some(updates) = Updates::in_force(view, builder, STAGES)? else {
        return Ok(());
    };
    let updates = Arc::new(updates);
    let places = [HandlerPlace::ConnectMetrics, HandlerPlace::PrereadMetrics];
    for (stage, place) in places.into_iter().enumerate() {
        if updates.has(stage) {
            draft.add_handler(place, Arc::new(At(Arc::clone(&updates), stage)));
        }
    }
    if updates.has(Stages::END) {
        draft.add_logger(Arc::new(At(updates, Stages::END)));
    }
    Ok(())
}

impl Handler for At {
    fn handle(&self, session: &mut Session) -> Verdict {
        match self.0.run(self.1, session) {
            Ok(()) => Verdict::Declined,
            Err(_) => Verdict::Status(Status::InternalServerError),
        }
    }
}

impl Logger for At {
    fn log(&self, session: &Session) {
        // There is nobody left to be told.
        let _ = self.0.run(self.1, session);
    }
}
