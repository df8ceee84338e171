//! One request of the API and its answer, as bytes.

use std::time::Instant;

use serde_json::Value;
use turnpike_plan::product::Product;
use turnpike_wire::h1::{HeadStep, RequestHead, parse_request};
use turnpike_wire::message::HeadRules;

/// Longest head: curl's has a hundred bytes, and nginx takes a line of a thousand.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// What a client wants to know, or to have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ApiCall {
    /// The names below a path.
    Names(&'static [&'static str]),
    /// Version and build.
    Version,
    /// The serving processes.
    Processes,
    /// The files of the configuration in force.
    Configuration,
    /// A reload.
    Reload,
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    /// There is no such method for it; these are.
    NotAllowed(&'static str),
    /// A port is asked by another name than that of this machine: a page in a browser does so after
    /// its name was given a loopback address.
    Misdirected,
    Unprocessable,
}

/// What a path has: what a GET shows, and what a PATCH does.
type Row = (&'static [u8], ApiCall, Option<ApiCall>);

const ROWS: &[Row] = &[
    (b"/", ApiCall::Names(&["1"]), None),
    (b"/1", ApiCall::Names(&["control", "nginx"]), None),
    (b"/1/nginx", ApiCall::Version, None),
    (
        b"/1/control",
        ApiCall::Names(&["processes", "config"]),
        None,
    ),
    (b"/1/control/processes", ApiCall::Processes, None),
    (
        b"/1/control/config",
        ApiCall::Configuration,
        Some(ApiCall::Reload),
    ),
];

/// A head that is on its way.
#[derive(Debug)]
pub(super) struct Reader {
    head: RequestHead,
    scanned: usize,
    begun: Instant,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            head: RequestHead::default(),
            scanned: 0,
            begun: Instant::now(),
        }
    }
}

impl Reader {
    /// When the client came.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Looks at all that has come so far; `None` asks for more. A body is of no use to any request,
    /// and is not waited for.
    pub(super) fn read(&mut self, input: &[u8], is_port: bool) -> Option<Result<ApiCall, Status>> {
        let rules = HeadRules {
            line_bytes_max: HEAD_BYTES_MAX,
            head_bytes_max: HEAD_BYTES_MAX,
            ..HeadRules::default()
        };
        match parse_request(input, self.scanned, &rules, &mut self.head) {
            Ok(HeadStep::Complete) => Some(wish(&self.head, input, is_port)),
            Ok(HeadStep::Incomplete { scanned }) => {
                self.scanned = scanned;
                None
            }
            Err(_) => Some(Err(Status::BadRequest)),
        }
    }
}

fn wish(head: &RequestHead, input: &[u8], is_port: bool) -> Result<ApiCall, Status> {
    let name = head.host.map(|host| host.of(input));
    if is_port && !name.is_none_or(is_this_machine) {
        return Err(Status::Misdirected);
    }
    let path = head.path.of(input);
    let path = match path {
        [start @ .., b'/'] if !start.is_empty() => start,
        path => path,
    };
    let row = ROWS.iter().find(|(own, ..)| *own == path);
    let (_, shown, done) = row.ok_or(Status::NotFound)?;
    let done = done.filter(|_| !is_port);
    match (head.method_span.of(input), done) {
        (b"GET", _) => Ok(*shown),
        (b"PATCH", Some(done)) => Ok(done),
        (_, Some(_)) => Err(Status::NotAllowed("GET, PATCH")),
        (_, None) => Err(Status::NotAllowed("GET")),
    }
}

fn is_this_machine(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    let literal = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address = literal.unwrap_or(&name).parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            // nginx's word.
            Status::NotAllowed(_) => "405 Not Allowed",
            Status::Misdirected => "421 Misdirected Request",
            Status::Unprocessable => "422 Unprocessable Entity",
        }
    }

    /// The whole response; without a body where there is nothing to show, as nginx's.
    pub(super) fn response(self, body: Option<&Value>, product: Product) -> Vec<u8> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let allow = match self {
            Status::NotAllowed(methods) => format!("Allow: {methods}\r\n"),
            _ => String::new(),
        };
        let (line, server, length) = (self.line(), product.name_and_version(), body.len());
        format!(
            "HTTP/1.1 {line}\r\nServer: {server}\r\nConnection: close\r\n{allow}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}
