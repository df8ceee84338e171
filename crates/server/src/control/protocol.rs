//! Lines: what a request and an answer look like, and which verbs there are.

use std::fmt;

use serde_json::{Value, json};
use turnpike_plan::control::{Arguments, CommandError, CommandRow};

/// Longest line of a request. The longest sensible one names a few hundred cache keys.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The process that carries a verb out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Master,
    /// The serving process.
    Serving,
}

/// One of the server's own verbs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verb {
    /// The row, of the same form as those of the families.
    pub(crate) row: CommandRow,
    pub(crate) home: Home,
}

const fn verb(
    home: Home,
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
) -> Verb {
    Verb {
        row: CommandRow {
            name,
            arguments,
            summary,
        },
        home,
    }
}

/// What the master asks the serving process for systemd's sake; no verb of the socket.
pub(crate) const LIFE_VERB: &str = "life";

/// The server's own verbs; those of the families have a dot in their names.
pub(crate) const VERBS: &[Verb] = &[
    verb(
        Home::Master,
        "status",
        "",
        "Shows the state of the master and the serving process.",
    ),
    verb(
        Home::Master,
        "generation",
        "",
        "Shows the number of the active configuration.",
    ),
    verb(
        Home::Master,
        "reload",
        "",
        "Reads the configuration again; answers with a report when it is active, or with the \
         errors in it.",
    ),
    verb(Home::Master, "reopen", "", "Opens the log files again."),
    verb(
        Home::Master,
        "drain",
        "",
        "Stops the server gracefully: every response closes its connection. After \
         shutdown_delay the server accepts no new connections. It exits when the last request is \
         done.",
    ),
    verb(
        Home::Master,
        "upgrade",
        "[binary=FILE] [timeout_s=NUMBER]",
        "Starts a new binary on the same sockets; this server stops when the new one serves \
         requests, and continues if the new one fails.",
    ),
    verb(Home::Master, "stop", "", "Stops the server at once."),
    verb(
        Home::Master,
        "verbs",
        "",
        "Lists all verbs, including those of the active configuration.",
    ),
    verb(
        Home::Serving,
        "lanes",
        "",
        "Lists the worker threads (lanes) with their counters.",
    ),
    verb(
        Home::Serving,
        "gates",
        "",
        "Lists the listening sockets and their queues.",
    ),
    verb(
        Home::Serving,
        "metrics",
        "[format=prometheus|openmetrics|json]",
        "Shows all metrics, in Prometheus's text format, as OpenMetrics, or as JSON.",
    ),
    verb(
        Home::Serving,
        "connections",
        "",
        "Counts the open connections by state, in total and per lane.",
    ),
    verb(
        Home::Serving,
        "certificates",
        "",
        "Lists the certificates in use and their remaining days, the first to expire first.",
    ),
    verb(
        Home::Serving,
        "requests",
        "[close=ID]",
        "Lists the requests that are in progress, the oldest first. With close=ID it closes one \
         of them.",
    ),
];

/// The server's own verb of that name.
pub(crate) fn find_verb(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.row.name == name)
}

/// The verbs of all directive families.
pub fn family_verbs() -> impl Iterator<Item = &'static CommandRow> {
    let families = turnpike_modules::FAMILIES.iter();
    families.flat_map(|family| family.commands)
}

/// Something asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The client's name for the request; the answer has the same.
    pub id: Value,
    /// What is to be done.
    pub verb: String,
    /// The other members.
    pub arguments: Arguments,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no JSON object or has no verb; with the id, where it has one.
    pub fn parse(line: &[u8]) -> Result<Request, (Value, RequestError)> {
        let invalid = |message: &str| RequestError::invalid(message);
        let mut arguments = match serde_json::from_slice(line) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err((Value::Null, invalid("a request is an object"))),
            Err(error) => {
                let message = format!("a request is a line of JSON: {error}");
                return Err((Value::Null, invalid(&message)));
            }
        };
        let id = arguments.remove("id").unwrap_or(Value::Null);
        match arguments.remove("verb") {
            Some(Value::String(verb)) => Ok(Request {
                id,
                verb,
                arguments,
            }),
            _ => Err((id, invalid("\"verb\" must be given"))),
        }
    }

    /// The line that asks for it, without its end.
    pub fn line(&self) -> String {
        let mut members = self.arguments.clone();
        members.insert("id".to_owned(), self.id.clone());
        members.insert("verb".to_owned(), Value::String(self.verb.clone()));
        Value::Object(members).to_string()
    }
}

/// Why a request was not fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// A word for programs: `invalid`, `not_found`, `failed`, `busy`, `unknown_verb`, `gone`,
    /// `timed_out`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl RequestError {
    /// A failure of that code.
    pub fn new(code: &str, message: impl Into<String>) -> RequestError {
        RequestError {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// A request that makes no sense.
    pub fn invalid(message: impl Into<String>) -> RequestError {
        RequestError::new("invalid", message)
    }

    /// Something that could not be done.
    pub fn failed(message: impl Into<String>) -> RequestError {
        RequestError::new("failed", message)
    }

    /// The verb does not exist, or not with this configuration.
    pub fn unknown_verb(verb: &str) -> RequestError {
        let known = family_verbs().any(|row| row.name == verb);
        let message = if known {
            format!("nothing in this configuration knows the verb \"{verb}\"")
        } else {
            format!("unknown verb \"{verb}\"")
        };
        RequestError::new("unknown_verb", message)
    }

    /// From an answer's `error` member.
    pub fn from_value(value: &Value) -> RequestError {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        RequestError {
            code: text("code"),
            message: text("message"),
        }
    }
}

impl From<CommandError> for RequestError {
    fn from(error: CommandError) -> RequestError {
        RequestError::new(error.code(), error.to_string())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RequestError {}

/// The line that answers, with its end.
pub fn answer_line(id: &Value, outcome: &Result<Value, RequestError>) -> String {
    let answer = match outcome {
        Ok(result) => json!({ "id": id, "result": result }),
        Err(failure) => json!({
            "id": id,
            "error": { "code": failure.code, "message": failure.message },
        }),
    };
    format!("{answer}\n")
}
