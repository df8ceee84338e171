//! `empty_gif`: one transparent pixel, from memory.

use std::sync::Arc;

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::response::Body;

use crate::common::content_directive;

const ROWS: &[Row] = &[Row {
    name: "empty_gif",
    contexts: &[Context::Location],
    arguments: Arguments::none(),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "",
    default: "",
    summary: "Answers with a transparent image of one pixel.",
}];

/// The family of `empty_gif`.
pub(crate) const FAMILY: Family = Family {
    name: "empty_gif",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("empty_gif/reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    _builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some((_, is_own)) = content_directive::in_force(view, "empty_gif") {
        draft.set_content(Arc::new(Pixel), is_own);
    }
    Ok(())
}

/// Mon, 28 Sep 1970 06:00:00 GMT: the date that nginx gives its pixel.
const LAST_MODIFIED_S: i64 = 23_349_600;

/// Two colours, black and white; a control block that makes black transparent; an image of one
/// black pixel.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff\
    !\xf9\x04\x01\0\0\x01\0\
    ,\0\0\0\0\x01\0\x01\0\0\x02\x02L\x01\0;";

/// Answers with the pixel.
struct Pixel;

impl Handler for Pixel {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(b"image/gif");
        response.set_content_length(Some(PIXEL.len() as u64));
        response.set_last_modified(Some(LAST_MODIFIED_S));
        response.set_body(Body::Static(PIXEL));
        Verdict::Respond
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}
