//! `set` of `stream`: variables that are given their values before the content of a session.

use std::sync::Arc;

use turnpike_conf::{
    Arguments, Complaint, ConfError, Context, Entry, Merge, ReferenceText, Repeat, Row, View,
    bytes_of,
};
use turnpike_plan::template::Template;
use turnpike_plan::variables::VariableId;
use turnpike_stream::phase::{Handler, HandlerPlace, Verdict};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;

const ROWS: &[Row] = &[Row {
    name: "set",
    contexts: &[Context::StreamServer],
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: Some(1),
    syntax: "$variable value",
    summary: "Sets a variable, in the preread phase of a session.",
    ..Row::PLAIN
}];

/// The assignments of a server, in their order.
struct Assignments(Vec<(VariableId, Template)>);

pub(crate) const FAMILY: Family = Family {
    name: "stream set",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("stream_set/reference.md"))],
    server,
    ..Family::NONE
};

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let mut assignments = Vec::new();
    for entry in view.own_all("set") {
        let read = assignment(entry, builder);
        assignments.push(read.map_err(|message| view.error(entry.span, message))?);
    }
    if !assignments.is_empty() {
        draft.add_handler(
            HandlerPlace::Assignments,
            Arc::new(Assignments(assignments)),
        );
    }
    Ok(())
}

fn assignment(
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<(VariableId, Template), Complaint> {
    let written = entry.argument(0);
    let name = written
        .strip_prefix('$')
        .filter(|name| !name.is_empty())
        .ok_or_else(|| format!("invalid variable name \"{written}\""))?;
    let variable = builder.variables.define_stored(name)?;
    let value = Template::compile(&bytes_of(entry.argument(1)), &mut builder.variables)?;
    Ok((variable, value))
}

impl Handler for Assignments {
    fn handle(&self, session: &mut Session) -> Verdict {
        for (variable, template) in &self.0 {
            let value = template.value(session);
            session.set_variable(*variable, &value);
        }
        Verdict::Declined
    }
}
