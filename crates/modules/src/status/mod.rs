//! `status`: the server's own page of numbers, as lines of text, as JSON, or live in a browser.

mod handler;

use std::sync::Arc;

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use crate::common::content_directive;
use handler::{Form, Page};

const ROWS: &[Row] = &[Row {
    name: "status",
    contexts: &[Context::Server, Context::Location],
    arguments: Arguments::between(0, 1),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Own,
    variables: None,
    syntax: "[text | json | html]",
    default: "",
    summary: "Answers with the status of the server: the generation of the configuration, and the \
        connections and requests in total and per lane. With html it is a live page with graphs; \
        its numbers are all metrics as JSON, at the same address with ?json. A client whose Accept \
        does not name text/html, as that of curl, gets the text.",
}];

pub(crate) const FAMILY: Family = Family {
    name: "status",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    _builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let Some((entry, is_own)) = content_directive::in_force(view, "status") else {
        return Ok(());
    };
    let form = match entry.arguments.first().map(|word| word.text.as_str()) {
        None | Some("text") => Form::Text,
        Some("json") => Form::Json,
        Some("html") => Form::Html,
        Some(other) => {
            let message = format!("invalid parameter \"{other}\"");
            return Err(view.error(entry.span, message));
        }
    };
    draft.set_content(Arc::new(Page(form)), is_own);
    Ok(())
}
