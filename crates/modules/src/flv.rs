//! `flv`: a Flash video from a place on (`?start=BYTES`), with the head that players expect.

use std::sync::Arc;

use turnpike_conf::{Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, HandlerPlace, Verdict};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_wire::message::decimal;

use crate::common::content_directive;
use crate::common::file_response;
use crate::common::files::Files;
use crate::common::query_argument::argument;

const ROWS: &[Row] = &[Row {
    name: "flv",
    contexts: &[Context::Location],
    arguments: Arguments::none(),
    repeat: Repeat::Many,
    merge: Merge::Own,
    summary: "Sends FLV files, starting at the byte given by the query argument `start`.",
    ..Row::PLAIN
}];

/// The head of a file with sound and pictures, and the length of the tag before the first one.
const HEAD: &[u8] = b"FLV\x01\x05\0\0\0\x09\0\0\0\0";

/// The family of `flv`.
pub(crate) const FAMILY: Family = Family {
    name: "flv",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("flv/reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if content_directive::in_force(view, "flv").is_some() {
        let files = Files::of(view, builder)?;
        draft.add_handler(HandlerPlace::Answer, Arc::new(Videos { files }));
    }
    Ok(())
}

/// Answers with videos and what is left of them.
struct Videos {
    files: Files,
}

impl Handler for Videos {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        if exchange.walk.path().last() == Some(&b'/') {
            return Verdict::Declined;
        }
        let start = argument(exchange.walk.query(), b"start").and_then(decimal);
        let file = match file_response::open(exchange, &self.files) {
            Ok(file) => file,
            Err(verdict) => return verdict,
        };
        let whole_bytes = file.metadata().size_bytes;
        let verdict = file_response::answer_opened(exchange, &self.files, file);
        let start = start.filter(|start| (1..whole_bytes).contains(start));
        if let (Verdict::Respond, Some(start)) = (&verdict, start) {
            let left = whole_bytes - start;
            file_response::put_part(&mut exchange.response, HEAD.to_vec(), start, left);
        }
        verdict
    }
}
