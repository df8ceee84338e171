//! `json_set`: variables with values from JSON texts in other variables, as in nginx's module.
//!
//! A text that is no JSON, or is nested too deep, has no values.

use std::collections::HashSet;
use std::sync::Arc;

use turnpike_conf::{
    Arguments, Complaint, ConfError, Context, Entry, Merge, ReferenceText, Repeat, Row, Value,
    View, bytes_of,
};
use turnpike_http::plan::{Builder, Family};
use turnpike_http::variables::Template;
use turnpike_plan::variables::{Evaluate, Sources, Subject};
use turnpike_wire::json::{self, JsonPath, JsonPathError};

/// nginx's bounds of `json_max_depth`.
const DEPTH_MAX: std::ops::RangeInclusive<i64> = 1..=256;

const ROWS: &[Row] = &[
    Row {
        name: "json_set",
        contexts: &[Context::Http],
        arguments: Arguments::exactly(3),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "$variable $source path",
        summary: "Defines a variable with a value from the JSON text in another variable, such as \
            `$request_body`. The path has keys and indices: `user.tags[0]`, and `[\"a.b\"]` for \
            keys with other characters. The value of an object or array is its text. The value is \
            empty if the text is not JSON or has no such path.",
        ..Row::PLAIN
    },
    Row {
        name: "json_max_depth",
        contexts: &[Context::Http],
        value: Value::Number,
        merge: Merge::Own,
        syntax: "number",
        default: "32",
        summary: "How deep the objects and arrays of a JSON text may be nested, from 1 to 256. A \
            text that is nested deeper has no values.",
        ..Row::PLAIN
    },
];

/// The names that `json_set` has defined.
#[derive(Default)]
struct Names(HashSet<String>);

/// The value at a place of a text.
struct Member {
    source: Template,
    path: JsonPath,
    depth_max: usize,
}

pub(crate) const FAMILY: Family = Family {
    name: "json",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("json/reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let depth_max = view.number("json_max_depth");
    if let Some(entry) = view.own("json_max_depth")
        && !DEPTH_MAX.contains(&depth_max)
    {
        let (least, most) = (DEPTH_MAX.start(), DEPTH_MAX.end());
        let message = format!("value must be between {least} and {most}");
        return Err(view.error(entry.span, message));
    }
    let depth_max = usize::try_from(depth_max).unwrap_or_default();
    for entry in view.own_all("json_set") {
        if let Err(message) = define(entry, depth_max, builder) {
            builder.report(view.error(entry.span, message));
        }
    }
    Ok(())
}

fn define(entry: &Entry, depth_max: usize, builder: &mut Builder<'_>) -> Result<(), Complaint> {
    let name = variable_name(entry.argument(0))?;
    if !builder.store::<Names>().0.insert(name.to_ascii_lowercase()) {
        return Err(format!("json_set variable \"{name}\" is already defined").into());
    }
    let source = entry.argument(1);
    variable_name(source)?;
    let source = Template::compile(source.as_bytes(), &mut builder.variables)?;
    let written = entry.argument(2);
    let path = JsonPath::parse(&bytes_of(written)).map_err(|error| match error {
        JsonPathError::Empty => "empty json_set path".to_owned(),
        JsonPathError::Invalid => format!("invalid json_set path \"{written}\""),
    })?;
    let member = Member {
        source,
        path,
        depth_max,
    };
    builder.variables.define_computed(name, Arc::new(member))?;
    Ok(())
}

fn variable_name(written: &str) -> Result<&str, Complaint> {
    let name = written.strip_prefix('$').filter(|name| !name.is_empty());
    name.ok_or_else(|| format!("invalid variable name \"{written}\"").into())
}

impl<S: Subject> Evaluate<S> for Member {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let text = self.source.value(subject);
        json::append_at(&text, &self.path, self.depth_max, out)
    }

    fn sources(&self) -> Sources {
        Sources::of([&self.source])
    }
}
