//! `stub_status`: the page of counters that nginx's monitoring tools read, and its variables.

mod handler;

use std::sync::Arc;

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use crate::common::content_directive;

const ROWS: &[Row] = &[Row {
    name: "stub_status",
    contexts: &[Context::Server, Context::Location],
    arguments: Arguments::between(0, 1),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "[on]",
    default: "",
    summary: "Answers with the numbers of connections and requests, in the format of nginx's \
        `stub_status`.",
}];

pub(crate) const FAMILY: Family = Family {
    name: "stub_status",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || handler::VARIABLES,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    _builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some((_, is_own)) = content_directive::in_force(view, "stub_status") {
        draft.set_content(Arc::new(handler::Page), is_own);
    }
    Ok(())
}
