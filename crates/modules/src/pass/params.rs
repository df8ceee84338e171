//! The parameters of a request (`fastcgi_param`, `scgi_param`, `uwsgi_param`): what the
//! configuration sets, and the client's fields under the names that CGI gives them (RFC 3875
//! section 4.1.18).

use turnpike_conf::{Arguments, Complaint, ConfError, Repeat, Row, Value, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;
use turnpike_wire::message::{Field, Known};

use super::origin::Question;
use super::view::PassView;

/// What a client's field is called.
const FIELD_PREFIX: &[u8] = b"HTTP_";

/// The client's fields that a cache has its own of.
const CONDITIONS: &[&[u8]] = &[
    b"HTTP_IF_MODIFIED_SINCE",
    b"HTTP_IF_UNMODIFIED_SINCE",
    b"HTTP_IF_NONE_MATCH",
    b"HTTP_IF_MATCH",
    b"HTTP_RANGE",
    b"HTTP_IF_RANGE",
];

/// Fields of a response that are kept from the client unless `..._pass_header` says otherwise.
pub(crate) const HIDDEN: &[&[u8]] = &[
    b"Status",
    b"X-Accel-Expires",
    b"X-Accel-Redirect",
    b"X-Accel-Limit-Rate",
    b"X-Accel-Buffering",
    b"X-Accel-Charset",
];

/// The row of `..._param` without its name and summary.
pub(crate) const ROW: Row = Row {
    value: Value::Checked(check),
    variables: Some(1),
    arguments: Arguments::between(2, 3),
    repeat: Repeat::Many,
    syntax: "parameter value [if_not_empty]",
    ..Row::PLAIN
};

/// The parameter that has the host of the request, whatever its `Host` field says.
const HOST: &[u8] = b"HTTP_HOST";

/// Appends host and target of the request, the usual key of a cache: nothing else shows what an
/// application's answer depends on.
pub(crate) fn write_key(exchange: &Exchange, out: &mut Vec<u8>) {
    exchange.append_host_and_port(out);
    out.extend_from_slice(exchange.request().head().origin());
}

/// The parameters that a location sets.
pub(crate) struct Params {
    list: Vec<Param>,
    /// Whether `HTTP_HOST` is the host of the request, since the location sets none.
    has_host: bool,
    /// Names that a client's field may have, and that are written without it: those that are
    /// configured, and `HTTP_HOST`. An empty text for such a name keeps the field away and is no
    /// parameter itself, as in nginx.
    field_names: Vec<Vec<u8>>,
}

struct Param {
    name: Vec<u8>,
    value: Template,
    /// Whether an empty value is left out.
    if_not_empty: bool,
}

/// How a protocol writes a parameter. Its value is made where it stands in the request.
pub(crate) trait ParamWriter {
    /// Appends what stands before the value of the parameter with this name.
    fn begin(&mut self, name: &[u8], out: &mut Vec<u8>);

    /// Ends the parameter with this name. It stands from `start` to the end, and its value from
    /// `value` on.
    fn end(&mut self, name: &[u8], start: usize, value: usize, out: &mut Vec<u8>);

    /// Appends a parameter with a value that is known.
    fn write(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.begin(name, out);
        let value_start = out.len();
        out.extend_from_slice(value);
        self.end(name, start, value_start, out);
    }
}

/// `name value [if_not_empty]`.
pub(crate) fn check(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words.get(2) {
        None | Some(&"if_not_empty") => Ok(()),
        Some(word) => Err(format!("invalid parameter \"{word}\"").into()),
    }
}

impl Params {
    /// Reads the directives in force.
    ///
    /// # Errors
    /// What is wrong with a variable in them.
    pub(crate) fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let (mut list, mut field_names) = (Vec::new(), Vec::new());
        for entry in pass.nearest_all("param") {
            let value = bytes_of(entry.argument(1));
            let name = bytes_of(entry.argument(0));
            if name.len() > FIELD_PREFIX.len() && name.starts_with(FIELD_PREFIX) {
                field_names.push(name.clone());
                if value.is_empty() {
                    continue;
                }
            }
            list.push(Param {
                name,
                value: builder.template(pass.view, entry, &value)?,
                if_not_empty: entry.arguments.len() > 2,
            });
        }
        let has_host = !field_names.iter().any(|name| name == HOST);
        if has_host {
            field_names.push(HOST.to_vec());
        }
        Ok(Self {
            list,
            has_host,
            field_names,
        })
    }

    /// Appends every parameter of a request, in order.
    pub(crate) fn write(
        &self,
        exchange: &Exchange,
        question: &Question<'_>,
        writer: &mut impl ParamWriter,
        out: &mut Vec<u8>,
    ) {
        for param in &self.list {
            let start = out.len();
            writer.begin(&param.name, out);
            let value = out.len();
            param.value.evaluate(exchange, out);
            if out.len() == value && param.if_not_empty {
                out.truncate(start);
            } else {
                writer.end(&param.name, start, value, out);
            }
        }
        if self.has_host {
            write_host(exchange, writer, out);
        }
        let mut value = exchange.lane.take_scratch();
        let mut name = exchange.lane.take_scratch();
        let replaced = question
            .recorder
            .is_some_and(|recorder| recorder.replaces_conditions());
        if question.passing.passes_fields {
            let buffers = [&mut name, &mut value];
            self.fields(exchange, replaced, buffers, &mut |name, value| {
                writer.write(name, value, out);
            });
        }
        if let Some(recorder) = question.recorder {
            recorder.fields(exchange, &mut |known, value| {
                name_parameter(known.name().as_bytes(), &mut name);
                if !self.sets_field(&name) {
                    writer.write(&name, value, out);
                }
            });
        }
        exchange.lane.keep_scratch(name);
        exchange.lane.keep_scratch(value);
    }

    /// The client's fields. Those of one name make one parameter.
    fn fields(
        &self,
        exchange: &Exchange,
        without_conditions: bool,
        [parameter, value]: [&mut Vec<u8>; 2],
        take: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let bytes = exchange.fields().bytes();
        let fields = exchange.fields().spans();
        for (at, field) in fields.iter().enumerate() {
            let name = field.name.of(bytes);
            let is_same = |other: &Field| is_same_parameter(other.name.of(bytes), name);
            if fields.iter().take(at).any(is_same) {
                continue;
            }
            name_parameter(name, parameter);
            // The body is sent without its coding.
            if field.known == Known::TransferEncoding {
                continue;
            }
            let left_out = without_conditions && CONDITIONS.contains(&parameter.as_slice());
            if left_out || self.sets_field(parameter) {
                continue;
            }
            let separator: &[u8] = if name.eq_ignore_ascii_case(b"Cookie") {
                b"; "
            } else {
                b", "
            };
            value.clear();
            value.extend_from_slice(field.value.of(bytes));
            for other in fields.iter().skip(at + 1).filter(|other| is_same(other)) {
                value.extend_from_slice(separator);
                value.extend_from_slice(other.value.of(bytes));
            }
            take(parameter, value);
        }
    }

    /// Whether the location sets the parameter that a client's field would be.
    fn sets_field(&self, name: &[u8]) -> bool {
        self.field_names.iter().any(|own| own == name)
    }
}

/// Appends the host of the request, if there is one.
fn write_host(exchange: &Exchange, writer: &mut impl ParamWriter, out: &mut Vec<u8>) {
    let start = out.len();
    writer.begin(HOST, out);
    let value = out.len();
    exchange.append_host_and_port(out);
    if out.len() == value {
        out.truncate(start)
    } else {
        writer.end(HOST, start, value, out)
    }
}

/// Replaces `parameter` by `HTTP_` and the name in capitals, with underscores for hyphens.
pub(crate) fn name_parameter(name: &[u8], parameter: &mut Vec<u8>) {
    parameter.clear();
    parameter.extend_from_slice(FIELD_PREFIX);
    parameter.extend(name.iter().map(|byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }));
}

/// Whether fields of these names make the same parameter.
fn is_same_parameter(one: &[u8], other: &[u8]) -> bool {
    let plain = |byte: &u8| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    };
    one.len() == other.len() && one.iter().map(plain).eq(other.iter().map(plain))
}
